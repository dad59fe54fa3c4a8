package read

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"brine/bundle"
)

// From nodes to values as JSON has them, within limits: aliases, merges, keys that are there
// twice.

var (
	errTooDeep  = fmt.Errorf("nested more than %d levels deep", maxDepth)
	errNoNumber = errors.New("not a number that JSON can hold: put it in quotes if it is text")
)

// What one document may grow to through its aliases, in values and in bytes of
// text: far more than a server accepts, far less than hurts.
const (
	maxAliased      = 200_000
	maxAliasedBytes = 16 << 20
	// maxReported is how many problems of one object are reported; the rest is counted.
	maxReported = 100
)

// converter makes JSON values (map[string]any, []any, string, int64, float64,
// bool, nil) of a document's nodes: what kubectl would make of them, or a
// problem where Salt would read something else.
type converter struct {
	doc        *document
	path       bundle.Path
	problems   bundle.Problems
	warnings   []bundle.Problem
	unreported int        // problems beyond maxReported
	root       *yaml.Node // of the object
	kind       string     // of the object, as it is written
	secret     *bool      // see quotable; nil: not known yet
	duplicates bool       // Options.DuplicateKeys

	depth     int
	expanding []*yaml.Node // the anchors being expanded, against cycles
	*budget
}

// budget is what a document's aliases have made of it so far.
type budget struct {
	aliased, bytes int
	overgrown      bool // and that was reported
}

// room counts one value that came through an alias, and reports whether the
// document may grow by it (against the "billion laughs").
func (b *budget) room(n *yaml.Node) bool {
	b.aliased++
	b.bytes += len(n.Value)
	return b.aliased <= maxAliased && b.bytes <= maxAliasedBytes
}

func (c *converter) source(n *yaml.Node) bundle.Source {
	return bundle.Source{File: c.doc.file, Line: c.doc.line - 1 + n.Line}
}

func (c *converter) problem(n *yaml.Node, format string, args ...any) {
	if len(c.problems) >= maxReported {
		c.unreported++
	} else {
		c.problems = append(c.problems, bundle.Problem{Source: c.source(n), Path: c.path.String(), Message: fmt.Sprintf(format, args...)})
	}
}

func clip(s string) string { return bundle.Clip(s, 60) }

func (c *converter) value(n *yaml.Node) any {
	c.depth++
	defer func() { c.depth-- }()
	if c.depth > maxDepth {
		c.problem(n, "%v", errTooDeep)
		return nil
	}
	if len(c.expanding) > 0 && !c.room(n) {
		c.tooMuch(n)
		return nil
	}
	switch n.Kind {
	case yaml.AliasNode:
		return c.alias(n)
	case yaml.MappingNode:
		if n.Tag != yaml.NodeTagMap {
			c.problem(n, "%s", c.badTag(n))
		}
		return c.mapping(n)
	case yaml.SequenceNode:
		if n.Tag != yaml.NodeTagSeq {
			c.problem(n, "%s", c.badTag(n))
		}
		list := make([]any, len(n.Content))
		for i, item := range n.Content {
			c.path = c.path.Item(i)
			list[i] = c.value(item)
			c.path = c.path[:len(c.path)-1]
		}
		return list
	default:
		return c.scalar(n)
	}
}

func (c *converter) tooMuch(n *yaml.Node) {
	if !c.overgrown {
		c.overgrown = true
		c.problem(n, "aliases make this document grow beyond %d values or %d MiB", maxAliased, maxAliasedBytes>>20)
	}
}

func (c *converter) alias(n *yaml.Node) any {
	if slices.Contains(c.expanding, n.Alias) {
		c.problem(n, "an alias that contains itself")
		return nil
	}
	c.expanding = append(c.expanding, n.Alias)
	defer func() { c.expanding = c.expanding[:len(c.expanding)-1] }()
	return c.value(n.Alias)
}

func (c *converter) mapping(n *yaml.Node) map[string]any {
	m := make(map[string]any, len(n.Content)/2)
	var merges []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		kn, vn := n.Content[i], n.Content[i+1]
		if kn.Tag == yaml.MergeTag {
			if merges = append(merges, vn); len(merges) > 1 { // Salt takes the last, others the first
				c.problem(kn, duplicateKey, c.doc.line-1+firstLine(n, kn))
			}
			continue
		}
		key, ok := c.key(kn)
		if !ok {
			continue
		}
		c.path = c.path.Field(key)
		if _, twice := m[key]; twice {
			c.twice(n, kn)
		}
		m[key] = c.value(vn)
		c.path = c.path[:len(c.path)-1]
	}
	for _, merge := range merges {
		c.merge(m, merge)
	}
	return m
}

// identifying are the paths that say which object it is.
var identifying = []string{"apiVersion", "kind", "metadata", "metadata.name", "metadata.namespace", "metadata.generateName"}

const duplicateKey = "duplicate key; the first is on line %d"

// twice reports a key that repeats another one. The last counts.
func (c *converter) twice(n, kn *yaml.Node) {
	first := c.doc.line - 1 + firstLine(n, kn)
	if !c.duplicates || slices.Contains(identifying, c.path.String()) {
		c.problem(kn, duplicateKey, first)
		return
	}
	c.warnings = append(c.warnings, bundle.Problem{Source: c.source(kn), Path: c.path.String(), Message: fmt.Sprintf(duplicateKey+", and does not count", first)})
}

// firstLine is where the key that kn repeats stood first.
func firstLine(n, kn *yaml.Node) int {
	for i := 0; i < len(n.Content); i += 2 {
		if k := n.Content[i]; k != kn && k.Value == kn.Value {
			return k.Line
		}
	}
	return n.Line
}

// merge puts what m does not have itself into it; of several, the first wins.
func (c *converter) merge(m map[string]any, n *yaml.Node) {
	v := c.value(n)
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	for _, v := range list {
		from, ok := v.(map[string]any)
		if !ok {
			if !c.overgrown {
				c.problem(n, "<< merges mappings, and this is not a mapping")
			}
			return
		}
		for key, v := range from {
			if _, own := m[key]; !own {
				m[key] = v
			}
		}
	}
}

// key is a mapping's key as JSON has it. Whole numbers are taken as they are
// spelled (a ConfigMap of ports), as long as everybody reads the same.
func (c *converter) key(n *yaml.Node) (string, bool) {
	if n = resolved(n); n.Kind != yaml.ScalarNode {
		if n.Kind == yaml.MappingNode && n.Style&yaml.FlowStyle != 0 {
			c.problem(n, "{{ is left-over Jinja (YAML reads it as a mapping for a key): render the file before it gets here, or put the value in quotes")
		} else {
			c.problem(n, "a key must be text, not a mapping or a list")
		}
		return "", false
	}
	if n.Tag == yaml.NodeTagString && n.Style != 0 && n.Style&yaml.TaggedStyle == 0 {
		return n.Value, true
	}
	if isPlain(n) && yesNo[strings.ToLower(n.Value)] {
		return n.Value, true // y and n are never meant as booleans here
	}
	v := c.scalar(n)
	if s, ok := v.(string); ok {
		return s, true
	}
	if v != nil && n.Value == fmt.Sprint(v) { // 8080, 1.5, true
		return n.Value, true
	}
	c.problem(n, "the key %s is a %s to YAML: write %q", clip(n.Value), typeName(v), clip(n.Value))
	return n.Value, true
}
