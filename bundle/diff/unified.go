package diff

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"
	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// unified is the diff of a and b as YAML; nil is an object that is not there.
func unified(a, b any) string {
	from, to := "live", "applied"
	if a == nil {
		from = "/dev/null"
	}
	if b == nil {
		to = "/dev/null"
	}
	x, y := render(a), render(b)
	text, err := udiff.ToUnified(from, to, x, edits(x, y, 0), udiff.DefaultContextLines)
	if err != nil { // cannot be: the edits are udiff's own
		return fmt.Sprintf("--- %s\n+++ %s\n# no diff: %v\n", from, to, err)
	}
	return text
}

// edits turns x, which begins at byte offset of the whole, into y. udiff.Lines
// gives up after a hundred differences and calls all between the first and the
// last fifty different, so what it left in the middle is compared again.
func edits(x, y string, offset int) []udiff.Edit {
	var out []udiff.Edit
	for _, e := range udiff.Lines(x, y) {
		old := x[e.Start:e.End]
		// No progress (all of x is one edit), or too little to be worth it.
		if (len(old) == len(x) && len(e.New) == len(y)) || strings.Count(old, "\n") < 50 || strings.Count(e.New, "\n") < 50 {
			out = append(out, udiff.Edit{Start: offset + e.Start, End: offset + e.End, New: e.New})
			continue
		}
		out = append(out, edits(old, e.New, offset+e.Start)...)
	}
	return out
}

// render is YAML with sorted keys, but what names the object on top.
func render(v any) string {
	m, ok := v.(map[string]any)
	if !ok {
		return ""
	}
	first := []string{"apiVersion", "kind", "metadata"}
	keys := slices.DeleteFunc(slices.Sorted(maps.Keys(m)), func(k string) bool { return slices.Contains(first, k) })
	var b strings.Builder
	for _, k := range append(first, keys...) {
		v, ok := m[k]
		if !ok {
			continue
		}
		text, err := yaml.Marshal(map[string]any{k: v})
		if err != nil { // cannot be: what came from JSON goes back into it
			fmt.Fprintf(&b, "# %s: %v\n", k, err)
			continue
		}
		b.Write(text)
	}
	return b.String()
}
