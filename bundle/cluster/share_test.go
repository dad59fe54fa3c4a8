package cluster

import (
	"encoding/json"
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Equal managedFields are one map afterwards, others stay, and no object changes.
func TestSharingOfManagedFields(t *testing.T) {
	read := func(fields string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{}
		if err := json.Unmarshal([]byte(`{"metadata": {"managedFields": [{"manager": "a", "fieldsV1": `+fields+`}, {"manager": "b"}]}}`), &u.Object); err != nil {
			t.Fatal(err)
		}
		return u
	}
	texts := []string{
		`{"f:data": {"f:a": {}, "f:b": {}}}`, `{"f:data": {"f:b": {}, "f:a": {}}}`, // equal
		`{"f:data": {"f:a": {"f:b": {}}}}`, `{"f:data": {"f:b": {"f:a": {}}}}`, `{"f:data": {}}`, `{}`, `{"f:data": {"f:a": 1}}`, `{"f:data": {"f:a": 2}}`, `"no map"`,
	}
	s, at := newSharing(), map[uintptr][]int{}
	for i, text := range texts {
		u := read(text)
		s.managedFields(u)
		if !reflect.DeepEqual(u, read(text)) {
			t.Errorf("%s became %v", text, u.Object)
		}
		entries, _, _ := unstructured.NestedFieldNoCopy(u.Object, "metadata", "managedFields")
		if tree, ok := entries.([]any)[0].(map[string]any)["fieldsV1"].(map[string]any); ok {
			at[reflect.ValueOf(tree).Pointer()] = append(at[reflect.ValueOf(tree).Pointer()], i)
		}
	}
	shared := 0
	for _, which := range at {
		if len(which) > 1 {
			shared++
			if !reflect.DeepEqual(which, []int{0, 1}) {
				t.Errorf("these share a map: %v", which)
			}
		}
	}
	if shared != 1 {
		t.Errorf("%d maps are shared", shared)
	}
	s.managedFields(&unstructured.Unstructured{Object: map[string]any{"metadata": "x"}})
}

// Entries that differ in anything stay apart; equal ones are one map.
func TestSharingOfEntries(t *testing.T) {
	texts := []string{
		`{"manager": "a", "time": "1", "fieldsV1": {"f:data": {}}}`,
		`{"manager": "a", "time": "2", "fieldsV1": {"f:data": {}}}`,
		`{"manager": "b", "time": "1", "fieldsV1": {"f:data": {}}}`,
		`{"manager": "a", "time": "1", "fieldsV1": {"f:spec": {}}}`,
		`{"manager": "a", "time": "1", "subresource": "status", "fieldsV1": {"f:data": {}}}`,
		`{"manager": "a", "time": "1", "other": "x", "fieldsV1": {"f:data": {}}}`,
		`{"manager": "", "fieldsV1": {"f:data": {}}}`,
		`{"time": "", "fieldsV1": {"f:data": {}}}`,
	}
	s, at := newSharing(), map[uintptr]int{}
	for i, text := range append(texts, texts...) {
		var entry, want any
		if err := json.Unmarshal([]byte(text), &entry); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(text), &want); err != nil {
			t.Fatal(err)
		}
		entries := []any{entry}
		s.managedFields(&unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"managedFields": entries}}})
		if !reflect.DeepEqual(entries[0], want) {
			t.Errorf("%d: %s became %v", i, text, entries[0])
		}
		at[reflect.ValueOf(entries[0]).Pointer()]++
	}
	if len(at) != len(texts)+1 { // with one that has a field nobody knows twice
		t.Errorf("%d maps for %d entries", len(at), len(texts))
	}
}
