package read

import (
	"strconv"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"brine/bundle"
)

// The line of a field, found by its path in the text of its document.

// fieldLine finds the lines of the fields of the object at a position of d. Line
// numbers are needed only where something is wrong, so the document is parsed
// again rather than kept.
func (d *document) fieldLine(row, col int) func(path string) int {
	return func(path string) int {
		n := d.find(row, col)
		if n == nil {
			return d.line - 1 + row
		}
		return d.line - 1 + follow(n, strings.TrimPrefix(path, "."), n.Line)
	}
}

// find is the mapping at a position of the document, the outermost one. There is an index of
// them, as each item of a long list may be asked for.
func (d *document) find(row, col int) *yaml.Node {
	d.once.Do(func() {
		d.mappings = map[position]*yaml.Node{}
		roots, _ := d.parse()
		d.index(roots)
	})
	return d.mappings[position{row, col}]
}

func (d *document) index(nodes []*yaml.Node) {
	for _, n := range nodes {
		if at := (position{n.Line, n.Column}); n.Kind == yaml.MappingNode && d.mappings[at] == nil {
			d.mappings[at] = n
		}
		d.index(n.Content)
	}
}

// follow goes down path until it ends. Keys may hold dots, so of several
// that fit the longest is taken.
func follow(n *yaml.Node, path string, line int) int {
	for depth := 0; path != "" && depth < maxDepth; depth++ {
		n = resolved(n)
		key, rest := "", ""
		if inner, after, ok := bracket(path); ok {
			if n.Kind == yaml.SequenceNode {
				item := element(n, inner)
				if item == nil {
					return line
				}
				n, line, path = item, item.Line, strings.TrimPrefix(after, ".")
				continue
			}
			key, rest = strings.Trim(inner, `"'`), after
		} else if n.Kind == yaml.MappingNode {
			key, rest = longest(n, path)
		}
		at, value := field(n, key)
		if at == nil {
			return line
		}
		n, line, path = value, at.Line, strings.TrimPrefix(rest, ".")
	}
	return line
}

// bracket splits "[inner]rest".
func bracket(path string) (inner, rest string, ok bool) {
	if !strings.HasPrefix(path, "[") {
		return "", "", false
	}
	return strings.Cut(path[1:], "]")
}

// element is the item at an index, or the one that a list-map key names.
func element(n *yaml.Node, inner string) *yaml.Node {
	if i, err := strconv.Atoi(inner); err == nil && i >= 0 && i < len(n.Content) {
		return n.Content[i]
	}
	for _, item := range n.Content {
		fits := true
		for pair := range strings.SplitSeq(inner, ",") {
			key, value, ok := strings.Cut(pair, "=")
			fits = fits && ok && text(item, key) == strings.Trim(value, `"`)
		}
		if fits {
			return item
		}
	}
	return nil
}

// longest is the longest key of n that path begins with.
func longest(n *yaml.Node, path string) (key, rest string) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i].Value
		if after, ok := strings.CutPrefix(path, k); ok && len(k) > len(key) && (after == "" || after[0] == '.' || after[0] == '[') {
			key, rest = k, after
		}
	}
	if key == "" { // perhaps a merged one
		i := strings.IndexAny(path, ".[")
		if i < 0 {
			i = len(path)
		}
		key, rest = path[:i], path[i:]
	}
	return key, rest
}

// field is a key of a mapping and its value, also when it comes by a merge.
func field(n *yaml.Node, key string) (at, value *yaml.Node) {
	return fieldIn(n, key, 0)
}

func fieldIn(n *yaml.Node, key string, depth int) (at, value *yaml.Node) {
	n = resolved(n)
	var merged []*yaml.Node
	switch {
	case depth > 10:
	case n.Kind == yaml.SequenceNode && depth > 0: // of a merge
		merged = n.Content
	case n.Kind == yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			switch k := n.Content[i]; {
			case k.Tag == yaml.MergeTag:
				merged = append(merged, n.Content[i+1])
			case k.Kind == yaml.ScalarNode && k.Value == key:
				return k, n.Content[i+1]
			}
		}
	}
	for _, from := range merged {
		if at, value := fieldIn(from, key, depth+1); at != nil {
			return at, value
		}
	}
	return nil, nil
}

// resolved is the node that an alias stands for.
func resolved(n *yaml.Node) *yaml.Node {
	for n != nil && n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// child is the value of a key, aliases followed; nil when there is none.
func child(n *yaml.Node, key string) *yaml.Node {
	_, v := field(n, key)
	return resolved(v)
}

// text is the value of a key that holds text, or "".
func text(n *yaml.Node, key string) string {
	if v := child(n, key); v != nil && v.Kind == yaml.ScalarNode {
		return v.Value
	}
	return ""
}

// locate is the node that a path leads to, and where it is written (its key, or
// itself in a list); where the path ends early, the last one that was there.
func locate(root *yaml.Node, p bundle.Path) (at, value *yaml.Node) {
	at, value = root, root
	for _, s := range p {
		value = resolved(value)
		if s.Index >= 0 {
			if value.Kind != yaml.SequenceNode || s.Index >= len(value.Content) {
				return at, nil
			}
			at = value.Content[s.Index]
			value = at
			continue
		}
		k, v := field(value, s.Key)
		if k == nil {
			return at, nil
		}
		at, value = k, v
	}
	return at, resolved(value)
}
