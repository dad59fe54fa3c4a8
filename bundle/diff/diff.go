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

	"brine/bundle"
)

// Change is one field that changes; Old or New is nil where the field is not
// there. Values of Secrets are masked. Path is as kubectl writes it, list items
// by what identifies them where something does:
// "spec.template.spec.containers[name=app].image", "spec.rules[0].host",
// `metadata.annotations["example.com/a.b"]`.
type Change struct {
	Path string `json:"path" text:"field"`
	Old  any    `json:"old,omitempty" text:"content"`
	New  any    `json:"new,omitempty" text:"content"`
	// Moved is the path of New where an item of a list moves to another place.
	Moved string `json:"moved,omitempty" text:"field"`
	// Manager is who wrote Old, Time when (RFC 3339), as far as the server keeps it.
	// Only of drift.
	Manager string `json:"manager,omitempty" text:"name"`
	Time    string `json:"time,omitempty" text:"name"`
}

// Place is the Path, and where a moved item goes: "spec.args[1] (moved to [7])". An item
// that also changes is "spec.args[1] (now [7])".
func (c Change) Place() string {
	if c.Moved == "" {
		return c.Path
	}
	if !reflect.DeepEqual(c.Old, c.New) {
		return c.Path + " (now " + c.Moved[strings.LastIndexByte(c.Moved, '['):] + ")"
	}
	return c.Path + " (moved to " + c.Moved[strings.LastIndexByte(c.Moved, '['):] + ")"
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

// serverSet are the fields of metadata that the server keeps for itself.
var serverSet = []string{
	"creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid",
}

// Objects compares two versions of one object as the server stores them. Either
// may be nil: the object is created, or deleted. Neither is changed. redact, unless
// it is nil, takes values of Secrets out of the texts in objects that are none.
func Objects(before, after *unstructured.Unstructured, redact func(string) string) Diff {
	a, b := masked(content(before), content(after))
	if equal(a, b) {
		return Diff{}
	}
	if redact != nil {
		a, b = redacted(a, b, redact)
	}
	d := Diff{Unified: unified(a, b)}
	if a != nil && b != nil {
		d.Changes = changes(nil, "", a, b)
	}
	return d
}

// Shown is an object as Objects shows it.
func Shown(u *unstructured.Unstructured, redact func(string) string) map[string]any {
	v, _ := masked(content(u), nil)
	if redact != nil {
		v = Rewrite(v, redact)
	}
	object, _ := v.(map[string]any)
	return object
}

// YAML is an object as Objects renders it.
func YAML(object map[string]any) string { return render(object) }

// redacted redacts the texts in a and b, two versions of one value, so that texts
// that differ do so afterwards.
func redacted(a, b any, text func(string) string) (any, any) {
	before := map[string]bool{}
	x := Rewrite(a, func(s string) string {
		t := text(s)
		before[s] = t != s
		return t
	})
	return x, Rewrite(b, func(s string) string {
		t := text(s)
		if t != s && a != nil && !before[s] {
			t += changed
		}
		return t
	})
}

// Rewrite is a copy of a JSON value, with every text rewritten.
func Rewrite(v any, text func(string) string) any {
	switch v := v.(type) {
	case string:
		return text(v)
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, w := range v {
			out[k] = Rewrite(w, text)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, w := range v {
			out[i] = Rewrite(w, text)
		}
		return out
	}
	return v
}

// Equal says that there is nothing between the two that a user would call a
// change. Status is ignored.
func Equal(before, after *unstructured.Unstructured) bool {
	return equal(content(before), content(after))
}

// content is a copy of what is compared, nil for an object that is not there.
func content(u *unstructured.Unstructured) any {
	if u == nil || u.Object == nil {
		return nil
	}
	c := maps.Clone(u.Object)
	delete(c, "status")
	if meta, ok := c["metadata"].(map[string]any); ok {
		m := maps.Clone(meta)
		for _, k := range serverSet {
			delete(m, k)
		}
		c["metadata"] = m
	}
	bundle.FoldStringData(c)
	return c
}

// equal compares values as JSON has them: 1 and 1.0 are one number.
func equal(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, b, equal)
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, equal)
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
