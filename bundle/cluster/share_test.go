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
