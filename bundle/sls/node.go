package sls

import (
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"brine/bundle"
)

// resolve follows document and alias nodes to what they hold; nil where there
// is nothing.
func resolve(n *yaml.Node) *yaml.Node {
	for n != nil {
		switch {
		case n.Kind == yaml.DocumentNode && len(n.Content) > 0:
			n = n.Content[0]
		case n.Kind == yaml.DocumentNode || n.Kind == 0:
			return nil
		case n.Kind == yaml.AliasNode:
			n = n.Alias
		default:
			return n
		}
	}
	return nil
}

func isMapping(n *yaml.Node) bool  { return n != nil && n.Kind == yaml.MappingNode }
func isSequence(n *yaml.Node) bool { return n != nil && n.Kind == yaml.SequenceNode }
func isNull(n *yaml.Node) bool {
	return n == nil || n.Kind == yaml.ScalarNode && n.Tag == yaml.NodeTagNull
}

func isString(n *yaml.Node) bool {
	return n != nil && n.Kind == yaml.ScalarNode && !isNull(n)
}

// isEmpty: null, {}, [] or "".
func isEmpty(n *yaml.Node) bool {
	switch {
	case isNull(n):
		return true
	case n.Kind == yaml.ScalarNode:
		return strings.TrimSpace(n.Value) == ""
	}
	return len(n.Content) == 0
}

func describe(n *yaml.Node) string {
	switch {
	case isMapping(n):
		return "{}"
	case isSequence(n):
		return "[]"
	}
	return "null"
}

func line(n *yaml.Node) int {
	if n == nil || n.Line == 0 {
		return 1
	}
	return n.Line
}

// at is the place of a node outside of states.
func at(n *yaml.Node) bundle.Source { return bundle.Source{Line: line(n)} }

// pair is one field of a mapping.
type pair struct {
	key   string
	line  int
	value *yaml.Node // resolved
}

// pairs are the fields of a mapping: its own, then those that it merges (<<) and does not
// have; of several merges the first counts.
func pairs(n *yaml.Node) []pair {
	all, merges := ownPairs(n)
	if len(merges) == 0 {
		return all
	}
	known, seen := map[string]bool{}, map[*yaml.Node]bool{n: true}
	for _, p := range all {
		known[p.key] = true
	}
	for len(merges) > 0 {
		from := merges[0]
		merges = merges[1:]
		if seen[from] {
			continue
		}
		seen[from] = true
		more, inner := ownPairs(from)
		merges = slices.Concat(items(from), inner, merges)
		if !isMapping(from) && !isSequence(from) {
			more = []pair{{key: "<<", line: line(from), value: from}} // nobody knows a field of that name
		}
		for _, p := range more {
			if !known[p.key] {
				known[p.key] = true
				all = append(all, p)
			}
		}
	}
	return all
}

// ownPairs are the fields of a mapping without those that it merges, and what it merges.
func ownPairs(n *yaml.Node) (all []pair, merges []*yaml.Node) {
	if !isMapping(n) {
		return nil, nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := resolve(n.Content[i]), resolve(n.Content[i+1])
		switch {
		case k == nil:
		case k.Tag == yaml.MergeTag:
			merges = append(merges, v)
		default:
			all = append(all, pair{key: k.Value, line: line(n.Content[i]), value: v})
		}
	}
	return all, merges
}

func items(n *yaml.Node) []*yaml.Node {
	if !isSequence(n) {
		return nil
	}
	return bundle.Each(n.Content, resolve)
}

// listed are the items of a list, or the node itself.
func listed(n *yaml.Node) []*yaml.Node {
	if isSequence(n) {
		return items(n)
	}
	return []*yaml.Node{n}
}

func field(n *yaml.Node, key string) *yaml.Node {
	for _, p := range pairs(n) {
		if p.key == key {
			return p.value
		}
	}
	return nil
}

// text is a scalar's text, "" for everything else.
func text(n *yaml.Node) string {
	if !isString(n) {
		return ""
	}
	return n.Value
}

// reserved keys of a mapping of states are not state ids.
func reserved(key string) bool {
	return key == "include" || key == "extend" || key == "exclude" || strings.HasPrefix(key, "__")
}

// match is Python's fnmatch, which Salt matches requisites with. Unlike Go's, it
// knows no separators and no escapes.
func match(pattern, s string) bool {
	if pattern == s {
		return true
	}
	const slash = "\x00"
	pattern = strings.NewReplacer("/", slash, `\`, `\\`, "[!", "[^").Replace(pattern)
	ok, err := path.Match(pattern, strings.ReplaceAll(s, "/", slash))
	return ok && err == nil
}
