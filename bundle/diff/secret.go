package diff

import (
	"maps"
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/cli-utils/pkg/jsonpath"

	"brine/bundle"
	"brine/bundle/redact"
)

// Values of Secrets are masked, and differ where they differed.

// What stands for a Secret's value. Nothing that is derived from the value (its
// length, a hash) may: short values can be guessed from either.
const (
	mask        = redact.Mask
	maskChanged = mask + changed
	changed     = " (changed)"
)

// masked masks the values of Secrets in a and b, two versions of one object, so that
// values that differ do so afterwards. It copies only where there is one.
func masked(a, b any) (any, any) {
	a, b = maskedCopies(a, b)
	if !redact.Within(a) && !redact.Within(b) {
		return a, b
	}
	return hidden(a, b, mask), hidden(b, a, maskChanged)
}

// maskedCopies masks what apply-time mutations copied from Secrets, in either version. On the cluster an
// item of a list may be at another place than the path says: all items are masked there. Where the path
// leads nowhere, the values may be anywhere.
func maskedCopies(a, b any) (_, _ any) {
	x, _ := a.(map[string]any)
	y, _ := b.(map[string]any)
	before, readable := redact.Copied(x)
	after, too := redact.Copied(y)
	if readable && too && len(before)+len(after) == 0 {
		return a, b
	}
	x, y = runtime.DeepCopyJSON(x), runtime.DeepCopyJSON(y)
	known, shown := readable && too, map[string]string{}
	for _, path := range slices.Concat(before, after) {
		all := places.ReplaceAllString(path, "[*]")
		was, found := valuesAt(x, all)
		is, has := valuesAt(y, all)
		known = known && (found || !slices.Contains(before, path)) && (has || !slices.Contains(after, path))
		if shown[all] = mask; found && has && !equal(was, is) {
			shown[all] = maskChanged
		}
	}
	for path, text := range shown {
		known = known && maskAt(x, path, mask) && maskAt(y, path, text)
	}
	if !known {
		hideMost(x, y)
		hideMost(bundle.At[map[string]any](x, "metadata"), bundle.At[map[string]any](y, "metadata"))
	}
	own, others := annotations(x), annotations(y)
	for _, key := range wholeObject {
		for _, all := range []map[string]any{own, others} {
			if _, ok := all[key]; ok {
				all[key] = mask
			}
		}
	}
	return orNil(x), orNil(y)
}

// places are those of items of a list in a JSONPath: by number, filter or range.
var places = regexp.MustCompile(`\[(-?\d+|\?\(.*?\)|-?\d*:-?\d*(:-?\d*)?)\]`)

func valuesAt(object map[string]any, path string) (values []any, found bool) {
	if object == nil {
		return nil, false
	}
	values, err := jsonpath.Get(object, path)
	return values, err == nil && len(values) > 0
}

// maskAt is false where that cannot be done.
func maskAt(object map[string]any, path, text string) bool {
	if object == nil {
		return true
	}
	_, err := jsonpath.Set(object, path, text)
	return err == nil
}

// hideMost masks all fields of two versions but those that say what the object is.
func hideMost(x, y map[string]any) {
	for key := range sets.KeySet(x).Union(sets.KeySet(y)).Delete("apiVersion", "kind", "metadata", "name", "namespace") {
		was, found := x[key]
		is, has := y[key]
		if found {
			x[key] = mask
		}
		if has {
			y[key] = hide(is, was, found, maskChanged)
		}
	}
}

func orNil(object map[string]any) any {
	if object == nil {
		return nil
	}
	return object
}

// hidden is a copy of a value without the values of Secrets. In other, another version
// of it, they may be others: those are hidden by differs.
func hidden(v, other any, differs string) any {
	switch v := v.(type) {
	case map[string]any:
		was, _ := other.(map[string]any)
		secret := redact.IsSecret(v) || redact.IsSecret(was)
		out := make(map[string]any, len(v))
		for k, w := range v {
			if secret && (k == "data" || k == "stringData") {
				out[k] = hiddenData(w, was[k], differs)
			} else {
				out[k] = hidden(w, was[k], differs)
			}
		}
		own, others := annotations(out), annotations(was)
		for _, k := range wholeObject {
			if w, ok := own[k]; ok {
				old, both := others[k]
				own[k] = hide(w, old, both, differs)
			}
		}
		return out
	case []any:
		was, _ := other.([]any)
		out := make([]any, len(v))
		for i, w := range v {
			var old any
			if i < len(was) {
				old = was[i]
			}
			out[i] = hidden(w, old, differs)
		}
		return out
	}
	return v
}

// hiddenData hides data, in whatever shape: a bad Secret may hold a string where there
// should be a map.
func hiddenData(v, other any, differs string) any {
	values, isMap := v.(map[string]any)
	was, wasMap := other.(map[string]any)
	switch {
	case v == nil:
		return nil
	case !isMap || !wasMap && other != nil:
		return hide(v, other, other != nil, differs)
	}
	out := maps.Clone(values)
	for k, w := range values {
		old, both := was[k]
		out[k] = hide(w, old, both, differs)
	}
	return out
}

// hide is what stands for a value.
func hide(v, other any, both bool, differs string) string {
	if both && !equal(v, other) {
		return differs
	}
	return mask
}

// wholeObject are annotations in which a tool keeps the object it applied.
var wholeObject = []string{
	redact.LastApplied,
	"kapp.k14s.io/original",
	"kapp.k14s.io/original-diff",
	"kapp.k14s.io/original-diff-full",
	"objectset.rio.cattle.io/applied",
}

func annotations(m map[string]any) map[string]any {
	return bundle.At[map[string]any](m, "metadata", "annotations")
}
