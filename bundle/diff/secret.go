package diff

import (
	"encoding/base64"
	"maps"

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

// masked masks the Secrets in a and b, two versions of one value, so that
// values that differ do so afterwards. It copies only where there is a Secret.
func masked(a, b any) (any, any) {
	if !redact.Within(a) && !redact.Within(b) {
		return a, b
	}
	same := func(text string) string { return text }
	a, b = Rewrite(a, same), Rewrite(b, same)
	maskPair(a, b)
	return a, b
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

// maskPair masks a and b in place, walking both at once; either may be missing.
func maskPair(a, b any) {
	x, _ := a.(map[string]any)
	y, _ := b.(map[string]any)
	if (x != nil && redact.IsSecret(x)) || (y != nil && redact.IsSecret(y)) {
		maskField(x, y, "data")
		maskField(x, y, "stringData")
		maskAnnotations(x, y)
		return
	}
	for k, v := range x {
		maskPair(v, y[k])
	}
	for k, v := range y {
		if _, both := x[k]; !both {
			maskPair(nil, v)
		}
	}
	maskAnnotations(x, y)
	maskLists(a, b)
}

func maskLists(a, b any) {
	x, _ := a.([]any)
	y, _ := b.([]any)
	for i := range max(len(x), len(y)) {
		switch {
		case i >= len(x):
			maskPair(nil, y[i])
		case i >= len(y):
			maskPair(x[i], nil)
		default:
			maskPair(x[i], y[i])
		}
	}
}

// maskField masks what is at f, in whatever shape: a bad Secret may hold a
// string where there should be a map.
func maskField(a, b map[string]any, f string) {
	x, isMap := a[f].(map[string]any)
	y, isMap2 := b[f].(map[string]any)
	if (isMap || a[f] == nil) && (isMap2 || b[f] == nil) {
		for k := range x {
			if _, both := y[k]; !both {
				x[k] = mask
			}
		}
		for k := range y {
			maskValue(x, y, k)
		}
		return
	}
	if a[f] == nil || b[f] == nil {
		replace(a, f, mask)
		replace(b, f, mask)
		return
	}
	maskValue(a, b, f)
}

// maskValue masks b[k], and a[k] where it is there.
func maskValue(a, b map[string]any, k string) {
	old, both := a[k]
	if !both {
		b[k] = mask
		return
	}
	same := equal(old, b[k])
	a[k], b[k] = mask, mask
	if !same {
		b[k] = maskChanged
	}
}

func replace(m map[string]any, k string, v any) {
	if m[k] != nil {
		m[k] = v
	}
}

// wholeObject are annotations in which a tool keeps the object it applied.
var wholeObject = []string{
	redact.LastApplied,
	"kapp.k14s.io/original",
	"kapp.k14s.io/original-diff",
	"kapp.k14s.io/original-diff-full",
	"objectset.rio.cattle.io/applied",
}

// maskAnnotations masks the annotations that hold a Secret's values. It is
// called only for objects that are, or hold, a Secret.
func maskAnnotations(a, b map[string]any) {
	x, y := annotations(a), annotations(b)
	for _, k := range wholeObject {
		_, old := x[k]
		_, now := y[k]
		switch {
		case now:
			maskValue(x, y, k)
		case old:
			x[k] = mask
		}
	}
}

func annotations(m map[string]any) map[string]any {
	return bundle.At[map[string]any](m, "metadata", "annotations")
}
