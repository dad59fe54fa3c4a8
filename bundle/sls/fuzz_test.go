package sls

import (
	"slices"
	"testing"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// FuzzDecode: whatever Salt prints, taken for whatever shape, is taken apart
// without a panic, into manifests or a problem, and in the same way each time.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		"A: {k.object_present: [{manifest: " + cm("a") + "}, {require: [{k: B}]}, {order: last}], __sls__: s, __env__: base}\nB: {k.object_present: [{manifest: " + cm("b") + "}, {require_in: [{k: A}, {sls: s}]}]}\n",
		"- {state: k, fun: object_present, name: a, __id__: a, __sls__: s, order: 10000, manifest: " + cm("a") + ", require: [{k: b}]}\n- {state: k, fun: object_absent, name: b, __id__: b, kind: Job, apiVersion: batch/v1, order: 1}\n",
		"{local: {A: {k: [object_present, {manifest: {}}, {names: [a, {b: [{order: 1}]}]}]}}}",
		"include: [x]\nextend: {A: {k: [{require: [{sls: x}]}]}}\nexclude: [{id: A}, {sls: y}]\nA: {k.object_present: [{use: [{k: A}]}, {prereq: [{k: A}]}, {listen_in: [k: A]}]}\n",
		"local: ['Rendering SLS failed: x', 'a b']\n", "{}", "[]", "null", "local: 'apiVersion: v1\n\nkind: A'\n", "a: {x: {}, y: {}}\n", "- - a\n", "A: k.object_present\nB: [k.x]\nC: {k: }\n",
		"A: &a {k.object_present: [{manifest: *a}]}\n", "&a [*a]\n", "&a {A: *a}\n", "? [a]\n: {b: c}\n", "A: {k.object_present: [{require: [{'*': '*'}, a, {k: [x]}, {k: 'a*'}]}]}\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		decode := func(shape Shape) (string, bool) {
			doc := &yaml.Node{}
			if yaml.Unmarshal([]byte(text), doc) != nil {
				return "", false
			}
			_, _ = Text(doc)
			_ = Unwrap(doc)
			if shape < 0 {
				shape = Detect(doc)
			}
			d := Decode(doc, shape, Options{IgnoreNonKubernetesStates: true})
			Link(d)
			if len(d.Documents)+len(d.Problems) == 0 && shape != Manifests && shape != Rendered {
				t.Errorf("%s: neither a manifest nor a problem", shape)
			}
			for _, document := range d.Documents {
				if document.Node == nil || document.Line < 0 {
					t.Errorf("%s: a document without a node or a line: %+v", shape, document)
				}
				for _, r := range document.Requires {
					if !slices.Contains(d.Documents, r.On) {
						t.Errorf("%s: requires a document that it does not have: %+v", shape, r.On)
					}
				}
			}
			return show(d.Documents, d.Problems, d.Warnings), true
		}
		for _, shape := range []Shape{-1, Manifests, High, Low, Errors, Empty, Rendered} {
			one, ok := decode(shape)
			if !ok {
				return
			}
			if two, _ := decode(shape); one != two {
				t.Errorf("%s: once\n%s\nthen\n%s", shape, one, two)
			}
		}
	})
}
