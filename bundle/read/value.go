package read

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"brine/bundle"
	"brine/bundle/sls"
)

var (
	errTooDeep  = fmt.Errorf("nested more than %d levels deep", maxDepth)
	errNoNumber = errors.New("not a number that JSON can hold: put it in quotes if it is text")
)

// What one document may grow to through its aliases, in values and in bytes of
// text: far more than a server accepts, far less than hurts.
const (
	maxAliased      = 200_000
	maxAliasedBytes = 16 << 20
	// maxTold is how many problems of one object are told; the rest is counted.
	maxTold = 100
)

// converter makes JSON values (map[string]any, []any, string, int64, float64,
// bool, nil) of a document's nodes: what kubectl would make of them, or a
// problem where Salt would read something else.
type converter struct {
	doc      *document
	path     bundle.Path
	problems bundle.Problems
	warnings []bundle.Problem
	untold   int        // problems beyond maxTold
	root     *yaml.Node // of the object
	secret   *bool      // see quotable; nil: not known yet

	depth     int
	expanding []*yaml.Node // the anchors being expanded, against cycles
	*budget
}

// budget is what a document's aliases have made of it so far.
type budget struct {
	aliased, bytes int
	overgrown      bool // and that was told
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
	if len(c.problems) >= maxTold {
		c.untold++
	} else {
		c.problems = append(c.problems, bundle.Problem{Source: c.source(n), Path: c.path.String(), Message: fmt.Sprintf(format, args...)})
	}
}

// shown is a value as a message may show it.
func (c *converter) shown(n *yaml.Node) string {
	if !c.quotable() {
		return "this value"
	}
	return clip(n.Value)
}

// quotable says whether messages may show values: not where anything in the
// object says that it is a Secret, be it in a merge or in a template.
func (c *converter) quotable() bool {
	if c.secret == nil {
		is := saysSecret(c.root, map[*yaml.Node]bool{})
		c.secret = &is
	}
	return !*c.secret
}

func saysSecret(n *yaml.Node, seen map[*yaml.Node]bool) bool {
	if n == nil || seen[n] {
		return false
	}
	if n.Kind == yaml.AliasNode {
		seen[n] = true
		return saysSecret(n.Alias, seen)
	}
	for i, inner := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 1 && value(n.Content[i-1]) == "kind" && strings.HasPrefix(value(inner), "Secret") {
			return true
		}
		if inner.Kind != yaml.ScalarNode && saysSecret(inner, seen) {
			return true
		}
	}
	return false
}

// value is a scalar's text, through an alias, too.
func value(n *yaml.Node) string {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n.Value
}

func clip(s string) string {
	if r := []rune(s); len(r) > 60 {
		return string(r[:60]) + "…"
	}
	return s
}

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
			merges = append(merges, vn)
			continue
		}
		key, ok := c.key(kn)
		if !ok {
			continue
		}
		c.path = c.path.Field(key)
		if _, twice := m[key]; twice {
			c.problem(kn, "duplicate key; the first is on line %d", c.doc.line-1+firstLine(n, kn))
		}
		m[key] = c.value(vn)
		c.path = c.path[:len(c.path)-1]
	}
	for _, merge := range merges {
		c.merge(m, merge)
	}
	return m
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
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Kind != yaml.ScalarNode {
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
		return n.Value, true // y and n: nobody means a boolean
	}
	v := c.scalar(n)
	if s, ok := v.(string); ok {
		return s, true
	}
	if v != nil && n.Value == fmt.Sprint(v) { // 8080, 1.5, true
		return n.Value, true
	}
	c.problem(n, "the key %s is a %s to YAML: write %q", n.Value, typeName(v), n.Value)
	return n.Value, true
}

// yaml11 are the words that are booleans to YAML 1.1, so to Salt and kubectl,
// but not to the parser. yesNo is y and n, which only kubectl reads so: Salt
// keeps them as text.
var yaml11 = map[string]bool{
	"yes": true, "Yes": true, "YES": true, "on": true, "On": true, "ON": true,
	"no": false, "No": false, "NO": false, "off": false, "Off": false, "OFF": false,
}

var yesNo = map[string]bool{"y": true, "n": true}

func isPlain(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.Style == 0
}

func typeName(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case int64, float64:
		return "number"
	case string:
		return "text"
	case []any:
		return "list"
	}
	return "mapping"
}

func (c *converter) scalar(n *yaml.Node) any {
	switch n.Tag {
	case yaml.NodeTagString:
		if strings.HasPrefix(n.Value, "__slot__:") && !sls.CanFill(c.path.String(), n.Value) {
			c.problem(n, "Salt left a __slot__ in place, which only Salt can fill, at run time: for a checksum of a ConfigMap or Secret put the annotation brine.dev/digest-of on the workload, otherwise write the value")
		}
		if n.Style != 0 {
			return n.Value
		}
		if len(n.Value) <= 3 {
			if b, ok := yaml11[n.Value]; ok {
				return b
			}
			if yesNo[strings.ToLower(n.Value)] && c.quotable() {
				c.warn(n, "%s is text to Salt, and to brine, but a boolean to kubectl: write %q or %v", n.Value, n.Value, strings.EqualFold(n.Value, "y"))
			}
		}
		return n.Value
	case yaml.NodeTagNull:
		return nil
	case yaml.NodeTagBool:
		return c.boolean(n)
	case yaml.NodeTagInt, yaml.NodeTagFloat:
		v, err := number(n.Value)
		if err != nil {
			if !c.quotable() {
				err = errNoNumber // and not what it would be as one
			}
			c.problem(n, "%s: %v", c.shown(n), err)
			return nil
		}
		if i, ok := v.(int64); ok && isOctal(n.Value) && c.quotable() {
			c.warn(n, "%s is %d here and to kubectl (octal), but Salt's own loader reads %s: write %d to be read the same everywhere", n.Value, i, strings.TrimLeft(n.Value, "0"), i)
		}
		return v
	case "!!timestamp", "!!python/unicode", "!!python/str", "tag:yaml.org,2002:python/unicode", "tag:yaml.org,2002:python/str":
		return n.Value
	}
	c.problem(n, "%s", c.badTag(n))
	return n.Value
}

func (c *converter) warn(n *yaml.Node, format string, args ...any) {
	if len(c.warnings) < maxTold {
		c.warnings = append(c.warnings, bundle.Problem{Source: c.source(n), Path: c.path.String(), Message: fmt.Sprintf(format, args...)})
	}
}

func (c *converter) boolean(n *yaml.Node) any {
	if b, ok := yaml11[n.Value]; ok { // only with a tag
		return b
	}
	switch n.Value {
	case "true", "True", "TRUE":
		return true
	case "false", "False", "FALSE":
		return false
	}
	c.problem(n, "%s is not a boolean: write true or false", c.shown(n))
	return nil
}

func (c *converter) badTag(n *yaml.Node) string {
	tag := n.Tag
	switch {
	case !c.quotable(): // an unquoted password that begins with ! looks like a tag
		return "a YAML tag that has no meaning here: put a value that begins with ! in quotes"
	case strings.Contains(tag, "python/"):
		return fmt.Sprintf("the Python tag %s: the object was dumped by Python as it is; dump plain data (yaml.safe_dump, or |json in Jinja)", clip(tag))
	case tag == "!!binary":
		return "the tag !!binary: write the base64 text itself, without the tag"
	}
	return fmt.Sprintf("the tag %s means nothing to Kubernetes: remove it, or put a value that begins with ! in quotes", clip(tag))
}

// isOctal: 0644, which YAML 1.1 reads as octal.
func isOctal(s string) bool {
	return len(s) > 1 && s[0] == '0' && s[1] >= '0' && s[1] <= '9'
}

// number reads a number as YAML 1.1 and kubectl do, without losing a digit of
// a whole one. Whole floats become int64, as they do on their way through a
// server: 1.0 and 1 are the same JSON.
func number(s string) (any, error) {
	plain := strings.ReplaceAll(s, "_", "")
	if i, err := strconv.ParseInt(plain, 0, 64); err == nil {
		return i, nil
	}
	if len(plain) > 400 { // beyond any float
		return nil, errNoNumber
	}
	if i, ok := new(big.Int).SetString(plain, 0); ok {
		f, exact := new(big.Float).SetInt(i).Float64()
		if exact != big.Exact || math.IsInf(f, 0) {
			return nil, fmt.Errorf("a number this large loses digits in Kubernetes: put it in quotes if it is text, or write %g if the field takes a number", f)
		}
		return f, nil
	}
	f, err := strconv.ParseFloat(plain, 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		return nil, errNoNumber
	}
	if f == math.Trunc(f) && math.Abs(f) < 1<<63 {
		return int64(f), nil
	}
	return f, nil
}
