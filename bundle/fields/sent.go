package fields

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// What is sent, and what counts, where fields are left to others.

// Sent is what is sent of an object to one that is live. A field that is left to
// others is left out where another manager owns it, or nobody does. Where brine
// alone owns it the server would remove it then: its live value is sent. What the
// live object does not have yet, such as a new element of a list, is sent whole.
// wanted is not changed.
func (ps Pointers) Sent(wanted map[string]any, live *unstructured.Unstructured) map[string]any {
	if len(ps) == 0 {
		return wanted
	}
	ours, others := Managed(live)
	tree, _ := ours["fieldsV1"].(map[string]any)
	for _, p := range ps {
		sent, _ := send(wanted, owned{live: live.Object, there: true, ours: tree, others: others}, p)
		wanted, _ = sent.(map[string]any)
	}
	return wanted
}

// send is what is sent of a value that contains the field of a pointer, or is it.
func send(wanted any, o owned, p Pointer) (any, bool) {
	if len(p) == 0 {
		if o.whole {
			return o.live, o.there
		}
		return o.alone()
	}
	if len(p) == 1 && p[0] == anyToken && o.atomic() {
		return o.live, o.there
	}
	switch wanted := wanted.(type) {
	case map[string]any:
		if _, ok := o.live.(map[string]any); !ok {
			return wanted, true
		}
		return sendMap(wanted, o, p), true
	case []any:
		if _, ok := o.live.([]any); !ok {
			return wanted, true
		}
		return sendList(wanted, o, p), true
	}
	return wanted, true
}

func sendMap(wanted map[string]any, o owned, p Pointer) map[string]any {
	out := maps.Clone(wanted)
	names := slices.Collect(maps.Keys(wanted))
	if len(p) == 1 { // also those that the bundle does not write any more
		for key := range o.ours {
			if name, ok := strings.CutPrefix(key, "f:"); ok {
				names = append(names, name)
			}
		}
		if live, ok := o.live.(map[string]any); ok && o.atomic() {
			names = slices.AppendSeq(names, maps.Keys(live))
		}
	}
	for _, name := range names {
		if !matches(p[0], name) {
			continue
		}
		if value, ok := send(wanted[name], o.field(name), p[1:]); ok {
			out[name] = value
		} else {
			delete(out, name)
		}
	}
	return out
}

func sendList(wanted []any, o owned, p Pointer) []any {
	out := make([]any, 0, len(wanted))
	for i, item := range wanted {
		part, keys := o.element(i, item)
		isNew := !part.there && (len(p) > 1 || o.atomic())
		if isNew || !matches(p[0], strconv.Itoa(i)) {
			out = append(out, item)
			continue
		}
		value, ok := send(item, part, p[1:])
		if !ok {
			continue
		}
		if object, isObject := value.(map[string]any); isObject {
			was, _ := item.(map[string]any)
			for name := range keys {
				if k, written := was[name]; written && object[name] == nil {
					object[name] = k // the server finds the element by it
				}
			}
		}
		out = append(out, value)
	}
	if len(p) > 1 || p[0] != anyToken || o.atomic() {
		return out
	}
	live, _ := o.live.([]any)
	for _, item := range live { // also those that the bundle does not write any more
		key := slices.IndexFunc(o.elements(), func(key string) bool { return IsElement(key, item) })
		if key < 0 || slices.ContainsFunc(wanted, func(w any) bool { return IsElement(o.elements()[key], w) }) {
			continue
		}
		if value, ok := o.elementAlone(item); ok {
			out = append(out, value)
		}
	}
	return out
}

// Without is a value of the bundle without the fields that are left to others. It
// is not changed.
func (ps Pointers) Without(wanted map[string]any) map[string]any {
	for _, p := range ps {
		wanted, _ = without(wanted, p).(map[string]any)
	}
	return wanted
}

func without(value any, p Pointer) any {
	first, rest := p[0], p[1:] //nolint:gosec // a pointer is never empty
	switch value := value.(type) {
	case map[string]any:
		out := maps.Clone(value)
		for name := range value {
			switch {
			case !matches(first, name):
			case len(rest) == 0:
				delete(out, name)
			default:
				out[name] = without(value[name], rest)
			}
		}
		return out
	case []any:
		out := make([]any, 0, len(value))
		for i, item := range value {
			switch {
			case !matches(first, strconv.Itoa(i)):
				out = append(out, item)
			case len(rest) > 0:
				out = append(out, without(item, rest))
			}
		}
		return out
	}
	return value
}

// Trim is what an entry of fieldsV1 owns without the fields that are left to
// others, and the live value without those of them that only a whole value has an
// owner of. wanted is the bundle's object: its lists give numbers a meaning.
// Nothing that comes in is changed.
func (ps Pointers) Trim(tree map[string]any, live any, wanted map[string]any) (map[string]any, any) {
	for _, p := range ps {
		tree, live = trim(tree, live, wanted, p)
	}
	return tree, live
}

func trim(tree map[string]any, live, wanted any, p Pointer) (map[string]any, any) {
	if len(tree) == 0 {
		return tree, without(live, p)
	}
	out := maps.Clone(tree)
	for key, t := range tree {
		part, value, set := at(live, key)
		token, inBundle := wantedAt(wanted, key)
		if key == "." || !matches(p[0], token) {
			continue
		}
		below, _ := t.(map[string]any)
		if len(p) == 1 {
			delete(out, key)
			continue
		}
		left, changed := trim(below, value, inBundle, p[1:])
		if len(left) == 0 && len(below) > 0 {
			delete(out, key) // an empty one would own all of it
			continue
		}
		out[key] = left
		if part {
			live = set(changed)
		}
	}
	return out, live
}

// WithoutUnsent is a live object without what brine owned alone, and does not send any more: what the
// server would store, without its defaults. Items of lists stay.
func WithoutUnsent(live *unstructured.Unstructured, sent map[string]any) map[string]any {
	ours, others := Managed(live)
	tree, _ := ours["fieldsV1"].(map[string]any)
	out, _ := withoutUnsent(live.Object, tree, others, sent).(map[string]any)
	return out
}

func withoutUnsent(live any, tree map[string]any, others []map[string]any, sent any) any {
	for key, part := range tree {
		there, value, set := at(live, key)
		if !there {
			continue
		}
		var theirs []map[string]any
		for _, other := range others {
			if below, ok := other[key].(map[string]any); ok {
				theirs = append(theirs, below)
			}
		}
		isSent, now, _ := at(sent, key)
		below, _ := part.(map[string]any)
		_, whole := below["."]
		if isSent || len(theirs) > 0 || len(below) > 0 && !whole {
			live = set(withoutUnsent(value, below, theirs, now))
		} else if object, ok := live.(map[string]any); ok {
			object = maps.Clone(object)
			delete(object, strings.TrimPrefix(key, "f:"))
			live = object
		}
	}
	return live
}

// at is the part of a live value that a key in fieldsV1 stands for, and how to
// put another one in its place, in a copy.
func at(live any, key string) (there bool, value any, set func(any) any) {
	switch live := live.(type) {
	case map[string]any:
		name := strings.TrimPrefix(key, "f:")
		value, there = live[name]
		return there, value, func(v any) any {
			out := maps.Clone(live)
			out[name] = v
			return out
		}
	case []any:
		i := slices.IndexFunc(live, func(item any) bool { return IsElement(key, item) })
		if i >= 0 {
			return true, live[i], func(v any) any {
				out := slices.Clone(live)
				out[i] = v
				return out
			}
		}
	}
	return false, nil, nil
}

// wantedAt is the token of a pointer that a key in fieldsV1 stands for, and the
// bundle's value there.
func wantedAt(wanted any, key string) (token string, value any) {
	if name, ok := strings.CutPrefix(key, "f:"); ok {
		object, _ := wanted.(map[string]any)
		return name, object[name]
	}
	list, _ := wanted.([]any)
	i := slices.IndexFunc(list, func(item any) bool { return IsElement(key, item) })
	if i < 0 {
		return "", nil
	}
	return strconv.Itoa(i), list[i]
}
