package validate

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"brine/bundle/read/readtest"
)

// definition is a CRD whose spec.size's schema, and the end of whose spec, a
// test fills in.
func definition(size, rest string) string {
	return `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.validate.brine.dev}
spec:
  group: validate.brine.dev
  names: {kind: Gadget, plural: gadgets}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: ` + size + `
` + rest
}

const conversion = `  - name: v1beta1
    served: true
    storage: false
    deprecated: true
    schema: {openAPIV3Schema: {type: object}}
  conversion:
    strategy: Webhook
    webhook:
      conversionReviewVersions: [v1]
      clientConfig: {service: {namespace: a, name: b}}
`

func TestCompileRefuses(t *testing.T) {
	const size = "spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[size]"
	for _, c := range []struct {
		name, size, rest string
		want             []string
		line             int
	}{
		{name: "nothing", size: "{type: string}"},
		{name: "a conversion webhook", size: "{type: string}", rest: conversion},
		{name: "not structural", size: "{minimum: 1}", want: []string{size + ".type: Required value: must not be empty for specified object fields"}, line: 19},
		{name: "a type that is none", size: "{type: text}", want: []string{size + `.type: Unsupported value: "text"`}, line: 19},
		{name: "a default of the wrong type", size: "{type: string, default: 1}", want: []string{size + ".default: must be of type string, not integer"}, line: 19},
		{name: "a rule that does not compile", size: "{type: string, x-kubernetes-validations: [{rule: 'self > 1'}]}", want: []string{size + ".x-kubernetes-validations[0].rule: compilation failed: ERROR: <input>:1:6: found no matching overload"}, line: 19},
		{name: "a rule that costs too much", size: "{type: array, items: {type: string, x-kubernetes-validations: [{rule: self.matches('a*b*c*')}]}}",
			want: []string{
				size + ".items.x-kubernetes-validations[0].rule: Forbidden: estimated rule cost exceeds budget",
				size + ".items.x-kubernetes-validations[0].rule: Forbidden: contributed to estimated rule cost total",
				"spec.versions[0].schema.openAPIV3Schema: Forbidden: x-kubernetes-validations estimated rule cost total",
			}, line: 19},
		{name: "not even of its type", size: "{type: [string]}", want: []string{"read as a CustomResourceDefinition: "}, line: 1},
		{name: "two that store", size: "{type: string}", rest: "  - {name: v2, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}\n",
			want: []string{"spec.versions: must have exactly one version marked as storage version"}, line: 8},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, problems := Compile(readtest.Objects(t, definition(c.size, c.rest)))
			if len(problems) > 0 && problems[0].Source.Line != c.line {
				t.Errorf("line %d, want %d: %v", problems[0].Source.Line, c.line, problems[0])
			}
			if c.name == "two that store" {
				problems = problems[:1] // the others follow from it
			}
			same(t, text(problems), c.want)
		})
	}
}

func TestCheckOfABrokenCRD(t *testing.T) {
	objs := readtest.Objects(t, definition("{type: text}", "")+"---\napiVersion: validate.brine.dev/v1\nkind: Gadget\nmetadata: {name: a}\n")
	crds, _ := Compile(objs)
	_, problems, known := crds.Check(t.Context(), objs[1], objs[1].Content, nil)
	if !known {
		t.Error("its kind is not known")
	}
	same(t, text(problems), []string{"cannot be checked: its CRD gadgets.validate.brine.dev (-:1) is invalid"})
}

func TestCheckOfAnUnknownKind(t *testing.T) {
	objs := readtest.Objects(t, "apiVersion: validate.brine.dev/v1\nkind: Gadget\nmetadata: {name: a}\n")
	for _, crds := range []*CRDs{nil, testCRDs(t)} {
		if _, problems, known := crds.Check(t.Context(), objs[0], objs[0].Content, nil); known || len(problems) > 0 {
			t.Errorf("known %v, problems %v", known, problems)
		}
	}
}

// Problems point at the line of the field, or of the nearest one around it.
func TestCheckLines(t *testing.T) {
	o := readtest.Objects(t, widget+"spec:\n  size: medium\n  steps:\n  - run: a\n    retrys: 1\n  limits:\n    a: 1\n")[0]
	_, problems, _ := testCRDs(t).Check(t.Context(), o, o.Content, nil)
	lines := map[string]int{}
	for _, p := range problems {
		lines[p.Path] = p.Source.Line
	}
	for path, want := range map[string]int{"spec.size": 5, "spec.steps[0].retrys": 8, "spec.limits.a": 10} {
		if lines[path] != want {
			t.Errorf("%s: line %d, want %d", path, lines[path], want)
		}
	}
}

func TestVersions(t *testing.T) {
	crds, problems := Compile(readtest.Objects(t, definition("{type: string}", conversion)))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	gk := schema.GroupKind{Group: "validate.brine.dev", Kind: "Gadget"}
	live := func(version string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(gk.WithVersion(version))
		return u
	}
	for _, c := range []struct {
		version string
		live    *unstructured.Unstructured
		want    string
	}{
		{"v1", nil, ""},
		{"v1", live("v1"), ""},
		{"v1", live("v1beta1"), "conversion webhook"},
		{"v1beta1", nil, "conversion webhook"},
	} {
		if got := crds.Unverified(gk.WithVersion(c.version), c.live); got != c.want {
			t.Errorf("%s: %q, want %q", c.version, got, c.want)
		}
	}
	if got, want := crds.Warning(gk.WithVersion("v1beta1")), "validate.brine.dev/v1beta1 Gadget is deprecated; use validate.brine.dev/v1 Gadget"; got != want {
		t.Errorf("warning %q, want %q", got, want)
	}
	if got := crds.Warning(gk.WithVersion("v1")); got != "" {
		t.Errorf("warning %q", got)
	}
	if !crds.Has(gk) {
		t.Error("no CRD of the bundle defines it")
	}
}

// FuzzCheck: whatever JSON a custom resource holds, Check tells what is wrong.
func FuzzCheck(f *testing.F) {
	crds := testCRDs(f)
	for i := range uint64(100) {
		f.Add(i)
	}
	base := readtest.Objects(f, widget+"spec: {size: small, ports: [{port: 1}], steps: [{run: a}], closed: {apiVersion: v1, kind: Pod}, nested: {deep: {}}}")[0]
	live, _, _ := crds.Check(f.Context(), base, base.Content, nil)
	f.Fuzz(func(t *testing.T, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 0))
		u := base.Content.DeepCopy()
		for range 1 + r.IntN(4) {
			damage(r, u.Object)
		}
		o := *base
		_, _, known := crds.Check(t.Context(), &o, u, nil)
		_, _, knownToo := crds.Check(t.Context(), &o, u, live)
		if !known || !knownToo {
			t.Error("its kind is not known")
		}
	})
}

// damage puts a value of another type somewhere, or takes one out.
func damage(r *rand.Rand, in any) {
	values := []any{nil, true, int64(-1), 1.5, "", "text", strings.Repeat("x", 300), []any{}, []any{nil, map[string]any{}}, map[string]any{}, map[string]any{"": nil, "a.b[0]": int64(1)}}
	switch in := in.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(in)) {
			if k == "apiVersion" || k == "kind" || r.IntN(3) > 0 {
				continue
			}
			if r.IntN(2) == 0 {
				damage(r, in[k])
			} else {
				in[k] = values[r.IntN(len(values))]
			}
		}
		in["new"+string(rune('a'+r.IntN(26)))] = values[r.IntN(len(values))]
	case []any:
		for i := range in {
			if r.IntN(2) == 0 {
				damage(r, in[i])
			} else {
				in[i] = values[r.IntN(len(values))]
			}
		}
	}
}
