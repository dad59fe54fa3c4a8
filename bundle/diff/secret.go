package diff

import (
	"encoding/base64"
	"fmt"
	"maps"
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
	if a, b, copied := maskedCopies(a, b); copied {
		return a, b
	}
	if !redact.Within(a) && !redact.Within(b) {
		return a, b
	}
	return hidden(a, b, mask), hidden(b, a, maskChanged)
}

// maskedCopies masks what apply-time mutations copied from Secrets, in either version.
func maskedCopies(a, b any) (_, _ any, copied bool) {
	x, _ := a.(map[string]any)
	y, _ := b.(map[string]any)
	before, readable := redact.Copied(x)
	after, too := redact.Copied(y)
	paths := slices.Concat(before, after)
	switch {
	case !readable || !too: // they may be anywhere
		for key := range sets.KeySet(x).Union(sets.KeySet(y)).Delete("apiVersion", "kind", "metadata") {
			paths = append(paths, fmt.Sprintf("$['%s']", key))
		}
	case len(paths) == 0:
		return a, b, false
	}
	for _, annotation := range wholeObject {
		paths = append(paths, fmt.Sprintf("$.metadata.annotations['%s']", annotation))
	}
	x, y = runtime.DeepCopyJSON(x), runtime.DeepCopyJSON(y)
	shown := make([]string, len(paths))
	for i, path := range paths {
		old, _ := jsonpath.Get(x, path)
		now, _ := jsonpath.Get(y, path)
		shown[i] = mask
		if len(old) > 0 && len(now) > 0 && !equal(old, now) {
			shown[i] = maskChanged
		}
	}
	for i, path := range paths {
		_, _ = jsonpath.Set(x, path, mask)
		_, _ = jsonpath.Set(y, path, shown[i])
	}
	return orNil(x), orNil(y), true
}

func orNil(object map[string]any) any {
	if object == nil {
		return nil
	}
	return object
}

// foldStringData moves stringData into data, as the server does when it stores
// a Secret. The maps that it changes are fresh ones.
func foldStringData(m map[string]any) {
	text, ok := m["stringData"].(map[string]any)
	if !ok {
		return
	}
	data := map[string]any{}
	if d, ok := m["data"].(map[string]any); ok {
		maps.Copy(data, d)
	}
	for k, v := range text {
		if s, ok := v.(string); ok {
			v = base64.StdEncoding.EncodeToString([]byte(s))
		}
		data[k] = v
	}
	delete(m, "stringData")
	m["data"] = data
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
