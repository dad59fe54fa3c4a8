package ready

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"brine/bundle"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Reading an object's fields and conditions, whatever their types are.

// object reads an object's content whatever its shape: a custom resource's
// status holds what its controller likes.
type object struct{ content map[string]any }

func (o object) field(path ...string) any { return bundle.At[any](o.content, path...) }

func (o object) text(path ...string) string { return bundle.At[string](o.content, path...) }

func (o object) flag(path ...string) bool { return bundle.At[bool](o.content, path...) }

func (o object) list(path ...string) []any { return bundle.At[[]any](o.content, path...) }

// objects are the items of a list that are objects.
func (o object) objects(path ...string) []object {
	return bundle.Each(bundle.Items[map[string]any](o.content, path...), func(m map[string]any) object { return object{m} })
}

func (o object) number(path ...string) (int64, bool) {
	n, ok := bundle.Integer(o.content, path...)
	return int64(n), ok
}

// observed is status.observedGeneration, which Argo Rollouts writes as text. (Up to 0.9 it
// was a hash: far more than any generation, or no number.)
func (o object) observed() (int64, bool) {
	if n, err := strconv.ParseInt(o.text("status", "observedGeneration"), 10, 64); err == nil {
		return n, true
	}
	return o.number("status", "observedGeneration")
}

// count is a number that is left out when it is the fallback.
func (o object) count(fallback int64, path ...string) int64 {
	if n, ok := o.number(path...); ok {
		return n
	}
	return fallback
}

// with is a copy of o in which one field of section (spec or status) differs.
func (o object) with(section, key string, value any) object {
	content := maps.Clone(o.content)
	old, _ := content[section].(map[string]any)
	inner := map[string]any{}
	maps.Copy(inner, old)
	inner[key] = value
	content[section] = inner
	return object{content}
}

func (o object) unstructured() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: o.content}
}

// plain is as much of the object as kstatus' general rules look at, in the
// types that they expect.
func (o object) plain() *unstructured.Unstructured {
	metadata, state := map[string]any{}, map[string]any{}
	if n, ok := o.number("metadata", "generation"); ok {
		metadata["generation"] = n
		if seen, ok := o.observed(); ok && seen <= n {
			state["observedGeneration"] = seen
		}
	}
	var conditions []any
	for _, c := range o.conditions() {
		conditions = append(conditions, map[string]any{"type": c.kind, "status": c.status, "reason": c.reason, "message": c.message})
	}
	if conditions != nil {
		state["conditions"] = conditions
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": o.text("apiVersion"), "kind": o.text("kind"), "metadata": metadata, "status": state,
	}}
}

// condition is one of status.conditions.
type condition struct {
	kind, status, reason, message string

	generation int64 // observedGeneration; 0 where there is none
}

// String is "Type=Status Reason: message" in one line.
func (c condition) String() string {
	s := c.kind + "=" + c.status
	if c.reason != "" {
		s += " " + c.reason
	}
	if c.message != "" {
		s += ": " + c.message
	}
	return oneLine(s)
}

func (o object) conditions() []condition {
	var all []condition
	for _, c := range o.objects("status", "conditions") {
		if c.text("type") == "" {
			continue
		}
		all = append(all, condition{
			kind: c.text("type"), status: truth(c.field("status")), reason: c.text("reason"), message: c.text("message"),
			generation: c.count(0, "observedGeneration"),
		})
	}
	return all
}

// truth is a condition's status as Kubernetes writes it; some controllers have a boolean there,
// or small letters.
func truth(v any) string {
	text := fmt.Sprint(v)
	for _, known := range []string{"True", "False", "Unknown"} {
		if strings.EqualFold(text, known) {
			return known
		}
	}
	text, _ = v.(string)
	return text
}

func (o object) condition(kind string) (condition, bool) {
	for _, c := range o.conditions() {
		if c.kind == kind {
			return c, true
		}
	}
	return condition{}, false
}

// SaysGeneration says whether a status, or a condition in it, is about the object's generation of now.
func SaysGeneration(live *unstructured.Unstructured) bool {
	wanted, _ := object{live.Object}.number("metadata", "generation")
	return saysGeneration(live.Object["status"], wanted)
}

func saysGeneration(v any, wanted int64) bool {
	switch v := v.(type) {
	case map[string]any:
		if observed, ok := (object{v}).number("observedGeneration"); ok && observed >= wanted {
			return true
		}
		for _, inner := range v {
			if saysGeneration(inner, wanted) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, func(inner any) bool { return saysGeneration(inner, wanted) })
	}
	return false
}

// SaysReady says whether an object has a condition Ready, whatever it says.
func SaysReady(live *unstructured.Unstructured) bool {
	_, ok := object{live.Object}.condition("Ready")
	return ok
}

// telling is "; " and the first of the named conditions ("Available=False")
// that holds, or nothing.
func (o object) telling(which ...string) string {
	all := o.conditions()
	for _, w := range which {
		kind, value, _ := strings.Cut(w, "=")
		for _, c := range all {
			if c.kind == kind && c.status == value {
				return "; " + c.String()
			}
		}
	}
	return ""
}
