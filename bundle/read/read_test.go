package read

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"brine/bundle"
)

// read reads text as standard input.
func read(text string) (*bundle.Bundle, error) {
	return Bundle(context.Background(), Options{Files: []string{Stdin}, Stdin: strings.NewReader(text)})
}

func mustRead(t *testing.T, text string) *bundle.Bundle {
	t.Helper()
	b, err := read(text)
	if err != nil {
		t.Fatalf("read: %v", err)
	}
	return b
}

// cm is a ConfigMap called a with more lines behind it.
func cm(more string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n" + more
}

// cr is a custom resource called a, whose fields are its own.
func cr(more string) string {
	return "apiVersion: example.com/v1\nkind: Thing\nmetadata:\n  name: a\n" + more
}

// deployment has a container called c in namespace n.
func deployment(image, more string) string {
	return "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: a\n  namespace: n\nspec:\n  template:\n    spec:\n      containers:\n      - name: c\n        image: " + image + "\n" + more
}

// Every trap of a YAML bundle that must stop a run. want are parts of the one
// line that tells it: first where, then what and what to write.
func TestReadRefuses(t *testing.T) {
	tests := []struct {
		name, text string
		want       []string
	}{
		{"yes as a label", cm("  labels:\n    on-call: yes\n"), []string{"-:6:", "metadata.labels.on-call", `write "yes"`}},
		{"off as an annotation", cm("  annotations:\n    example.com/x: off\n"), []string{"-:6:", "metadata.annotations[example.com/x]", `write "off"`}},
		{"true as a label", cm("  labels: {x: true}\n"), []string{"-:5:", "metadata.labels.x", `write "true"`}},
		{"a number as a label", cm("  labels: {x: 1.20}\n"), []string{"-:5:", `write "1.20"`}},
		{"a number in ConfigMap data", cm("data:\n  port: 8080\n"), []string{"-:6:", "ConfigMap a", "data.port", `write "8080"`}},
		{"a mapping in ConfigMap data", cm("data:\n  conf:\n    a: b\n"), []string{"-:6:", "data.conf", "is a mapping"}},
		{"a boolean in matchLabels", deployment("x", "  selector:\n    matchLabels:\n      x: on\n"), []string{"-:14:", "spec.selector.matchLabels.x", `write "on"`}},
		{"a boolean in nodeSelector", deployment("x", "      nodeSelector:\n        x: true\n"), []string{"-:13:", "nodeSelector.x", `write "true"`}},
		{"a number as a pod's label", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec:\n  template:\n    metadata:\n      labels:\n        v: 1\n", []string{"-:8:", "spec.template.metadata.labels.v", `write "1"`}},
		{"a boolean in env", deployment("x", "        env:\n        - name: X\n          value: yes\n"), []string{"-:14:", "env[0].value", `write "yes"`}},
		{"a number in args", deployment("x", "        args: [--x, 5]\n"), []string{"-:12:", "args[1]", `write "5"`}},
		{"a boolean in a toleration", deployment("x", "      tolerations:\n      - {key: a, value: true}\n"), []string{"-:13:", "tolerations[0].value", `write "true"`}},
		{"a boolean in matchExpressions", deployment("x", "  selector:\n    matchExpressions:\n    - {key: a, operator: In, values: [no]}\n"), []string{"-:14:", "matchExpressions[0].values[0]", `write "no"`}},
		{"a boolean as a key", cm("data:\n  on: x\n"), []string{"-:6:", `write "on"`}},
		{"an octal number as a key", cm("data:\n  0644: x\n"), []string{"-:6:", `write "0644"`}},
		{"a number as a name", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: 123\n", []string{"-:4:", "metadata.name", `write "123"`}},
		{"a version that is a number", "apiVersion: 1\nkind: ConfigMap\nmetadata: {name: a}\n", []string{"-:1:", "apiVersion", "must be text"}},
		{"large integers", cr("spec:\n  n: 18446744073709551615\n"), []string{"-:6:", "spec.n", "18446744073709551615", "quotes"}},
		{"one that a float holds", cr("spec:\n  n: 18446744073709551616\n"), []string{"-:6:", "spec.n", "loses digits", "quotes", "or write 1.8446744073709552e+19"}},
		{"just beyond int64", cr("spec:\n  n: -9223372036854775809\n"), []string{"-:6:", "spec.n", "loses digits", "quotes"}},
		{"not a number", cr("spec:\n  n: .nan\n"), []string{"-:6:", "spec.n", "quotes"}},
		{"infinity", cr("spec:\n  n: [.inf]\n"), []string{"-:6:", "spec.n[0]: .inf: not a number that JSON can hold: put it in quotes"}},
		{"infinity below", cr("spec:\n  n: -.inf\n"), []string{"-:6:", "spec.n: -.inf: not a number that JSON can hold"}},
		{"too large a float", cr("spec:\n  n: 1.5e+400\n"), []string{"-:6:", "spec.n: 1.5e+400: not a number that JSON can hold"}},
		{"too small a float", cr("spec:\n  n: 1e-400\n"), []string{"-:6:", "spec.n: 1e-400: a number with these digits becomes 0 in Kubernetes: put it in quotes"}},
		{"more digits than a float has", cr("spec:\n  n: 3.14159265358979323846\n"), []string{"-:6:", "spec.n", "becomes 3.141592653589793 in Kubernetes", "quotes", "or write 3.141592653589793 if"}},
		{"a whole float with more digits", cr("spec:\n  n: 9007199254740993.0\n"), []string{"-:6:", "spec.n", "becomes 9.007199254740992e+15"}},
		{"in JSON", `{"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t", "namespace": "ns"},` + "\n" + `"spec": {"n": 1e-400}}`, []string{"-:2:", "spec.n: 1e-400", "becomes 0"}},
		{"duplicate keys", cm("data:\n  a: x\n  b: x\n  a: x\n"), []string{"-:8:", "data.a", "duplicate key", "line 6"}},
		{"duplicate keys in JSON", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},` + "\n" + `"data":{"a":"x","a":"y"}}`, []string{"-:2:", "data.a", "duplicate key", "line 2"}},
		{"tabs", cm("data:\n  a: x\n\tb: y\n"), []string{"-:7:", "tab"}},
		{"tabs after spaces", cm("data:\n  a: x\n  \tb: y\n"), []string{"-:7:", "tab"}},
		{"a Python object", cm("data: !!python/object/apply:collections.OrderedDict\n  a: x\n"), []string{"-:5:", "data", "Python tag !!python/object/apply:collections.OrderedDict"}},
		{"a Python tuple", cr("spec: !!python/tuple [a]\n"), []string{"-:5:", "spec", "Python tag"}},
		{"an unknown tag", cr("spec: {a: !foo x}\n"), []string{"-:5:", "spec.a", "!foo", "quotes"}},
		{"binary", cm("binaryData: {a: !!binary aGk=}\n"), []string{"-:5:", "binaryData.a", "base64"}},
		{"Jinja left over in a name", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: \"{{ x }}\"\n", []string{"-:4:", "metadata.name", "Jinja"}},
		{"Jinja left over in a namespace", cm("  namespace: \"{{ ns }}\"\n"), []string{"-:5:", "metadata.namespace", "Jinja"}},
		{"Jinja left over in a kind", "apiVersion: v1\nkind: '{{ kind }}'\nmetadata: {name: a}\n", []string{"-:2:", "kind", "Jinja"}},
		{"Jinja left over in apiVersion", "apiVersion: '{% v %}'\nkind: ConfigMap\nmetadata: {name: a}\n", []string{"-:1:", "apiVersion", "Jinja"}},
		{"Jinja left over in an image", deployment("'{{ image }}'", ""), []string{"-:11:", "spec.template.spec.containers[0].image", "Jinja"}},
		{"Jinja left over in a reference", deployment("x", "      serviceAccountName: '{{ sa }}'\n"), []string{"-:12:", "serviceAccountName", "Jinja"}},
		{"Jinja without quotes", cm("data:\n  a: {{ x }}\n"), []string{"-:6:", "Jinja"}},
		{"Jinja without quotes and more", cm("data:\n  a: {{ x }}-b\n  c: d\n"), []string{"-:6:", "Jinja"}},
		{"a Jinja block", "{% if x %}\n" + cm("{% endif %}\n"), []string{"-:1:", "Jinja"}},
		{"a Jinja block further down", cm("data:\n{% for x in y %}\n  a: b\n{% endfor %}\n"), []string{"-:6:", "Jinja"}},
		{"None as a name", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: None\n", []string{"-:4:", "metadata.name", "None", "pillar"}},
		{"None as a namespace", cm("  namespace: None\n"), []string{"-:5:", "metadata.namespace", "None"}},
		{"None as an image", deployment("None", ""), []string{"-:11:", "image", "None"}},
		{"None in an image", deployment("reg.example.com/None:None", ""), []string{"-:11:", "image", "None"}},
		{"None as a registry", deployment("None/shop:1", ""), []string{"-:11:", "image", "None"}},
		{"None as a tag", deployment("reg:5000/shop:None", ""), []string{"-:11:", "image", "None"}},
		{"an empty name", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: ''\n", []string{"-:4:", "metadata.name", "empty"}},
		{"a null name", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name:\n", []string{"-:4:", "metadata.name", "empty"}},
		{"no name", "apiVersion: v1\nkind: ConfigMap\nmetadata: {}\n", []string{"-:3:", "metadata.name", "missing"}},
		{"no metadata", "apiVersion: v1\nkind: ConfigMap\n", []string{"-:1:", "metadata: is missing"}},
		{"no kind", "\napiVersion: v1\nmetadata: {name: a}\n", []string{"-:2:", "kind: is missing"}},
		{"no apiVersion", "kind: ConfigMap\nmetadata: {name: a}\n", []string{"-:1:", "apiVersion: is missing"}},
		{"a bad apiVersion", "apiVersion: a/b/c\nkind: ConfigMap\nmetadata: {name: a}\n", []string{"-:1:", "apiVersion", "apps/v1"}},
		{"a bad kind", "apiVersion: v1\nkind: Config Map\nmetadata: {name: a}\n", []string{"-:2:", "kind"}},
		{"a slash in a name", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a/b}\n", []string{"-:3:", "metadata.name", "'/'"}},
		{"white space in a name", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a b}\n", []string{"-:3:", "white space"}},
		{"too long a name", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + strings.Repeat("a", 254) + "}\n", []string{"-:3:", "254", "253"}},
		{"an impossible namespace", cm("  namespace: A.b\n"), []string{"-:5:", "metadata.namespace"}},
		{"generateName", "apiVersion: batch/v1\nkind: Job\nmetadata:\n  generateName: a-\n", []string{"-:4:", "metadata.generateName", "--allow-generate-name"}},
		{"a slot", deployment("x", "      nodeName: __slot__:salt:foo.bar\n"), []string{"-:12:", "Deployment.apps n/a", "nodeName", "__slot__", "brine.dev/digest-of"}},
		{"a document that is text", "an error occurred\n", []string{"-:1:", "mapping", "single value"}},
		{"a document that is a list", "- a\n- b\n", []string{"-:1:", "mapping", "a list"}},
		{"labels that are a list", cm("  labels: [a]\n"), []string{"-:5:", "metadata.labels", "mapping"}},
		{"an anchor that is not there", cm("data:\n  a: *password\n"), []string{"-:6:", "quotes"}},
		{"an alias that contains itself", cr("spec: &a\n  b: *a\n"), []string{"-:6:", "contains itself"}},
		{"an alias bomb", cr("spec:\n  a: &a [x,x,x,x,x,x,x,x,x,x]\n  b: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\n  c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\n  d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\n  e: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\n  f: [*e,*e,*e,*e,*e,*e,*e,*e,*e,*e]\n"), []string{"aliases"}},
		{"a bomb of lists", "apiVersion: v1\nkind: List\nitems:\n- &a {apiVersion: v1, kind: List, items: [*a, *a]}\n", []string{"-:4:", "contains itself"}},
		{"too deep", cr("spec: " + strings.Repeat("[", 2000) + strings.Repeat("]", 2000) + "\n"), []string{"-:5:", "deep"}},
		{"two merges", cr("spec: {<<: {a: 1},\n  <<: {a: 2}}\n"), []string{"-:6:", "duplicate key; the first is on line 5"}},
		{"a merge of no mapping", cr("spec: {<<: 5}\n"), []string{"-:5:", "<<"}},
		{"wrong indentation", cm("data:\n  a: x\n b: y\nc: z\n"), []string{"-:7:", "not YAML"}},
		{"UTF-16", "\xff\xfea\x00", []string{"-: ", "UTF-16", "UTF-8"}},
		{"not UTF-8", cm("data: {a: \xe9}\n"), []string{"-:5:", "UTF-8"}},
		{"a control character", cm("data: {a: \x01}\n"), []string{"-:5:", "control character"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b, err := read(tt.text)
			var problems bundle.Problems
			if !errors.As(err, &problems) {
				t.Fatalf("got %v and the error %v, want Problems", b, err)
			}
			line := problems[0].Error()
			if len(problems) > 1 {
				t.Errorf("one cause is told as %d problems:\n%v", len(problems), err)
			}
			if !strings.HasPrefix(line, tt.want[0]) && !strings.Contains(line, tt.want[0]) {
				t.Errorf("not at %s: %s", tt.want[0], line)
			}
			for _, part := range tt.want {
				if !strings.Contains(line, part) {
					t.Errorf("%q is not in: %s", part, line)
				}
			}
		})
	}
}

// What is read, and as what. path leads to the value that is checked.
func TestReadValues(t *testing.T) {
	tests := []struct {
		name, text string
		path       []string
		want       any
	}{
		{"yes is true", cr("spec: {a: yes}\n"), []string{"spec", "a"}, true},
		{"Off is false", cr("spec: {a: Off}\n"), []string{"spec", "a"}, false},
		{"quoted yes is text", cr("spec: {a: 'yes'}\n"), []string{"spec", "a"}, "yes"},
		{"y is text, as to Salt", cr("spec: {a: y}\n"), []string{"spec", "a"}, "y"},
		{"y is a key", cr("spec: {gridPos: {y: 1}}\n"), []string{"spec", "gridPos", "y"}, int64(1)},
		{"octal mode", cr("spec: {defaultMode: 0644}\n"), []string{"spec", "defaultMode"}, int64(420)},
		{"octal mode of YAML 1.2", cr("spec: {defaultMode: 0o644}\n"), []string{"spec", "defaultMode"}, int64(420)},
		{"a date", cr("spec: {a: 2024-01-31}\n"), []string{"spec", "a"}, "2024-01-31"},
		{"a time", cr("spec: {a: 12:30}\n"), []string{"spec", "a"}, "12:30"},
		{"a timestamp", cr("spec: {a: 2024-01-31T10:00:00Z}\n"), []string{"spec", "a"}, "2024-01-31T10:00:00Z"},
		{"every digit of a large integer", cr("spec: {a: 9223372036854775807}\n"), []string{"spec", "a"}, int64(9223372036854775807)},
		{"a large float", cr("spec: {a: 1e+22}\n"), []string{"spec", "a"}, 1e22},
		{"a float that has no exact one", cr("spec: {a: 0.1}\n"), []string{"spec", "a"}, 0.1},
		{"as a program prints it with 17 digits", cr("spec: {a: -0.10000000000000001}\n"), []string{"spec", "a"}, -0.1},
		{"with all its digits", cr("spec: {a: 0.1000000000000000055511151231257827021181583404541015625}\n"), []string{"spec", "a"}, 0.1},
		{"with zeros at the end", cr("spec: {a: 1.500000000000000000000000}\n"), []string{"spec", "a"}, 1.5},
		{"the smallest", cr("spec: {a: 5e-324}\n"), []string{"spec", "a"}, 5e-324},
		{"a whole one", cr("spec: {a: 1_000.0}\n"), []string{"spec", "a"}, int64(1000)},
		{"nought", cr("spec: {a: 0.00e-400}\n"), []string{"spec", "a"}, int64(0)},
		{"a hash", cr("spec: {a: 12e4567}\n"), []string{"spec", "a"}, "12e4567"},
		{"a fraction", cr("spec: {a: 1.5}\n"), []string{"spec", "a"}, 1.5},
		{"a whole fraction", cr("spec: {a: 1.0}\n"), []string{"spec", "a"}, int64(1)},
		{"null", cr("spec: {a: ~}\n"), []string{"spec", "a"}, nil},
		{"a port as a key", cm("data:\n  8080: default/web:80\n"), []string{"data", "8080"}, "default/web:80"},
		{"python/unicode dropped", cm("data: {a: !!python/unicode 'x'}\n"), []string{"data", "a"}, "x"},
		{"python/str dropped", cm("data: {a: !!python/str 5}\n"), []string{"data", "a"}, "5"},
		{"a tag of YAML's own", cm("data: {a: !!str 5}\n"), []string{"data", "a"}, "5"},
		{"an anchor", cm("data:\n  a: &x hello\n  b: *x\n"), []string{"data", "b"}, "hello"},
		{"a merge key", cr("spec:\n  a: &a {x: 1, y: 1}\n  b: {x: 2, <<: *a}\n"), []string{"spec", "b", "x"}, int64(2)},
		{"a merged value", cr("spec:\n  a: &a {x: 1}\n  b: {<<: [*a, {x: 3, z: 4}]}\n"), []string{"spec", "b", "x"}, int64(1)},
		{"Jinja in content", cm("data: {a: '{{ $labels.instance }}'}\n"), []string{"data", "a"}, "{{ $labels.instance }}"},
		{"Jinja in an alert rule", cr("spec: {rules: [{name: '{{ x }}'}], image: '{{ y }}'}\n"), []string{"spec", "image"}, "{{ y }}"},
		{"CRLF", strings.ReplaceAll(cm("data:\n  a: |\n    x\n    y\n"), "\n", "\r\n"), []string{"data", "a"}, "x\ny\n"},
		{"a byte order mark", "\uFEFF" + cm("data: {a: x}\n"), []string{"data", "a"}, "x"},
		{"a shebang", "#!jinja | metalk8s_kubernetes\n\n\n" + cm("data: {a: x}\n"), []string{"data", "a"}, "x"},
		{"a YAML directive", "%YAML 1.1\n---\n" + cm("data: {a: x}\n"), []string{"data", "a"}, "x"},
		{"--- in a block scalar", cm("data:\n  a: |\n    ---\n    x\n"), []string{"data", "a"}, "---\nx\n"},
		{"surrogates in JSON", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"a":"\ud83d\ude00"}}`, []string{"data", "a"}, "😀"},
		{"tabs in JSON", "{\n\t\"apiVersion\":\"v1\",\n\t\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"a\"},\"data\":{\"a\":\"x\"}}", []string{"data", "a"}, "x"},
		{"an empty annotation", cm("  annotations: {a: }\n"), []string{"metadata", "annotations", "a"}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := mustRead(t, tt.text)
			if len(b.Objects) != 1 {
				t.Fatalf("%d objects", len(b.Objects))
			}
			got, found, err := unstructured.NestedFieldNoCopy(b.Objects[0].Content.Object, tt.path...)
			if err != nil || !found || got != tt.want {
				t.Errorf("got %#v (found %v, %v), want %#v", got, found, err, tt.want)
			}
		})
	}
}

func TestReadSkipsEmptyDocuments(t *testing.T) {
	b := mustRead(t, "---\n---\n# only a comment\n---\nnull\n---\n~\n---\n"+cm("")+"---\n...\n\n--- # no more\n")
	if len(b.Objects) != 1 || b.Objects[0].Source.Line != 9 {
		t.Fatalf("got %d objects, the first at %s", len(b.Objects), b.Objects[0].Source)
	}
	if b := mustRead(t, "\n# nothing\n"); len(b.Objects) != 0 {
		t.Errorf("an empty bundle has %d objects", len(b.Objects))
	}
}

func TestReadWarns(t *testing.T) {
	tests := []struct {
		name, text string
		want       []string
	}{
		{"octal mode", cr("spec:\n  defaultMode: 0644\n"), []string{"-:6:", "Thing.example.com a", "spec.defaultMode", "420", "644"}},
		{"y", cr("spec:\n  a: y\n"), []string{"-:6:", "spec.a", `write "y" or true`}},
		{"server-set metadata", cm("  uid: x\n  resourceVersion: '5'\n"), []string{"1 object", "uid"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := mustRead(t, tt.text)
			if len(b.Warnings) != 1 {
				t.Fatalf("warnings: %v", b.Warnings)
			}
			for _, part := range tt.want {
				if w := b.Warnings[0].Error(); !strings.Contains(w, part) {
					t.Errorf("%q is not in: %s", part, w)
				}
			}
		})
	}
}

func TestReadFlattensLists(t *testing.T) {
	b := mustRead(t, `apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: a}
- apiVersion: v1
  kind: ConfigMapList
  items:
  - metadata:
      name: b
---
apiVersion: v1
kind: List
items:
`)
	var got []string
	for _, o := range b.Objects {
		got = append(got, o.Source.String()+" "+bundle.Name(o.ID)+" "+o.GVK.Version)
	}
	if want := "-:4 ConfigMap a v1, -:10 ConfigMap b v1"; strings.Join(got, ", ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
	if line := b.Objects[1].Line("metadata.name"); line != 11 {
		t.Errorf("the name of b is on line %d, want 11", line)
	}
}

func TestReadDropsWhatTheServerSets(t *testing.T) {
	b := mustRead(t, cm("  creationTimestamp: null\n  uid: x\n  generation: 3\n  managedFields: []\n  namespace:\nstatus: {a: b}\n"))
	if got, want := b.Objects[0].Content.Object["metadata"], 1; len(got.(map[string]any)) != want {
		t.Errorf("left in metadata: %v", got)
	}
	if _, there := b.Objects[0].Content.Object["status"]; there {
		t.Error("status is still there")
	}
	if b := mustRead(t, cm("  creationTimestamp: null\nstatus: {}\n")); len(b.Warnings) != 0 {
		t.Errorf("what generators leave is warned of: %v", b.Warnings)
	}
}

func TestReadTellsAllProblemsAtOnce(t *testing.T) {
	folder := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("b.yaml", cm("data: {a: 1}\n---\nkind: X\n"))
	write("a.yml", cm("\tx\n---\n"+cm("  labels: {x: on}\n")))
	_, err := Bundle(context.Background(), Options{Files: []string{folder, filepath.Join(folder, "none.yaml")}})
	var problems bundle.Problems
	if !errors.As(err, &problems) {
		t.Fatalf("error %v", err)
	}
	var got []string
	for _, p := range problems {
		got = append(got, filepath.Base(p.Source.String()))
	}
	want := "a.yml:5 a.yml:11 b.yaml:5 b.yaml:7 b.yaml:7 none.yaml"
	if strings.Join(got, " ") != want {
		t.Errorf("got %v, want %s:\n%v", got, want, err)
	}
	var one bundle.Problem
	if !errors.As(err, &one) || one.Source.Line != 5 {
		t.Errorf("Unwrap gives %+v", one)
	}
}

func TestReadKeepsSecretsOut(t *testing.T) {
	secret := "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData:\n"
	for _, text := range []string{
		secret + "  p: 123456\n",
		secret + "  p: !hunter2\n",
		secret + "  p: *hunter2\n",
		secret + "  p: 123456.hunter2e5\n  q: 0123456\n  r: 99999999999123456999\n",
		secret + "  p: !!bool hunter2\n",
		secret + "  p: !!int hunter2\n",
		secret + "  p: [hunter2\n",
		secret + "  p: @hunter2\n",
		secret + "  p: \"__slot__:hunter2\"\n",
		secret + "  p: {{ hunter2 }}\n",
	} {
		b, err := read(text)
		if err == nil {
			t.Errorf("document %d lines long is read: %d objects", strings.Count(text, "\n"), len(b.Objects))
		} else if strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "123456") {
			t.Error("a Secret's value is in an error message")
		}
	}
}

func TestReadFiles(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{"b.yaml": cm(""), "a.sls": cm(""), "c.json": "", "d.txt": "x", "sub/e.yml": cm("")} {
		name = filepath.Join(folder, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	empty := filepath.Join(folder, "empty")
	if err := os.MkdirAll(filepath.Join(empty, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name  string
		o     Options
		want  string // the files of the objects
		error string
	}{
		{"a folder", Options{Files: []string{folder}}, "a.sls b.yaml", ""},
		{"a folder with its folders", Options{Files: []string{folder}, Recursive: true}, "a.sls b.yaml sub/e.yml", ""},
		{"a file of another name", Options{Files: []string{folder + "/d.txt"}}, "", "d.txt:1: a document must be a mapping"},
		{"twice the same", Options{Files: []string{folder + "/b.yaml", folder}}, "b.yaml a.sls", ""},
		{"no such file", Options{Files: []string{folder + "/x.yaml"}}, "", "no such file or folder (looked for " + folder + "/x.yaml)"},
		{"a folder with nothing", Options{Files: []string{empty}}, "", "no file in this folder ends in .yaml, .yml, .json, .sls"},
		{"no standard input", Options{Files: []string{"-"}}, "", "no standard input"},
		{"an unknown format", Options{InputFormat: "x"}, "", "auto, manifests, high or low"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b, err := Bundle(context.Background(), tt.o)
			if tt.error != "" {
				if err == nil || !strings.Contains(err.Error(), tt.error) {
					t.Fatalf("error %v, want %s", err, tt.error)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, o := range b.Objects {
				got = append(got, strings.TrimPrefix(o.Source.File, folder+"/"))
			}
			if strings.Join(got, " ") != tt.want {
				t.Errorf("got %v, want %s", got, tt.want)
			}
		})
	}
}

func TestReadStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Bundle(ctx, Options{Files: []string{Stdin}, Stdin: strings.NewReader(cm(""))}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func TestReadRBACNames(t *testing.T) {
	mustRead(t, "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: 'system:foo:bar'}\n")
}

func TestReadAllowsGenerateName(t *testing.T) {
	text := "apiVersion: batch/v1\nkind: Job\nmetadata: {generateName: a-}\n"
	b, err := Bundle(context.Background(), Options{Files: []string{Stdin}, Stdin: strings.NewReader(text + "---\n" + text), AllowGenerateName: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := Resolve(b, Resolver{}); err != nil || len(b.Objects) != 2 {
		t.Errorf("%d objects, %v", len(b.Objects), err)
	}
}

func TestReadConcatenatedJSON(t *testing.T) {
	b := mustRead(t, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`+"\n"+`{"apiVersion":"v1","kind":"ConfigMap",`+"\n"+`"metadata":{"name":"b"}}`)
	if len(b.Objects) != 2 || b.Objects[1].Source.Line != 2 || b.Objects[1].Line("metadata.name") != 3 {
		t.Errorf("%d objects", len(b.Objects))
	}
}

func TestReadCountsWhatItDoesNotTell(t *testing.T) {
	text := cm("data:\n")
	for i := range 150 {
		text += fmt.Sprintf("  k%d: 1\n", i)
	}
	_, err := read(text)
	var problems bundle.Problems
	if !errors.As(err, &problems) || len(problems) != maxReported+1 || !strings.Contains(err.Error(), "and 50 more problems") {
		t.Errorf("%d problems: %v", len(problems), err)
	}
}

func TestNamesAndPlacesInMessages(t *testing.T) {
	kind := schema.GroupKind{Group: "apps", Kind: "Deployment"}
	for want, id := range map[string]bundle.ID{
		"Deployment.apps shop/web":       {GroupKind: kind, Namespace: "shop", Name: "web"},
		"Deployment.apps (no name)":      {GroupKind: kind},
		"Deployment.apps shop/(no name)": {GroupKind: kind, Namespace: "shop"},
		"shop/web":                       {Namespace: "shop", Name: "web"},
	} {
		if got := bundle.Name(id); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for want, source := range map[string]bundle.Source{
		"":                              {},
		"a.yaml":                        {File: "a.yaml"},
		"a.yaml:3":                      {File: "a.yaml", Line: 3},
		`a.yaml:3 (state "x")`:          {File: "a.yaml", Line: 3, State: "x"},
		`a.yaml:3 (state "x", sls y.z)`: {File: "a.yaml", Line: 3, State: "x", SLS: "y.z"},
	} {
		if got := source.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// The Salt modules send many files as one stream, and name each in a comment.
func TestReadKeepsTheFilesOfAConcatenatedStream(t *testing.T) {
	b := mustRead(t, "# brine.dev/source: 1 salt://a.yaml (rendered)\n"+cm("")+
		"\n---\n# brine.dev/source: 1 salt://b.yaml (rendered)\n# a comment\n"+strings.Replace(cm(""), "name: a", "name: b", 1)+"---\n"+strings.Replace(cm(""), "name: a", "name: c", 1)+
		"\n---\n# brine.dev/source: 0 bundle\n"+`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "d"}}`+"\n")
	for i, want := range []string{"salt://a.yaml (rendered):1", "salt://b.yaml (rendered):2", "salt://b.yaml (rendered):7", "bundle"} {
		if got := b.Objects[i].Source.String(); got != want {
			t.Errorf("object %d is at %s, want %s", i, got, want)
		}
	}
	if got := b.Objects[1].FieldLine("metadata.name"); got != 5 {
		t.Errorf("metadata.name of the second object is on line %d, want 5", got)
	}
	_, err := read("# brine.dev/source: 1 salt://a.yaml\n" + cm("") + "\n---\n# brine.dev/source: 1 salt://b.yaml\n" + cm("data:\n  port: 8080\n"))
	if err == nil || !strings.Contains(err.Error(), "salt://b.yaml:6: ") {
		t.Errorf("the error names no line of salt://b.yaml: %v", err)
	}
	_, err = read("# brine.dev/source: 1 salt://a.yaml\n" + cm("") + "\n---\n# brine.dev/source: 1 salt://b.yaml\nkind: [\n")
	if err == nil || !strings.Contains(err.Error(), "salt://b.yaml:") {
		t.Errorf("the syntax error does not name salt://b.yaml: %v", err)
	}
}

func TestDuplicateKeysThatMayPass(t *testing.T) {
	read := func(text string) (*bundle.Bundle, error) {
		return Bundle(t.Context(), Options{Files: []string{"-"}, Stdin: strings.NewReader(text), DuplicateKeys: true})
	}
	b, err := read(cm("data:\n  a: x\n  b: x\n  a: y\n"))
	if err != nil {
		t.Fatal(err)
	}
	data, _, _ := unstructured.NestedStringMap(b.Objects[0].Content.Object, "data")
	if w := bundle.Problems(b.Warnings).Error(); data["a"] != "y" || !strings.Contains(w, "-:8:") || !strings.Contains(w, "the first is on line 6, and does not count") {
		t.Errorf("%v, warnings %s", data, w)
	}
	if _, err := read("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  name: b\n"); err == nil || !strings.Contains(err.Error(), "duplicate key") {
		t.Errorf("two names: %v", err)
	}
}

// A List that is not one list loses objects, so it is refused.
func TestListsLoseNoObject(t *testing.T) {
	for rest, want := range map[string]string{
		"items: 5\n":             "items: must be a list of objects",
		"items: {a: b}\n":        "items: must be a list of objects",
		"items: []\nitems: []\n": "duplicate key; the first is on line 8",
		"itmes: []\n":            "a List must have items",
	} {
		_, err := Bundle(t.Context(), Options{Files: []string{"-"}, Stdin: strings.NewReader(cm("") + "---\napiVersion: v1\nkind: List\n" + rest)})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", rest, err)
		}
	}
	b := mustRead(t, "apiVersion: v1\nkind: List\nx: &x {namespace: a}\nitems: [{apiVersion: v1, kind: ConfigMap, metadata: {<<: *x, name: a}}]\n")
	if len(b.Objects) != 1 || len(b.Warnings) != 1 || !strings.Contains(b.Warnings[0].Error(), "has no such field") {
		t.Error(b.Objects, b.Warnings)
	}
}

// Kubernetes takes whatever has items for a list. Where it may be an object, that is said.
func TestObjectsThatLookLikeLists(t *testing.T) {
	const list = "apiVersion: example.com/v1\nkind: AllowList\n"
	const item = "items: [{metadata: {name: q}}]\n"
	for in, want := range map[string]string{
		list + "metadata: {name: x}\nitems: []\n":                           "-:9: items: Kubernetes takes AllowList with items",
		list + "items: []\n":                                                "-:8: items: Kubernetes takes AllowList",
		list + "metadata: {name: x}\n" + item:                               "-:9: items: Kubernetes takes AllowList",
		"apiVersion: example.com/v1\nkind: List\nitems: []\n":               "Kubernetes takes List",
		"apiVersion: v1\nkind: ConfigMapList\nmetadata: {name: x}\n" + item: "Kubernetes takes ConfigMapList",
		list + item: "",
		"apiVersion: v1\nkind: ConfigMapList\nitems: []\n":                         "",
		"apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleList\nitems: []\n":    "",
		"apiVersion: v1\nkind: List\nmetadata: {name: x}\nitems: []\n":             "",
		"apiVersion: v1\nkind: List\nmetadata: {resourceVersion: ''}\nitems: []\n": "",
	} {
		_, err := Bundle(t.Context(), Options{Files: []string{"-"}, Stdin: strings.NewReader(cm("") + "---\n" + in)})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", in, err, want)
		}
	}
}
