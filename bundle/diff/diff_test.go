package diff

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/aymanbagabas/go-udiff"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle/bundletest"
)

const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: shop
  resourceVersion: "1"
  generation: 1
  uid: a
  creationTimestamp: "2026-01-01T00:00:00Z"
  managedFields: [{manager: x}]
  labels: {app.kubernetes.io/name: web}
spec:
  replicas: 1
  template:
    spec:
      containers:
      - name: app
        image: web:1
        args: [a, b, c]
        ports:
        - {containerPort: 80, protocol: TCP}
        - {containerPort: 80, protocol: UDP}
      - name: log
        image: log:1
status: {replicas: 1}
`

func TestChanges(t *testing.T) {
	for _, test := range []struct {
		name string
		edit [][2]string // replaced in deployment
		want []string
	}{
		{"nothing", nil, nil},
		{"what the server sets", [][2]string{{`resourceVersion: "1"`, `resourceVersion: "2"`}, {"generation: 1", "generation: 2"}, {"uid: a", "uid: b"}, {"{manager: x}", "{manager: y}"}, {"status: {replicas: 1}", ""}}, nil},
		{"1.0 is 1", [][2]string{{"replicas: 1\n", "replicas: 1.0\n"}}, nil},
		{"a scalar", [][2]string{{"replicas: 1\n", "replicas: 2\n"}}, []string{"spec.replicas: 1 -> 2"}},
		{"a label with dots", [][2]string{{"name: web}", "name: shop}"}}, []string{`metadata.labels["app.kubernetes.io/name"]: web -> shop`}},
		{"in a named item", [][2]string{{"log:1", "log:2"}}, []string{"spec.template.spec.containers[name=log].image: log:1 -> log:2"}},
		{"an item that is new", [][2]string{{"      - name: log", "      - name: side\n      - name: log"}}, []string{"spec.template.spec.containers[name=side]: <nil> -> map[name:side]"}},
		{"an item that goes", [][2]string{{"      - name: log\n        image: log:1\n", ""}}, []string{"spec.template.spec.containers[name=log]: map[image:log:1 name:log] -> <nil>"}},
		{"two keys", [][2]string{{"containerPort: 80, protocol: UDP", "containerPort: 80, protocol: UDP, hostPort: 1"}}, []string{"spec.template.spec.containers[name=app].ports[containerPort=80,protocol=UDP].hostPort: <nil> -> 1"}},
		{"inserted in a plain list", [][2]string{{"[a, b, c]", "[a, x, b, c]"}}, []string{"spec.template.spec.containers[name=app].args[1]: <nil> -> x"}},
		{"a plain list's item", [][2]string{{"[a, b, c]", "[a, x, c]"}}, []string{"spec.template.spec.containers[name=app].args[1]: b -> x"}},
		{"an item of a plain list that goes", [][2]string{{"[a, b, c]", "[b, c]"}}, []string{"spec.template.spec.containers[name=app].args[0]: a -> <nil>"}},
		{"one goes and another comes elsewhere", [][2]string{{"[a, b, c]", "[b, x, c]"}}, []string{"spec.template.spec.containers[name=app].args[0]: a -> <nil>", "spec.template.spec.containers[name=app].args[1]: <nil> -> x"}},
		{"a plain list's item that moves", [][2]string{{"[a, b, c]", "[b, c, a]"}}, []string{"spec.template.spec.containers[name=app].args[0]: a -> a (to spec.template.spec.containers[name=app].args[2])"}},
		{"order", [][2]string{{"name: app", "name: tmp"}, {"name: log", "name: app"}, {"name: tmp", "name: log"}, {"image: log:1", "image: web:1"}}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			text := deployment
			for _, e := range test.edit {
				if !strings.Contains(text, e[0]) {
					t.Fatalf("%q is not in the object", e[0])
				}
				text = strings.Replace(text, e[0], e[1], 1)
			}
			a, b := bundletest.Object(t, deployment), bundletest.Object(t, text)
			d := Objects(a, b, nil)
			if test.name == "order" {
				last := d.Changes[len(d.Changes)-1]
				if fmt.Sprint(last.Path, last.Old, last.New) != "spec.template.spec.containers[name=app name=log] [name=log name=app]" {
					t.Fatalf("order is not told: %v", d.Changes)
				}
				return
			}
			var got []string
			for _, c := range d.Changes {
				line := fmt.Sprintf("%s: %v -> %v", c.Path, c.Old, c.New)
				if c.Moved != "" {
					line += " (to " + c.Moved + ")"
				}
				got = append(got, line)
			}
			if fmt.Sprint(got) != fmt.Sprint(test.want) {
				t.Errorf("got  %q\nwant %q", got, test.want)
			}
			if Equal(a, b) != (len(test.want) == 0) || (d.Unified == "") != (len(test.want) == 0) {
				t.Errorf("Equal = %v, unified %q", Equal(a, b), d.Unified)
			}
		})
	}
}

func TestUnified(t *testing.T) {
	b := bundletest.Object(t, strings.Replace(deployment, "replicas: 1\n", "replicas: 3\n", 1))
	want := `--- live
+++ applied
@@ -6,7 +6,7 @@
   name: web
   namespace: shop
 spec:
-  replicas: 1
+  replicas: 3
   template:
     spec:
       containers:
`
	if got := Objects(bundletest.Object(t, deployment), b, nil).Unified; got != want {
		t.Errorf("got\n%s", got)
	}
	made := Objects(nil, b, nil)
	if !strings.HasPrefix(made.Unified, "--- /dev/null\n+++ applied\n@@ -0,0 +1,") || len(made.Changes) != 0 {
		t.Errorf("created:\n%s%v", made.Unified, made.Changes)
	}
	gone := Objects(b, nil, nil)
	if !strings.HasPrefix(gone.Unified, "--- live\n+++ /dev/null\n") {
		t.Errorf("deleted:\n%s", gone.Unified)
	}
}

// crd is an object of about 700 KB of YAML in which every nth description is
// told to be of that version.
func crd(version, nth int) *unstructured.Unstructured {
	props := map[string]any{}
	for i := range 400 {
		inner := map[string]any{}
		for j := range 10 {
			v := 0
			if (i*10+j)%nth == 0 {
				v = version
			}
			inner[fmt.Sprintf("field%d", j)] = map[string]any{
				"type":        "string",
				"description": fmt.Sprintf("field %d of %d, version %d: %s", j, i, v, strings.Repeat("text ", 15)),
			}
		}
		props[fmt.Sprintf("group%03d", i)] = map[string]any{"type": "object", "properties": inner}
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "things.example.com"},
		"spec":     map[string]any{"properties": props},
	}}
}

// Only the lines that differ may be shown as different, however many there are.
func TestUnifiedStaysExactWhenMuchChanges(t *testing.T) {
	a, b := crd(1, 4), crd(2, 4)
	d := Objects(a, b, nil)
	if len(d.Changes) != 1000 {
		t.Fatalf("%d changes", len(d.Changes))
	}
	removed := 0
	for line := range strings.SplitSeq(d.Unified, "\n") {
		if strings.HasPrefix(line, "-") && !strings.HasPrefix(line, "---") {
			removed++
		}
	}
	if removed > 1000 {
		t.Errorf("%d lines removed for 1000 changes", removed)
	}
	x, y := render(a.Object), render(b.Object)
	got, err := udiff.Apply(x, edits(x, y, 0))
	if err != nil || got != y {
		t.Errorf("the edits do not lead from one to the other: %v", err)
	}
}

func BenchmarkLargeObject(b *testing.B) {
	for _, nth := range []int{4000, 40, 4, 1} {
		x, y := crd(1, nth), crd(2, nth)
		b.Run(fmt.Sprintf("%d_changes", 4000/nth), func(b *testing.B) {
			for b.Loop() {
				Objects(x, y, nil)
			}
		})
	}
}

// The line numbers of a hunk are those of both texts, also after a hunk with several
// changes.
func TestLineNumbersOfHunks(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var before, after []string
		for i := range 60 {
			line := fmt.Sprint("line ", i)
			switch random.IntN(12) {
			case 0:
				before = append(before, line)
			case 1:
				after = append(after, line)
			case 2:
				before, after = append(before, line), append(after, line+" changed")
			default:
				before, after = append(before, line), append(after, line)
			}
		}
		text := lines("a", "b", strings.Join(before, "\n")+"\n", strings.Join(after, "\n")+"\n")
		var from, to int
		for l := range strings.Lines(text) {
			l = strings.TrimSuffix(l, "\n")
			if m := header().FindStringSubmatch(l); m != nil {
				from, _ = strconv.Atoi(m[1])
				to, _ = strconv.Atoi(m[3])
				continue
			}
			if from == 0 {
				continue // the names
			}
			if l[0] != '+' {
				if before[from-1] != l[1:] {
					t.Fatalf("line %d before is %q, not %q:\n%s", from, before[from-1], l[1:], text)
				}
				from++
			}
			if l[0] != '-' {
				if after[to-1] != l[1:] {
					t.Fatalf("line %d after is %q, not %q:\n%s", to, after[to-1], l[1:], text)
				}
				to++
			}
		}
	}
}

// An item of a list that comes, goes or moves is one change. Every change leads to one
// path, and nothing changes only between lists that are the same.
func TestAlignedLists(t *testing.T) {
	for _, test := range []struct{ before, after, want string }{
		{"--a=1 --b --c=2", "--a=1 --c=2 --b", "[1] --b → --b to [2]"},
		{"--a=1 --b --c --d", "--b --c --a=2 --d", "[0] --a=1 → --a=2 to [2]"},
		{"--a=1 --b", "--a=2 --b", "[0] --a=1 → --a=2"},
		{"a b c d", "b c x", "[0] a → ; [3] d → x"},
		{"a b z c", "b c x", "[0] a → ; [2] z → x"},
		{"a a a", "a a", "[2] a → "},
		{"", "a", "[0] a"},
	} {
		var got []string
		for _, c := range alignedChanges(nil, "", texts(test.before), texts(test.after)) {
			line := c.Path
			if c.Old != nil {
				line += fmt.Sprintf(" %v →", c.Old)
			}
			line += fmt.Sprintf(" %v", cmp.Or[any](c.New, ""))
			if c.Moved != "" {
				line += " to " + c.Moved
			}
			got = append(got, line)
		}
		if text := strings.Join(got, "; "); text != test.want {
			t.Errorf("%q to %q: got %q, want %q", test.before, test.after, text, test.want)
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		lists := [2][]any{}
		for side := range lists {
			for range random.IntN(7) {
				lists[side] = append(lists[side], fmt.Sprint(random.IntN(5)))
			}
		}
		seen := map[string]bool{}
		found := alignedChanges(nil, "", lists[0], lists[1])
		for _, c := range found {
			if seen[c.Path] {
				t.Fatalf("%v to %v: %s twice in %v", lists[0], lists[1], c.Path, found)
			}
			seen[c.Path] = true
		}
		if len(found) > len(lists[0])+len(lists[1]) || (len(found) == 0) != equal(lists[0], lists[1]) {
			t.Fatalf("%v to %v: %v", lists[0], lists[1], found)
		}
	}
	many := make([]any, 50_000)
	for i := range many {
		many[i] = fmt.Sprint(i)
	}
	if found := alignedChanges(nil, "", many, append([]any{"x"}, many[:49_999]...)); len(found) != 50_000 {
		t.Errorf("a long list: %d changes", len(found))
	}
}

func texts(line string) []any {
	list := []any{}
	for word := range strings.FieldsSeq(line) {
		list = append(list, word)
	}
	return list
}
