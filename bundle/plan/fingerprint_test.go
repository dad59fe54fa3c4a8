package plan

import (
	"encoding/json"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/bundle/fields"
)

// liveDeployment is as an API server gives it: brine applied it, a controller and a person
// wrote to it, too.
func liveDeployment(t testing.TB, name string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal(fmt.Appendf(nil, `{
"apiVersion": "apps/v1", "kind": "Deployment",
"metadata": {"name": %[1]q, "namespace": "shop", "uid": "u-%[1]s", "labels": {"app": "web", "tier": "front"},
 "annotations": {"config.k8s.io/owning-inventory": "shop-1", "deployment.kubernetes.io/revision": "1"},
 "finalizers": ["a.example/x", "b.example/y"],
 "managedFields": [
 {"manager": "brine", "operation": "Apply", "apiVersion": "apps/v1", "time": "2026-01-02T03:04:05Z", "fieldsType": "FieldsV1", "fieldsV1": {
  "f:metadata": {"f:annotations": {"f:config.k8s.io/owning-inventory": {}}, "f:labels": {"f:app": {}, "f:tier": {}}, "f:finalizers": {"v:\"a.example/x\"": {}, "v:\"gone\"": {}}},
  "f:spec": {"f:replicas": {}, "f:selector": {}, "f:missing": {"f:x": {}}, "f:template": {"f:metadata": {"f:labels": {"f:app": {}}}, "f:spec": {
   "f:tolerations": {},
   "f:containers": {
    "k:{\"name\":\"app\"}": {".": {}, "f:name": {}, "f:image": {}, "f:env": {"k:{\"name\":\"A\"}": {".": {}, "f:name": {}, "f:value": {}}},
     "f:ports": {"k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}, "f:protocol": {}}}, "f:resources": {"f:limits": {"f:cpu": {}}}},
    "k:{\"name\":\"gone\"}": {".": {}, "f:name": {}}}}}}}},
 {"manager": "kubectl", "operation": "Update", "apiVersion": "apps/v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:replicas": {}, "f:paused": {}}}},
 {"manager": "kube-controller-manager", "operation": "Update", "subresource": "status", "apiVersion": "apps/v1", "fieldsType": "FieldsV1",
  "fieldsV1": {"f:metadata": {"f:annotations": {".": {}, "f:deployment.kubernetes.io/revision": {}}}, "f:status": {"f:conditions": {".": {}, "k:{\"type\":\"Available\"}": {".": {}, "f:type": {}}}}}}]},
"spec": {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": {"metadata": {"labels": {"app": "web"}}, "spec": {
 "tolerations": [{"operator": "Exists"}],
 "containers": [{"name": "side", "image": "y"}, {"name": "app", "image": "x:1 <&>", "env": [{"name": "A", "value": "1"}], "ports": [{"containerPort": 80, "protocol": "TCP"}], "resources": {"limits": {"cpu": "1"}}}]}}},
"status": {"conditions": [{"type": "Available", "status": "True"}]}}`, name), &u.Object); err != nil {
		t.Fatal(err)
	}
	return u
}

// The hashes are stored in inventories: another one for the same object costs a request for
// each object once.
func TestFingerprintsAreThoseOfEarlierVersions(t *testing.T) {
	ignored, err := fields.List("/spec/replicas,/spec/template/spec/containers/1/env")
	if err != nil {
		t.Fatal(err)
	}
	wanted := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "side"}, map[string]any{"name": "app"}}}}}}}
	for name, c := range map[string]struct {
		step Step
		want string
	}{
		"all fields":             {Step{}, "5PGmTORmXg6rWoAVOAZT7Q"},
		"without ignored fields": {Step{Ignored: ignored, Object: &bundle.Object{Content: wanted}}, "sIHeeXUlxO2bUBTpoK/Dyw"},
	} {
		got, ok := c.step.liveHash(liveDeployment(t, "web"))
		if !ok || got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func BenchmarkLiveHash(b *testing.B) {
	live, step := liveDeployment(b, "web"), Step{}
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := step.liveHash(live); !ok {
			b.Fatal("no hash")
		}
	}
}
