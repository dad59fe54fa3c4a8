// Package diff compares two versions of one object: the two come in; a unified diff
// of YAML for people and a list of fields for machines go out. Fields that only the
// server sets are no change. Values of Secrets never go out.
package diff

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle/redact"
)

// Change is one field that changes; Old or New is nil where the field is not
// there. Values of Secrets are masked. Path is as kubectl writes it, list items
// by what identifies them where something does:
// "spec.template.spec.containers[name=app].image", "spec.rules[0].host",
// `metadata.annotations["example.com/a.b"]`.
type Change struct {
	Path string `json:"path"`
	Old  any    `json:"old,omitempty"`
	New  any    `json:"new,omitempty"`
}

// Diff is what changes between two versions of an object; its zero value says
// that nothing does.
type Diff struct {
	// Unified is a unified diff of the two as YAML with sorted keys.
	Unified string
	// Changes are the fields that differ, in the order of their paths. It is
	// empty for an object that is created or deleted: there it would be the
	// whole object again.
	Changes []Change
}

// Options say how to compare; the zero value is what previews use.
type Options struct {
	// Context is the number of unchanged lines around a change; 0 means 3.
	Context int
	// ShowStatus compares the status as well.
	ShowStatus bool
	// Redact takes values of Secrets out of the texts in objects that are none.
	Redact func(string) string
}

// serverSet are the fields of metadata that the server keeps for itself.
var serverSet = []string{
	"creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid",
}

// Objects compares two versions of one object as the server stores them. Either
// may be nil: the object is created, or deleted. Neither is changed.
func Objects(before, after *unstructured.Unstructured, o Options) Diff {
	a, b := masked(content(before, o.ShowStatus), content(after, o.ShowStatus))
	if equal(a, b) {
		return Diff{}
	}
	if o.Redact != nil {
		a, b = redacted(a, b, o.Redact)
	}
	d := Diff{Unified: unified(a, b, o.Context)}
	if a != nil && b != nil {
		d.Changes = changes(nil, "", a, b)
	}
	return d
}

// redacted redacts the texts in a and b, two versions of one value, so that texts
// that differ do so afterwards.
func redacted(a, b any, text func(string) string) (any, any) {
	before := map[string]bool{}
	x := rewrite(a, func(s string) string {
		t := text(s)
		before[s] = t != s
		return t
	})
	return x, rewrite(b, func(s string) string {
		t := text(s)
		if t != s && a != nil && !before[s] {
			t += changed
		}
		return t
	})
}

// rewrite is v with every text rewritten. It copies only what changes.
func rewrite(v any, text func(string) string) any {
	switch v := v.(type) {
	case string:
		return text(v)
	case map[string]any:
		out := v
		for k, w := range v {
			n := rewrite(w, text)
			if same(n, w) {
				continue
			}
			if same(out, v) {
				out = maps.Clone(v)
			}
			out[k] = n
		}
		return out
	case []any:
		out := v
		for i, w := range v {
			n := rewrite(w, text)
			if same(n, w) {
				continue
			}
			if same(out, v) {
				out = slices.Clone(v)
			}
			out[i] = n
		}
		return out
	}
	return v
}

// same says whether a value is the very same one, not a copy.
func same(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer()
	case []any:
		b, ok := b.([]any)
		return ok && len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
	}
	return a == b
}

// Equal says that there is nothing between the two that a user would call a
// change. Status is ignored.
func Equal(before, after *unstructured.Unstructured) bool {
	return equal(content(before, false), content(after, false))
}

// content is a copy of what is compared, nil for an object that is not there.
func content(u *unstructured.Unstructured, status bool) any {
	if u == nil || u.Object == nil {
		return nil
	}
	c := make(map[string]any, len(u.Object))
	maps.Copy(c, u.Object)
	if !status {
		delete(c, "status")
	}
	if meta, ok := c["metadata"].(map[string]any); ok {
		m := make(map[string]any, len(meta))
		maps.Copy(m, meta)
		for _, k := range serverSet {
			delete(m, k)
		}
		c["metadata"] = m
	}
	if redact.IsSecret(c) {
		foldStringData(c)
	}
	return c
}

// equal compares values as JSON has them: 1 and 1.0 are one number.
func equal(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for k, v := range a {
			w, ok := b[k]
			if !ok || !equal(v, w) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !equal(a[i], b[i]) {
				return false
			}
		}
		return true
	}
	switch b.(type) {
	case map[string]any, []any:
		return false
	}
	if a == b {
		return true
	}
	x, ok := number(a)
	y, ok2 := number(b)
	return ok && ok2 && x == y
}

func number(v any) (float64, bool) {
	switch v := v.(type) {
	case int64:
		return float64(v), true
	case int:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

// deepCopy copies a JSON value; unlike runtime.DeepCopyJSONValue it takes any
// type, so that odd input cannot panic.
func deepCopy(v any) any {
	switch v := v.(type) {
	case map[string]any:
		c := make(map[string]any, len(v))
		for k, w := range v {
			c[k] = deepCopy(w)
		}
		return c
	case []any:
		c := make([]any, len(v))
		for i, w := range v {
			c[i] = deepCopy(w)
		}
		return c
	}
	return v
}

// field appends a map's key to a path.
func field(path, key string) string {
	plain := key != ""
	for _, r := range key {
		if r != '_' && r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') {
			plain = false
		}
	}
	if !plain {
		return path + `["` + strings.ReplaceAll(key, `"`, `\"`) + `"]`
	}
	if path == "" {
		return key
	}
	return path + "." + key
}
