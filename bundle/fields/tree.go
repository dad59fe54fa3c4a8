package fields

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A tree is what an entry of managedFields owns, as fieldsV1 is decoded (structured-merge-diff,
// fieldpath/serialize.go: f: a field, k: an element by its keys, v: a set's value, i: an index,
// ".": the thing itself). An empty one owns all of a value. It is walked as it is: to read it
// into a fieldpath.Set first takes half as long again, and two thirds more memory
// (BenchmarkLiveHash).

// Below is what a tree owns of a field, or, where element is one, of that element of a list; ok
// is false if that is nothing.
func Below(tree map[string]any, field string, element any) (below map[string]any, ok bool) {
	if element == nil {
		below, ok = tree["f:"+field].(map[string]any)
		return below, ok
	}
	for key := range tree {
		if isElementKey(key) && IsElement(key, element) {
			below, ok = tree[key].(map[string]any)
			return below, ok
		}
	}
	return nil, false
}

// isElementKey says whether a key in fieldsV1 is of an element of a list.
func isElementKey(key string) bool {
	return strings.HasPrefix(key, "k:") || strings.HasPrefix(key, "v:")
}

// DropAbsent removes the fields of objects that a value does not have. Items of lists
// stay: an item without an owner is one that is not there.
func DropAbsent(tree map[string]any, value any) {
	for key, below := range tree {
		if !strings.HasPrefix(key, "f:") {
			continue
		}
		there, field, _ := at(value, key)
		if part, ok := below.(map[string]any); ok && there {
			DropAbsent(part, field)
		} else if !there {
			delete(tree, key)
		}
	}
}

// WithoutSelf is an object whose managers own the parts of values, and not ".", the values that
// hold them: whether they own these too depends on the schema alone.
func WithoutSelf(u *unstructured.Unstructured) *unstructured.Unstructured {
	u = u.DeepCopy()
	metadata, _ := u.Object["metadata"].(map[string]any)
	entries, _ := metadata["managedFields"].([]any)
	for _, e := range entries {
		entry, _ := e.(map[string]any)
		tree, _ := entry["fieldsV1"].(map[string]any)
		dropSelf(tree)
	}
	return u
}

func dropSelf(tree map[string]any) {
	delete(tree, ".")
	for _, below := range tree {
		part, _ := below.(map[string]any)
		dropSelf(part)
	}
}

// Shared are the fields that two entries of managedFields share.
func Shared(a, b map[string]any) string {
	var text strings.Builder
	for _, key := range slices.Sorted(maps.Keys(a)) {
		inB, ok := b[key].(map[string]any)
		if !ok {
			continue
		}
		inA, _ := a[key].(map[string]any)
		if below := Shared(inA, inB); below != "" || len(inA) == 0 || len(inB) == 0 {
			fmt.Fprintf(&text, "%q{%s}", key, below)
		}
	}
	return text.String()
}

// AppendOwned writes what a tree owns of a live value, for a hash: its form is that of the
// fingerprints of all versions.
func AppendOwned(text []byte, tree map[string]any, live any) []byte {
	if len(tree) == 0 {
		return appendValue(text, live)
	}
	var items func(key string) any
	for _, key := range slices.Sorted(maps.Keys(tree)) {
		text = append(strconv.AppendQuote(text, key), '{')
		below, _ := tree[key].(map[string]any)
		kind, name, _ := strings.Cut(key, ":")
		switch kind {
		case "f":
			object, _ := live.(map[string]any)
			value, ok := object[name]
			if !ok {
				text = append(text, "absent"...)
				break
			}
			text = AppendOwned(text, below, value)
		case "k":
			if items == nil {
				items = itemsByKey(live)
			}
			item := items(name)
			if item == nil {
				text = append(text, "absent"...)
				break
			}
			text = AppendOwned(text, below, item)
		case "v":
			list, _ := live.([]any)
			text = strconv.AppendBool(text, slices.ContainsFunc(list, func(item any) bool { return IsElement(key, item) }))
		case "i":
			text = appendValue(text, live)
		case ".":
			text = strconv.AppendBool(text, live != nil)
		}
		text = append(text, '}')
	}
	return text
}

func appendValue(text []byte, v any) []byte {
	if s, ok := v.(string); ok { // as nearly all of them are
		return strconv.AppendQuote(text, s)
	}
	value, err := json.Marshal(v)
	if err != nil {
		value = fmt.Append(nil, v)
	}
	return append(text, value...)
}

// itemsByKey finds items of a list by their keys, as JSON: {"name":"app"}.
// Each set of key fields is indexed once, so long lists stay cheap.
func itemsByKey(live any) func(string) any {
	list, _ := live.([]any)
	indices := map[string]map[string]any{}
	return func(key string) any {
		var wanted map[string]any
		if json.Unmarshal([]byte(key), &wanted) != nil {
			return nil
		}
		names := slices.Sorted(maps.Keys(wanted))
		index, ok := indices[strings.Join(names, ",")]
		if !ok {
			index = map[string]any{}
			for _, item := range list {
				if object, ok := item.(map[string]any); ok {
					index[keyOf(object, names)] = item
				}
			}
			indices[strings.Join(names, ",")] = index
		}
		return index[keyOf(wanted, names)]
	}
}

func keyOf(object map[string]any, names []string) string {
	var key strings.Builder
	for _, name := range names {
		text, err := json.Marshal(object[name])
		if err != nil {
			return ""
		}
		key.Write(text)
		key.WriteByte(',')
	}
	return key.String()
}
