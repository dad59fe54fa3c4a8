package fields

import (
	"encoding/json"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
)

// Who owns a value of a live object, and parts of it, by fieldsV1.

// Managed are brine's entry in managedFields and the fields of the others', read
// without the copy that unstructured.NestedSlice makes.
func Managed(live *unstructured.Unstructured) (ours map[string]any, others []map[string]any) {
	metadata, _ := live.Object["metadata"].(map[string]any)
	entries, _ := metadata["managedFields"].([]any)
	for _, e := range entries {
		entry, _ := e.(map[string]any)
		if entry["manager"] == bundle.FieldManager && entry["operation"] == "Apply" && entry["subresource"] == nil {
			ours = entry
		} else if fields, ok := entry["fieldsV1"].(map[string]any); ok {
			others = append(others, fields)
		}
	}
	return ours, others
}

// owned is a value of the live object with who owns it or parts of it, as in
// fieldsV1 (structured-merge-diff, fieldpath/serialize.go: f: a field, k: an
// element by its keys, v: a set's value, ".": the thing itself). An empty map owns
// all of it.
type owned struct {
	live   any
	there  bool
	ours   map[string]any // nil: brine owns nothing of it
	others []map[string]any
	// whole: it is a part of a value that has owners only as a whole.
	whole bool
}

// atomic says whether a value has owners, and none of a part of it.
func (o owned) atomic() bool {
	if o.whole {
		return true
	}
	trees := o.trees()
	return len(trees) > 0 && !slices.ContainsFunc(trees, func(t map[string]any) bool { return len(t) > 0 })
}

func (o owned) trees() []map[string]any {
	if o.ours == nil {
		return o.others
	}
	return append(slices.Clone(o.others), o.ours)
}

// below is a part of it, under a key of fieldsV1.
func (o owned) below(key string, live any, there bool) owned {
	part := owned{live: live, there: there, whole: o.atomic()}
	part.ours, _ = o.ours[key].(map[string]any)
	for _, other := range o.others {
		if t, ok := other[key].(map[string]any); ok {
			part.others = append(part.others, t)
		}
	}
	return part
}

func (o owned) field(name string) owned {
	object, _ := o.live.(map[string]any)
	live, there := object[name]
	return o.below("f:"+name, live, there)
}

// element is the live element that an element of the bundle's list stands for,
// and the fields that are its keys. Without owners it is found by its name or its
// place.
func (o owned) element(i int, wanted any) (part owned, keys map[string]any) {
	list, _ := o.live.([]any)
	for _, key := range o.elements() {
		if !IsElement(key, wanted) {
			continue
		}
		at := slices.IndexFunc(list, func(item any) bool { return IsElement(key, item) })
		if at < 0 {
			return owned{}, nil
		}
		_ = json.Unmarshal([]byte(strings.TrimPrefix(key, "k:")), &keys) // of a set it has none
		return o.below(key, list[at], true), keys
	}
	if len(o.elements()) > 0 {
		return owned{}, nil
	}
	named, _ := wanted.(map[string]any)
	if name, ok := named["name"]; ok {
		i = slices.IndexFunc(list, func(item any) bool {
			other, _ := item.(map[string]any)
			return other["name"] == name
		})
	}
	if i < 0 || i >= len(list) {
		return owned{}, nil
	}
	part = o.below("", list[i], true)
	part.whole = true // who knows: its live value changes nothing
	return part, nil
}

// elements are the keys in fieldsV1 of all elements that have an owner.
func (o owned) elements() []string {
	var keys []string
	for _, tree := range o.trees() {
		for key := range tree {
			if isElementKey(key) {
				keys = append(keys, key)
			}
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// IsElement says whether a key in fieldsV1 is that of an element. A key that the
// element does not write has its default, which is known only of a protocol.
func IsElement(key string, item any) bool {
	if value, ok := strings.CutPrefix(key, "v:"); ok {
		return text(item) == value
	}
	var keys map[string]any
	object, ok := item.(map[string]any)
	if !ok || json.Unmarshal([]byte(strings.TrimPrefix(key, "k:")), &keys) != nil {
		return false
	}
	for name, value := range keys {
		is, written := object[name]
		if !written && name == "protocol" {
			is, written = "TCP", true
		}
		if written && text(is) != text(value) {
			return false
		}
	}
	return true
}

func text(value any) string {
	t, err := json.Marshal(value)
	if err != nil {
		return ""
	}
	return string(t)
}

// alone is what brine alone owns of a live value: left out of an apply, the
// server would remove it.
func (o owned) alone() (any, bool) {
	if o.ours == nil || !o.there {
		return nil, false
	}
	if len(o.ours) == 0 {
		return o.live, len(o.others) == 0
	}
	switch live := o.live.(type) {
	case map[string]any:
		kept := map[string]any{}
		for key := range o.ours {
			if name, ok := strings.CutPrefix(key, "f:"); ok {
				if value, ok := o.field(name).alone(); ok {
					kept[name] = value
				}
			}
		}
		return kept, len(kept) > 0 || len(live) == 0 && len(o.others) == 0
	case []any:
		var kept []any
		for _, item := range live {
			if value, ok := o.elementAlone(item); ok {
				kept = append(kept, value)
			}
		}
		return kept, len(kept) > 0
	}
	return nil, false
}

// elementAlone is what brine alone owns of an element, with its keys.
func (o owned) elementAlone(item any) (any, bool) {
	for key := range o.ours {
		if !isElementKey(key) || !IsElement(key, item) {
			continue
		}
		value, ok := o.below(key, item, true).alone()
		object, isObject := value.(map[string]any)
		if !ok || !isObject {
			return value, ok
		}
		live, _ := item.(map[string]any)
		var keys map[string]any
		_ = json.Unmarshal([]byte(strings.TrimPrefix(key, "k:")), &keys) // it was read before
		for name := range keys {
			if _, ok := object[name]; !ok {
				object[name] = live[name]
			}
		}
		return object, true
	}
	return nil, false
}
