package read

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"brine/bundle"
)

const (
	thingCRD = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.com, namespace: ns}
spec:
  group: example.com
  names: {kind: Thing}
  scope: Cluster
  versions: [{name: v1, served: true}, {name: v0, served: false}]
`
	apiService = `apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.example.com}
spec: {group: example.com, version: v1, service: {name: x, namespace: x}}
`
)

func names(b *bundle.Bundle) string {
	var s []string
	for _, o := range b.Objects {
		s = append(s, bundle.Name(o.ID))
	}
	return strings.Join(s, ", ")
}

func TestResolve(t *testing.T) {
	served := func(s Scope) func(schema.GroupVersionKind) Scope {
		return func(schema.GroupVersionKind) Scope { return s }
	}
	versions := func(schema.GroupKind) []string { return []string{"v2", "v3"} }
	inN := cr("  namespace: ns\n")
	tests := []struct {
		name, text string
		r          Resolver
		want       string   // names
		warnings   []string // a part of each
		problems   []string
	}{
		{"no namespace named", cm(""), Resolver{Namespace: "m"}, "ConfigMap m/a", nil, nil},
		{"no namespace anywhere", cm(""), Resolver{}, "ConfigMap default/a", nil, nil},
		{"a namespace named", cm("  namespace: ns\n"), Resolver{Namespace: "m"}, "ConfigMap ns/a", nil, nil},
		{"an older version of a built-in kind", "apiVersion: policy/v1beta1\nkind: PodDisruptionBudget\nmetadata: {name: a}\n", Resolver{}, "PodDisruptionBudget.policy default/a", nil, nil},
		{"a namespace on cluster-scoped objects", "apiVersion: v1\nkind: Namespace\nmetadata: {name: a, namespace: ns}\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: b, namespace: ns}\n",
			Resolver{}, "Namespace a, Namespace b", []string{"-:1: 2 cluster-scoped objects had a namespace"}, nil},
		{"a CRD in the bundle", inN + "---\n" + thingCRD, Resolver{Strict: true, Scope: served(ScopeNamespaced)}, "Thing.example.com a, CustomResourceDefinition.apiextensions.k8s.io ns/things.example.com", []string{"1 cluster-scoped object had"}, nil},
		{"a version that the CRD does not serve", strings.Replace(inN, "/v1", "/v0", 1) + "---\n" + thingCRD, Resolver{Strict: true}, "", nil, []string{"-:1: Thing.example.com ns/a: version v0", "[v1]"}},
		{"an APIService in the bundle", inN + "---\n" + apiService, Resolver{Strict: true, Scope: func(gvk schema.GroupVersionKind) Scope {
			if gvk.Kind == "APIService" {
				return ScopeCluster
			}
			return ScopeUnknown
		}}, "Thing.example.com ns/a, APIService.apiregistration.k8s.io v1.example.com", nil, nil},
		{"a kind nobody serves", inN, Resolver{Strict: true, Scope: served(ScopeUnknown), Versions: versions}, "", nil, []string{"-:1: Thing.example.com ns/a: unknown kind Thing in example.com/v1", "server", "(the server serves it as example.com/v2, example.com/v3)"}},
		{"a kind nobody knows, without a server", inN, Resolver{Namespace: "m"}, "Thing.example.com ns/a", []string{"unknown kind"}, nil},
		{"two objects of a kind nobody knows", inN + "---\n" + strings.Replace(inN, "name: a", "name: b", 1), Resolver{}, "Thing.example.com ns/a, Thing.example.com ns/b", []string{"(2 objects; this is the first)"}, nil},
		{"the server decides", inN, Resolver{Strict: true, Scope: served(ScopeCluster)}, "Thing.example.com a", []string{"1 cluster-scoped object had"}, nil},
		{"twice the same", cm("data: {a: x, b: z}\n") + "---\n" + cm("  namespace: default\ndata: {b: z, a: x}\n"), Resolver{}, "ConfigMap default/a", []string{"-:7: ConfigMap default/a: the same document is also at -:1"}, nil},
		{"twice, different", cm("data: {a: x}\n") + "---\n" + cm(""), Resolver{}, "", nil, []string{"-:7: ConfigMap default/a: a different document", "-:1"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := mustRead(t, tt.text)
			err := Resolve(b, tt.r)
			if len(tt.problems) > 0 {
				var problems bundle.Problems
				if !errors.As(err, &problems) || len(problems) != 1 {
					t.Fatalf("error %v", err)
				}
				for _, part := range tt.problems {
					if !strings.Contains(err.Error(), part) {
						t.Errorf("%q is not in: %v", part, err)
					}
				}
				return
			}
			// A second time must change nothing.
			digest := b.Digest
			if err := errors.Join(err, Resolve(b, tt.r)); err != nil || b.Digest != digest {
				t.Fatalf("%v; digest %s, then %s", err, digest, b.Digest)
			}
			if names(b) != tt.want {
				t.Errorf("got %s, want %s", names(b), tt.want)
			}
			if len(b.Warnings) != len(tt.warnings) {
				t.Fatalf("warnings %v, want %v", b.Warnings, tt.warnings)
			}
			for i, part := range tt.warnings {
				if w := b.Warnings[i].Error(); !strings.Contains(w, part) {
					t.Errorf("%q is not in: %s", part, w)
				}
			}
			for _, o := range b.Objects {
				if o.Content.GetNamespace() != o.ID.Namespace {
					t.Errorf("%s is to be sent with namespace %q", bundle.Name(o.ID), o.Content.GetNamespace())
				}
			}
		})
	}
}

func TestResolveRequisites(t *testing.T) {
	b := mustRead(t, cm("")+"---\n"+strings.Replace(cm(""), "name: a", "name: b", 1)+"---\n"+cm(""))
	o := b.Objects
	o[0].Requisites = []bundle.Requisite{{Object: o[1], Reason: "require: b"}}
	o[2].Requisites = []bundle.Requisite{{Object: o[1], Reason: "watch: b"}} // the same object as 0
	o[1].Requisites = []bundle.Requisite{{Object: o[2], Reason: "require: a"}}
	for range 2 {
		if err := Resolve(b, Resolver{Namespace: "ns"}); err != nil {
			t.Fatal(err)
		}
	}
	got := map[string][]string{}
	for _, o := range b.Objects {
		for _, r := range o.Requisites {
			got[bundle.Name(o.ID)] = append(got[bundle.Name(o.ID)], bundle.Name(r.On)+" "+r.Reason)
		}
	}
	want := map[string][]string{
		"ConfigMap ns/a": {"ConfigMap ns/b require: b", "ConfigMap ns/b watch: b"},
		"ConfigMap ns/b": {"ConfigMap ns/a require: a"},
	}
	if !maps.EqualFunc(got, want, slices.Equal) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestResolveAbsent(t *testing.T) {
	gvk := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	b := mustRead(t, cm(""))
	b.Absent = []*bundle.Absent{{ID: bundle.ID{GroupKind: gvk.GroupKind(), Name: "b"}, GVK: gvk}}
	if err := Resolve(b, Resolver{Namespace: "ns"}); err != nil || b.Absent[0].ID.Namespace != "ns" {
		t.Errorf("%v, %v", b.Absent[0].ID, err)
	}
	for _, c := range []struct {
		name          string
		scope         map[string]Scope // by version
		later         Scope
		written, want string
	}{
		{"in a version that is served", map[string]Scope{"v1": ScopeNamespaced}, ScopeUnknown, "", "ns"},
		{"in one that is not served any more", map[string]Scope{"v2": ScopeNamespaced}, ScopeUnknown, "", "ns"},
		{"and in another namespace", map[string]Scope{"v2": ScopeNamespaced}, ScopeUnknown, "other", "other"},
		{"of a cluster-scoped kind", map[string]Scope{"v2": ScopeCluster}, ScopeUnknown, "other", ""},
		{"where another version cannot be discovered", map[string]Scope{"v2": ScopeNamespaced}, ScopeLater, "", "ns"},
		{"of a kind that nobody serves", nil, ScopeUnknown, "other", "other"},
	} {
		thing := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Thing"}
		absent := &bundle.Absent{ID: bundle.ID{GroupKind: thing.GroupKind(), Namespace: c.written, Name: "b"}, GVK: thing}
		err := Resolve(&bundle.Bundle{Absent: []*bundle.Absent{absent}}, Resolver{
			Namespace: "ns", Strict: true,
			Scope:    func(gvk schema.GroupVersionKind) Scope { return cmp.Or(c.scope[gvk.Version], c.later) },
			Versions: func(schema.GroupKind) []string { return slices.Sorted(maps.Keys(c.scope)) },
		})
		if err != nil || absent.ID.Namespace != c.want {
			t.Errorf("%s: %v, %v", c.name, absent.ID, err)
		}
	}
	b.Absent[0].ID.Name = "a"
	if err := Resolve(b, Resolver{Namespace: "ns"}); err == nil || !strings.Contains(err.Error(), "absent") {
		t.Errorf("an object both absent and present: %v", err)
	}
}

func TestDigest(t *testing.T) {
	digest := func(text string) string {
		b := mustRead(t, text)
		if err := Resolve(b, Resolver{}); err != nil {
			t.Fatal(err)
		}
		return b.Digest
	}
	x, y := cm("data: {a: x, b: z}\n"), strings.Replace(cm(""), "name: a", "name: b", 1)
	same, swapped, other := digest(x+"---\n"+y), digest(y+"---\n# a comment\n"+cm("data:\n  b: 'z'\n  a: x\n")), digest(x)
	if same != swapped || same == other || !strings.HasPrefix(same, "sha256:") {
		t.Errorf("digests %s, %s (the same, swapped) and %s (less)", same, swapped, other)
	}
}

func TestLine(t *testing.T) {
	b := mustRead(t, `# a comment
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: a
  annotations:
    foo.bar/x: y
    a.b: c
  labels: &l
    app: a
spec:
  selector:
    matchLabels:
      <<: *l
  template:
    spec:
      containers:
      - name: x
        image: one
      - name: y
        image: two
        env:
        - {name: A, value: b}
`)
	for path, want := range map[string]int{
		"":                                       3,
		"kind":                                   4,
		".metadata.name":                         6,
		"metadata.annotations[foo.bar/x]":        8,
		"metadata.annotations.foo.bar/x":         8,
		"metadata.annotations.a.b":               9,
		"metadata.annotations.none":              7,
		"spec.selector.matchLabels.app":          11,
		"spec.template":                          16,
		"spec.template.spec.containers[1]":       21,
		"spec.template.spec.containers[0].image": 20,
		`spec.template.spec.containers[name="y"].image`: 22,
		"spec.template.spec.containers[1].env[0].value": 24,
		"spec.template.spec.containers[7].image":        18,
		"spec.template.spec.foo":                        17,
		"spec.foo.bar":                                  12,
		"spec..[[":                                      12,
		"[0]":                                           3,
	} {
		if got := b.Objects[0].Line(path); got != want {
			t.Errorf("%q is on line %d, want %d", path, got, want)
		}
	}
	if got := (&bundle.Object{Source: bundle.Source{Line: 7}}).Line("spec"); got != 7 {
		t.Errorf("an object without a text: line %d", got)
	}
}
