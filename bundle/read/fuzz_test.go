package read

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"brine/bundle"
)

// FuzzRead: nothing that is read panics, whatever it is; and an object that is
// read has the content that kubectl would send, unless one of the traps that
// are read differently on purpose is in the text.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		cm("data: {a: x, b: 'yes', 8080: y}\n"),
		cr("spec: {a: [1, 1.5, 0x1f, 1e3, 1_000, .5, -0, +5, ~, yes, Off, null, 12:30, 2024-01-31]}\n"),
		cr("spec:\n  a: &a {x: 1}\n  b: *a\n  c: |\n    text\n    ---\n  d: >-\n    folded\n    text\n"),
		"%YAML 1.1\n---\n" + cr("...\n---\n") + cr(""),
		"#!jinja\n\uFEFF" + strings.ReplaceAll(cr("spec: {a: \"\\u00e9\\n\"}\n"), "\n", "\r\n"),
		`{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"a":"\ud83d\ude00"}}]}`,
		cr("spec: {{ x }}\n"), cr("\tx: y"), cr("? {a: b}\n: c\n"), cr("- a\n"), cr("spec: !!python/str 5\n"),
		deployment("'{{ x }}'", "        env: [{name: A, value: 5}]\n"),
		"#!jinja\n\uFEFF",
		`{"local": {"a": {"x.object_present": [{"manifest": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}}, {"require": [{"x": "b"}]}], "__sls__": "s"}}}`,
		`[{"state": "x", "fun": "object_absent", "name": "a", "__id__": "a", "kind": "ConfigMap", "apiVersion": "v1"}]`,
		thingCRD + "---\n" + apiService,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		b, err := read(text)
		if err != nil {
			var problems bundle.Problems
			if !errors.As(err, &problems) || len(problems) == 0 {
				t.Fatalf("not Problems: %v", err)
			}
			lines := strings.Count(text, "\n") + strings.Count(text, "\r") + strings.Count(text, "\u0085") + strings.Count(text, "\u2028") + strings.Count(text, "\u2029") + 2 // the parser puts an empty value behind the last line
			for _, p := range problems {
				if p.Source.Line < 0 || p.Source.Line > lines || p.Message == "" {
					t.Errorf("a text of %d lines has the problem %+v", lines, p)
				}
			}
			return
		}
		if len(b.Objects) == 1 && !readDifferently.MatchString(text) {
			compareWithKubectl(t, text, b.Objects[0])
		}
		_ = Resolve(b, Resolver{Namespace: "n"})
		for _, o := range b.Objects {
			_ = o.Content.DeepCopy() // panics on anything but JSON values
			if line := o.Line("spec.a[0].b"); line < o.Source.Line {
				t.Errorf("%s has a line %d", o.Source, line)
			}
		}
	})
}

// readDifferently: lists, several documents, what is dropped, merge keys (the
// library lets earlier keys lose), y and n, tags, and keys that only go by
// their text.
var readDifferently = regexp.MustCompile(`(?i)List|---|\.\.\.|%|status|metadata:.*\n.*metadata|<<|\by\b|\bn\b|!|\?|uid|creationTimestamp|generation|resourceVersion|managedFields|selfLink|deletion|namespace:|labels|annotations|:\s*\.\d|[\d.]+:|\\`)

func compareWithKubectl(t *testing.T, text string, o *bundle.Object) {
	t.Helper()
	js, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		return // brine reads more
	}
	var want unstructured.Unstructured
	if err := want.UnmarshalJSON(js); err != nil {
		return
	}
	if !reflect.DeepEqual(o.Content.Object, want.Object) {
		t.Errorf("read\n%s\nkubectl\n%s", fmt.Sprintf("%#v", o.Content.Object), fmt.Sprintf("%#v", want.Object))
	}
}

// The same property over what is known to be read alike.
func TestReadAsKubectlDoes(t *testing.T) {
	for _, more := range []string{
		"spec: {a: [1, 1.5, 0x1f, 0b11, 0o17, 1e3, 1_000, .5, -0, +5, ~, yes, Off, null, 12:30, 2024-01-31, 1e30, 089]}\n",
		"spec:\n  a: &a {x: 1}\n  b: *a\n  c: |\n    text\n    more\n  d: >-\n    folded\n    text\n  e: plain\n    over lines\n",
		"spec: {\"a\": \"\\u00e9\\t\\x41\", 'it''s': 5, true: x}\n",
		"spec:\n- a\n- - b\n  - c\n-\n  d: e # comment\n",
	} {
		b := mustRead(t, cr(more))
		compareWithKubectl(t, cr(more), b.Objects[0])
	}
}
