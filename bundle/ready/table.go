package ready

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"brine/bundle"
)

// The file of rules for kinds, and rules in the annotations of objects and CRDs.

// Table has the rules of kinds. They count for all objects of the kind; of two rules that
// say the same, the object's own wins.
type Table map[schema.GroupKind]*Rules

// ruleNames are the annotations that a file may set for a kind, without their prefix.
var ruleNames = []string{"fail-after", "failed-when", "ready-when", "status-timeout", "timeout", "wait"}

// ReadTable reads a file of rules: KIND.GROUP with a CEL expression, which stands for
// ready-when, or with a map of annotations without their prefix. Its error is all
// problems, with their lines.
func ReadTable(file string, content []byte) (Table, error) {
	var problems bundle.Problems
	wrong := func(line int, format string, args ...any) {
		problems = append(problems, bundle.Problem{Source: bundle.Source{File: file, Line: max(line, 1)}, Message: fmt.Sprintf(format, args...)})
	}
	entries, err := Entries(file, content)
	if err != nil {
		return nil, err
	}
	table := Table{}
	for _, e := range entries {
		kind := schema.ParseGroupKind(e.Name)
		o := &bundle.Object{ID: bundle.ID{GroupKind: kind}, Content: &unstructured.Unstructured{Object: map[string]any{}}}
		if kind.Kind == "" || !strings.Contains(kind.Group, ".") && (kind.Kind[0] < 'A' || kind.Kind[0] > 'Z') {
			wrong(e.Line, "%q is not a kind of Kubernetes: write KIND, or KIND.GROUP, as Deployment.apps", e.Name)
			continue
		}
		annotations, err := e.annotations()
		if err != nil {
			wrong(e.Line, "%s: %v", e.Name, err)
			continue
		}
		o.Content.SetAnnotations(annotations)
		rules, found := compileOwn(o)
		for _, p := range found {
			wrong(e.Line, "%s: %s: %s", e.Name, strings.TrimSuffix(strings.TrimPrefix(p.Path, "metadata.annotations["+bundle.Prefix), "]"), p.Message)
		}
		if rules != nil {
			table[kind] = rules.at(fmt.Sprintf("%s:%d", file, e.Line))
		}
	}
	return table, problems.Err()
}

// Entry is one of a file that is a map: of kinds, or of names of rules.
type Entry struct {
	Name  string
	Line  int
	value *yaml.Node
}

// Text is the entry's value where it is one text.
func (e Entry) Text() (string, error) {
	if e.value.Kind != yaml.ScalarNode || e.value.Tag != "!!str" {
		return "", errors.New("a CEL expression is expected, as text")
	}
	return e.value.Value, nil
}

func (e Entry) annotations() (map[string]string, error) {
	if e.value.Kind != yaml.MappingNode {
		text, err := e.Text()
		return map[string]string{bundle.ReadyWhen: text}, err
	}
	given := map[string]string{}
	if err := e.value.Decode(&given); err != nil {
		return nil, fmt.Errorf("texts are expected: %w", err)
	}
	all := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if !slices.Contains(ruleNames, name) {
			return nil, fmt.Errorf("unknown key %q: a kind can have %s", name, strings.Join(ruleNames, ", "))
		}
		all[bundle.Prefix+name] = given[name]
	}
	if value, ok := given["wait"]; ok && value != bundle.WaitSkip {
		return nil, fmt.Errorf("wait: invalid value %q: use %s, or leave it out", value, bundle.WaitSkip)
	}
	return all, nil
}

// Entries reads a file that is one map, in its order. A name that is there twice is an error.
func Entries(file string, content []byte) ([]Entry, error) {
	at := func(line int, format string, args ...any) error {
		return bundle.Problems{{Source: bundle.Source{File: file, Line: max(line, 1)}, Message: fmt.Sprintf(format, args...)}}
	}
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	var root, second yaml.Node
	if err := decoder.Decode(&root); err != nil && !errors.Is(err, io.EOF) {
		return nil, at(1, "it is not YAML: %v", err)
	}
	if err := decoder.Decode(&second); !errors.Is(err, io.EOF) {
		return nil, at(second.Line, "a file has one map of rules, in one document")
	}
	if root.Kind != yaml.DocumentNode || root.Content[0].Kind != yaml.MappingNode || len(root.Content[0].Content) == 0 {
		return nil, at(root.Line, "it is not a map of rules: each line is a name and a CEL expression")
	}
	var entries []Entry
	nodes := root.Content[0].Content
	for i := 0; i+1 < len(nodes); i += 2 {
		e := Entry{Name: nodes[i].Value, Line: nodes[i].Line, value: nodes[i+1]}
		if slices.ContainsFunc(entries, func(other Entry) bool { return other.Name == e.Name }) {
			return nil, at(e.Line, "%s is there twice", e.Name)
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// Compile reads the annotations of all objects, before anything is written, and those of
// CRDs among them for their resources: kinds with these added is the table that it used.
// There is one problem for each annotation that is wrong.
func Compile(objects []*bundle.Object, kinds Table) (map[bundle.ID]*Rules, Table, []bundle.Problem) {
	all := Table{}
	for _, o := range objects {
		if d, ok := bundle.DefinitionOf(o.Content); ok {
			if rules, _ := compileOwn(o); rules != nil {
				all[d.Kind] = rules.at("CustomResourceDefinition " + o.ID.Name)
			}
		}
	}
	for kind, rules := range kinds {
		all[kind] = rules.or(all[kind])
	}
	of := map[bundle.ID]*Rules{}
	var problems []bundle.Problem
	for _, o := range objects {
		rules, wrong := all.Rules(o)
		problems = append(problems, wrong...)
		if o.ID.Name != "" { // else there may be several
			rules = rules.For(o)
		}
		if rules != nil {
			of[o.ID] = rules
		}
	}
	return of, all, problems
}

// Rules are those of one object: its own, or else its kind's; nil where there are none.
func (t Table) Rules(o *bundle.Object) (*Rules, []bundle.Problem) {
	own, problems := compileOwn(o)
	if own != nil && o.ID.GroupKind == bundle.CRDKind { // the others are about its resources only
		own = &Rules{Timeout: own.Timeout}
	}
	return own.or(t[o.ID.GroupKind]), problems
}

// For are the rules for one object: a Job that its bundle does not suspend has to run.
func (r *Rules) For(o *bundle.Object) *Rules {
	if o.ID.GroupKind != bundle.JobKind || suspends(o.Content) {
		return r
	}
	return (&Rules{runs: true}).or(r)
}

// suspends says whether the bundle suspends a Job. Of a live one that brine applied its fields say so: who
// suspends it else has that field.
func suspends(job *unstructured.Unstructured) bool {
	if !bundle.At[bool](job.Object, "spec", "suspend") {
		return false
	}
	for _, entry := range job.GetManagedFields() {
		if entry.Manager == bundle.FieldManager && entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == "" && entry.FieldsV1 != nil {
			var fields struct {
				Spec map[string]any `json:"f:spec"`
			}
			_ = json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) // the server wrote it
			return fields.Spec["f:suspend"] != nil
		}
	}
	return true
}

// or are the rules with those of kind where they say nothing.
func (r *Rules) or(kind *Rules) *Rules {
	if r == nil || kind == nil {
		return cmp.Or(r, kind)
	}
	return &Rules{
		Timeout: cmp.Or(r.Timeout, kind.Timeout), StatusTimeout: cmp.Or(r.StatusTimeout, kind.StatusTimeout), FailAfter: cmp.Or(r.FailAfter, kind.FailAfter),
		readyWhen: cmp.Or(r.readyWhen, kind.readyWhen), failedWhen: cmp.Or(r.failedWhen, kind.failedWhen),
		Skip: r.Skip || kind.Skip, runs: r.runs,
	}
}

// at are the rules with the place where they stand.
func (r *Rules) at(place string) *Rules {
	for _, e := range []*expression{r.readyWhen, r.failedWhen} {
		if e != nil {
			e.from = place
		}
	}
	return r
}
