package fields

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"brine/bundle"
)

// Rules about fields that are left to others, and their file.

// Rule leaves fields of all objects that it matches to others. A part that is nil
// matches everything; in the others * stands for any text.
type Rule struct {
	Group     *string  `json:"group,omitempty"` // "" is the core group
	Kind      *string  `json:"kind,omitempty"`
	Namespace *string  `json:"namespace,omitempty"` // "" is that of cluster-scoped objects
	Name      *string  `json:"name,omitempty"`
	Fields    Pointers `json:"fields"`
}

func (r *Rule) matches(id bundle.ID) bool {
	return like(r.Group, id.GroupKind.Group) && like(r.Kind, id.GroupKind.Kind) && like(r.Namespace, id.Namespace) && like(r.Name, id.Name)
}

func like(pattern *string, text string) bool { return pattern == nil || Like(*pattern, text) }

// Like says whether a text matches a pattern in which * stands for any text.
func Like(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == text
	}
	text, ok := strings.CutPrefix(text, parts[0])
	last := parts[len(parts)-1]
	for _, part := range parts[1 : len(parts)-1] {
		at := strings.Index(text, part)
		if at < 0 {
			return false
		}
		text = text[at+len(part):]
	}
	return ok && strings.HasSuffix(text, last)
}

// ReadRules reads a file of rules: a list of maps with the keys group, kind,
// namespace, name and fields. Its error is all problems, with their lines.
func ReadRules(file string, content []byte) ([]Rule, error) {
	r := reader{file: file}
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	var root, second yaml.Node
	if err := decoder.Decode(&root); err != nil && !errors.Is(err, io.EOF) {
		return nil, bundle.Problems{{Source: bundle.Source{File: file, Line: lineIn(err)}, Message: "it is not YAML: " + err.Error()}}
	}
	rules := r.rules(&root)
	if err := decoder.Decode(&second); !errors.Is(err, io.EOF) {
		r.wrong(&second, "a file has one list of rules, in one document")
	}
	return rules, r.problems.Err()
}

// lineIn is the line that an error of the YAML parser names.
func lineIn(err error) int {
	m := regexp.MustCompile(`line (\d+)`).FindStringSubmatch(err.Error())
	if m == nil {
		return 1
	}
	line, _ := strconv.Atoi(m[1])
	return line
}

type reader struct {
	file     string
	problems bundle.Problems
}

func (r *reader) wrong(n *yaml.Node, format string, args ...any) {
	r.problems = append(r.problems, bundle.Problem{Source: bundle.Source{File: r.file, Line: max(n.Line, 1)}, Message: fmt.Sprintf(format, args...)})
}

func (r *reader) rules(root *yaml.Node) []Rule {
	list := root
	if root.Kind == yaml.DocumentNode {
		list = root.Content[0]
	}
	if list.Kind != yaml.SequenceNode || len(list.Content) == 0 {
		r.wrong(list, "it is not a list of rules, like [{kind: Deployment, fields: [/spec/replicas]}]")
		return nil
	}
	return bundle.Each(list.Content, func(n *yaml.Node) Rule { return r.rule(target(n)) })
}

func target(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

var ruleKeys = []string{"group", "kind", "namespace", "name", "fields"}

func (r *reader) rule(n *yaml.Node) Rule {
	var rule Rule
	if n.Kind != yaml.MappingNode {
		r.wrong(n, "a rule is a map with the keys %s", strings.Join(ruleKeys, ", "))
		return rule
	}
	seen := map[string]bool{}
	patterns := map[string]**string{"group": &rule.Group, "kind": &rule.Kind, "namespace": &rule.Namespace, "name": &rule.Name}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], target(n.Content[i+1])
		if seen[key.Value] {
			r.wrong(key, "the key %q is there twice", key.Value)
		}
		seen[key.Value] = true
		switch pattern := patterns[key.Value]; {
		case pattern != nil:
			*pattern = r.pattern(key, value)
		case key.Value == "fields":
			rule.Fields = r.pointers(value)
		default:
			hint := "a rule has " + strings.Join(ruleKeys, ", ")
			if best := bundle.Nearest(key.Value, ruleKeys); best != "" {
				hint = "did you mean " + best + "?"
			}
			r.wrong(key, "unknown key %q: %s", key.Value, hint)
		}
	}
	if !seen["fields"] {
		r.wrong(n, "the rule has no fields, like fields: [/spec/replicas]")
	}
	return rule
}

func (r *reader) pattern(key, n *yaml.Node) *string {
	if n.Kind != yaml.ScalarNode || n.Tag != yaml.NodeTagString {
		r.wrong(n, "%s is not text", key.Value)
	}
	return &n.Value
}

func (r *reader) pointers(n *yaml.Node) Pointers {
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
		r.wrong(n, "fields is not a list of JSON pointers, like [/spec/replicas]")
		return nil
	}
	var all Pointers
	for _, item := range n.Content {
		p, err := Parse(target(item).Value)
		if err != nil {
			r.wrong(item, "%s", err)
			continue
		}
		all = append(all, p)
	}
	return all
}

// Of are the fields of each object that are left to others: by its annotation, by
// rules, and those of Automatic.
func Of(objects []*bundle.Object, rules []Rule) map[bundle.ID]Pointers {
	all := map[bundle.ID]Pointers{}
	for _, o := range objects {
		p := asked(o, rules)
		for _, q := range p {
			if o.ID.GroupKind == bundle.SecretKind && q[0] == "stringData" { // what is sent has it as data
				p = append(p, slices.Concat(Pointer{"data"}, q[1:]))
			}
		}
		if len(p) > 0 {
			all[o.ID] = p
		}
	}
	for _, a := range automatic(objects) {
		all[a.Object.ID] = append(all[a.Object.ID], a.pointer)
	}
	return all
}

// asked are those that the user named. Check finds what is wrong with the
// annotation.
func asked(o *bundle.Object, rules []Rule) Pointers {
	var all Pointers
	if text, ok := o.Content.GetAnnotations()[bundle.IgnoreFields]; ok {
		all, _ = List(text)
	}
	for _, r := range rules {
		if r.matches(o.ID) {
			all = append(all, r.Fields...)
		}
	}
	return all
}

// Left are the fields that the bundle writes, that it leaves to others without
// being asked, and that nobody named.
func Left(objects []*bundle.Object, rules []Rule) []Automatic {
	return slices.DeleteFunc(automatic(objects), func(a Automatic) bool {
		named := slices.ContainsFunc(asked(a.Object, rules), func(p Pointer) bool { return p.contains(a.pointer) })
		return named || !written(a.Object.Content.Object, a.pointer)
	})
}

// written says whether the bundle writes a field.
func written(value any, p Pointer) bool {
	if len(p) == 0 {
		return true
	}
	switch value := value.(type) {
	case map[string]any:
		for name, below := range value {
			if matches(p[0], name) && written(below, p[1:]) {
				return true
			}
		}
	case []any:
		for i, below := range value {
			if matches(p[0], strconv.Itoa(i)) && written(below, p[1:]) {
				return true
			}
		}
	}
	return false
}
