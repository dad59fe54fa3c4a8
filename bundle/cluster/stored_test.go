package cluster

import (
	"encoding/json"
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// What is owned in another version keeps its owner where the object has the field, and
// an entry without fields breaks nothing.
func TestMoveOwnership(t *testing.T) {
	u := &unstructured.Unstructured{}
	text := `{"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": "a", "managedFields": [
		{"manager": "old", "operation": "Apply", "apiVersion": "example.com/v1alpha1", "fieldsType": "FieldsV1",
			"fieldsV1": {"f:metadata": {"f:name": {}}, "f:spec": {".": {}, "f:size": {}, "f:kept": {}, "f:list": {"k:{\"name\":\"x\"}": {}}}}},
		{"manager": "empty", "operation": "Update", "apiVersion": "example.com/v1alpha1", "fieldsType": "FieldsV1"},
		{"manager": "other", "operation": "Update", "apiVersion": "example.com/v2", "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:size": {}}}}]},
		"spec": {"length": 1, "kept": true, "list": []}}`
	if err := json.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	moveOwnership(u, Resource{GVK: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gadget"}}, []string{"v1alpha1"})
	want := []struct{ version, fields string }{
		{"example.com/v1", `{"f:metadata":{"f:name":{}},"f:spec":{".":{},"f:kept":{},"f:list":{"k:{\"name\":\"x\"}":{}}}}`},
		{"example.com/v1", ""},
		{"example.com/v2", `{"f:spec":{"f:size":{}}}`},
	}
	for i, entry := range u.GetManagedFields() {
		if got := raw(entry.FieldsV1); entry.APIVersion != want[i].version || got != want[i].fields {
			t.Errorf("%s owns %s in %s, want %s in %s", entry.Manager, got, entry.APIVersion, want[i].fields, want[i].version)
		}
	}
}

func raw(fields *metav1.FieldsV1) string {
	if fields == nil {
		return ""
	}
	return string(fields.GetRawBytes())
}

func TestUnservedOwnership(t *testing.T) {
	r := Resource{GVK: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gadget"}}
	for text, want := range map[string]string{
		"request to convert CR to an invalid group/version: example.com/v1alpha1":              "v1alpha1",
		"update: request to convert CR to an invalid group/version: example.com/v1beta2; more": "v1beta2",
		"request to convert CR to an invalid group/version: example.com/v1":                    "", // a server that is behind
		"request to convert CR to an invalid group/version: other.com/v1alpha1":                "",
		"request to convert CR to an invalid group/version: example.com/":                      "",
		"something else": "",
	} {
		if got := UnservedOwnership(errors.New(text), r); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	if got := UnservedOwnership(nil, r); got != "" {
		t.Errorf("no error: %q", got)
	}
}
