package inspect

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/ready"
)

// ReadHints says which StorageClasses bind their claims only when a pod
// uses them. They are listed only where there are claims; who may not list them
// waits for the claims like for anything else.
func ReadHints(ctx context.Context, c *cluster.Client, ids []bundle.ID, objects []*bundle.Object) ready.Hints {
	if !slices.ContainsFunc(ids, func(id bundle.ID) bool { return id.GroupKind == bundle.PersistentVolumeClaimKind }) {
		return ready.Hints{}
	}
	waits := map[string]bool{}
	note := func(u *unstructured.Unstructured) {
		mode, _, _ := unstructured.NestedString(u.Object, "volumeBindingMode")
		waits[u.GetName()] = mode == "WaitForFirstConsumer"
	}
	if resource, err := c.Any(bundle.StorageClassKind); err == nil {
		classes, _ := c.List(ctx, resource, "", "", "")
		for i := range classes {
			note(&classes[i])
		}
	}
	for _, o := range objects {
		if o.ID.GroupKind == bundle.StorageClassKind {
			note(o.Content)
		}
	}
	return ready.Hints{WaitsForConsumer: func(class string) bool { return waits[class] }}
}

// Reader reads what a diagnosis asks for.
func Reader(c *cluster.Client) ready.Reader {
	return ready.Reader{
		Get: func(ctx context.Context, gvk schema.GroupVersionKind, namespace, name string) (*unstructured.Unstructured, error) {
			resource, err := c.Any(gvk.GroupKind())
			if err != nil {
				return nil, err
			}
			return c.Get(ctx, resource, bundle.ID{GroupKind: gvk.GroupKind(), Namespace: namespace, Name: name})
		},
		List: func(ctx context.Context, gvk schema.GroupVersionKind, namespace, labelSelector, fieldSelector string) ([]unstructured.Unstructured, error) {
			resource, err := c.Any(gvk.GroupKind())
			if err != nil {
				return nil, err
			}
			return c.List(ctx, resource, namespace, labelSelector, fieldSelector)
		},
		Logs: c.Logs, Commands: c.Commands(),
	}
}
