package sls

import (
	"fmt"
	"slices"
	"testing"
)

// States of several renderings see one another.
func TestLink(t *testing.T) {
	state := func(id, name, more string) string {
		return id + ":\n  k.object_present:\n  - manifest: " + cm(name) + "\n" + more
	}
	nop := func(id, more string) string { return id + ":\n  test.nop:\n" + more }
	for _, c := range []struct {
		name       string
		renderings []string
		want       []string
	}{
		{"require", []string{state("A", "a", "  - require: [B]\n"), state("B", "b", "")}, []string{"0/A needs 1/B: require: B"}},
		{"require_in", []string{state("A", "a", "  - require_in: [{k: B}]\n"), state("B", "b", "")}, []string{"1/B needs 0/A: require_in: A"}},
		{"a module and a name", []string{state("A", "a", "  - watch: [{k: b}]\n"), state("B", "b", "  - name: b\n")}, []string{"0/A needs 1/B: watch: B"}},
		{"an SLS", []string{state("A", "a", "  - require: [{sls: deep.two}]\n"), "B: {__sls__: deep.two, k.object_present: [{manifest: " + cm("b") + "}]}\nC: {__sls__: deep.two, k.object_present: [{manifest: " + cm("c") + "}]}\n"},
			[]string{"0/A needs 1/B: require: sls deep.two", "0/A needs 1/C: require: sls deep.two"}},
		{"through a state that is no object", []string{state("A", "a", "  - require: [N]\n"), nop("N", "  - require: [B]\n"), state("B", "b", "")}, []string{"0/A needs 2/B: require: N, require: B"}},
		{"its own rendering's first", []string{state("A", "a", "  - require: [B]\n") + state("B", "b", ""), state("B", "b", "")}, []string{"0/A needs 0/B: require: B"}},
		{"low data and high data", []string{"[{state: k, fun: object_present, name: A, __id__: A, manifest: " + cm("a") + ", require: [{k: B}]}]", state("B", "b", "")}, []string{"0/A needs 1/B: require: B"}},
		{"nothing", []string{state("A", "a", ""), state("B", "b", "  - require: [C]\n")}, []string{"1: B: require: no state of the bundle matches {id: C}"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var all []*Rendering
			for _, text := range c.renderings {
				doc := parse(t, text)
				all = append(all, Decode(doc, Detect(doc), Options{IgnoreNonKubernetesStates: true}))
			}
			Link(all...)
			var got []string
			for i, r := range all {
				for _, d := range r.Documents {
					for _, on := range d.Requires {
						got = append(got, fmt.Sprintf("%d/%s needs %d/%s: %s", i, d.State, slices.IndexFunc(all, func(r *Rendering) bool { return slices.Contains(r.Documents, on.On) }), on.On.State, on.Reason))
					}
				}
				for _, p := range r.Problems {
					if len(r.Documents) > 0 { // one of foreign states alone is a problem of its own
						got = append(got, fmt.Sprintf("%d: %s: %s", i, p.Source.State, p.Message))
					}
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
