package diff

import (
	"encoding/json"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestWritten(t *testing.T) {
	live := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(`{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": {"name": "web", "annotations": {"example.com/a.b": "x"}, "managedFields": [
			{"manager": "brine", "operation": "Apply", "apiVersion": "apps/v1", "time": "2026-11-22T09:00:00Z", "fieldsType": "FieldsV1", "fieldsV1":
				{"f:spec": {"f:paused": {}, "f:replicas": {}, "f:template": {"f:list": {"k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:name": {}}}}}}},
			{"manager": "old", "operation": "Update", "apiVersion": "apps/v1", "time": "2026-11-22T01:00:00Z", "fieldsType": "FieldsV1", "fieldsV1":
				{"f:spec": {"f:replicas": {}}, "f:metadata": {"f:annotations": {"f:example.com/a.b": {}}}}},
			{"manager": "kubectl", "operation": "Update", "subresource": "scale", "apiVersion": "apps/v1", "time": "2026-11-22T02:00:00Z", "fieldsType": "FieldsV1", "fieldsV1":
				{"f:spec": {"f:replicas": {}, "f:template": {"f:list": {"k:{\"port\":80,\"protocol\":\"TCP\"}": {"f:nodePort": {}}}, "f:whole": {}}}}}]},
		"spec": {"paused": true, "replicas": 3, "template": {"whole": {"a": [1]}, "list": [{"port": 80, "protocol": "TCP", "name": "http", "nodePort": 1}]}}
	}`), &live.Object); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string][2]string{
		"spec.paused":   {"brine", "2026-11-22T09:00:00Z"},
		"spec.replicas": {"kubectl (subresource scale)", "2026-11-22T02:00:00Z"},
		`metadata.annotations["example.com/a.b"]`:  {"old", "2026-11-22T01:00:00Z"},
		"spec.template.list[name=http].nodePort":   {"kubectl (subresource scale)", "2026-11-22T02:00:00Z"},
		"spec.template.list[name=http]":            {"kubectl (subresource scale)", "2026-11-22T02:00:00Z"},
		"spec.template.list[0].name":               {"brine", "2026-11-22T09:00:00Z"},
		"spec.template.whole.a[0]":                 {"kubectl (subresource scale)", "2026-11-22T02:00:00Z"},
		"spec.template.list[name=gone]":            {},
		"spec.template.list[port=80,protocol=TCP]": {"kubectl (subresource scale)", "2026-11-22T02:00:00Z"},
		"spec.absent": {},
		`metadata.annotations["not there, [a].b\""]`: {},
	} {
		changes := []Change{{Path: path}}
		Written(live, changes)
		if got := [2]string{changes[0].Manager, changes[0].Time}; got != want {
			t.Errorf("%s was written by %q, want %q", path, got, want)
		}
	}
	changes := []Change{{Path: "spec.paused"}, {Path: "spec.replicas"}, {Path: "spec.absent"}}
	const want = "spec.paused was written by brine at 2026-11-22T09:00:00Z; spec.replicas was written by kubectl (subresource scale) at 2026-11-22T02:00:00Z"
	if got := Written(live, changes); got != want {
		t.Errorf("it says %q", got)
	}
}
