package ready

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// What keeps a deleted object is shown with what the server says of it: of a
// Namespace in any condition that holds, of a CRD in Terminating.
func TestTerminating(t *testing.T) {
	condition := func(kind, status, reason, message string) any {
		return map[string]any{"type": kind, "status": status, "reason": reason, "message": message}
	}
	object := func(kind string, metadata, spec map[string]any, conditions ...any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"kind": kind, "metadata": metadata, "spec": spec, "status": map[string]any{"conditions": conditions},
		}}
	}
	cleanup := map[string]any{"finalizers": []any{"customresourcecleanup.apiextensions.k8s.io"}}
	for name, tc := range map[string]struct {
		live *unstructured.Unstructured
		want string
	}{
		"nothing": {
			object("Pod", map[string]any{}, nil, condition("Ready", "True", "PodReady", "it is ready")),
			"is being deleted",
		},
		"a namespace": {
			object("Namespace", map[string]any{}, map[string]any{"finalizers": []any{"kubernetes"}},
				condition("NamespaceContentRemaining", "True", "SomeResourcesRemain", "pods. has 1 resource instances"),
				condition("NamespaceDeletionDiscoveryFailure", "False", "ResourcesDiscovered", "all discovered")),
			"is being deleted; SomeResourcesRemain: pods. has 1 resource instances; held by finalizers: kubernetes",
		},
		"a CRD": {
			object("CustomResourceDefinition", cleanup, nil,
				condition("Established", "True", "InitialNamesAccepted", "the initial names have been accepted"),
				condition("Terminating", "True", "InstanceDeletionFailed", "could not list instances: storage is (re)initializing")),
			"is being deleted; InstanceDeletionFailed: could not list instances: storage is (re)initializing; held by finalizers: customresourcecleanup.apiextensions.k8s.io",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Terminating(tc.live); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}
