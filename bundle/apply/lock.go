package apply

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/inventory"
)

// lockUp takes the lock, unless this run has it. An inventory that cannot be
// read, and a bundle that is wrong, are found before: nothing is written for
// them, not even the lock. It returns true where there is nothing to be done.
func (r *run) lockUp(ctx context.Context) (bool, error) {
	if r.lock != nil {
		return false, nil
	}
	if err := r.load(ctx); err != nil {
		return false, err
	}
	if r.nothingToDestroy() {
		return true, nil
	}
	if err := r.order(); err != nil {
		return false, err
	}
	lock, held, err := r.acquire(ctx)
	if err != nil {
		return false, err
	}
	r.lock, r.held = lock, held
	return false, nil
}

// acquire takes the lock. Where its namespace is not there yet, that is made
// first: from the bundle, if the bundle has it.
func (r *run) acquire(ctx context.Context) (*inventory.Lock, context.Context, error) {
	lock, held, err := inventory.Acquire(ctx, r.client, r.Inventory.Namespace, r.Inventory.Name, r.LockTimeout)
	if !apierrors.IsNotFound(err) || r.Plan.Destroy {
		return lock, held, err
	}
	namespace := &unstructured.Unstructured{Object: map[string]any{}}
	namespace.SetAPIVersion("v1")
	namespace.SetKind("Namespace")
	namespace.SetName(r.Inventory.Namespace)
	for _, o := range r.bundle.Objects {
		if o.ID.GroupKind == namespaces.GVK.GroupKind() && o.ID.Name == r.Inventory.Namespace {
			namespace = o.Content.DeepCopy()
			// There is no inventory where there is no namespace.
			inventory.Empty(r.Inventory.Namespace, r.Inventory.Name, r.Inventory.ID).Brand(namespace)
		}
	}
	body, err := namespace.MarshalJSON()
	if err != nil {
		return nil, nil, fmt.Errorf("encode namespace %s: %w", r.Inventory.Namespace, err)
	}
	id := bundle.ID{GroupKind: namespaces.GVK.GroupKind(), Name: r.Inventory.Namespace}
	r.made = id
	if _, _, err := r.client.Apply(ctx, namespaces, id, body, cluster.Write{}); err != nil {
		return nil, nil, fmt.Errorf("create the inventory's namespace %s: %w", r.Inventory.Namespace, err)
	}
	return inventory.Acquire(ctx, r.client, r.Inventory.Namespace, r.Inventory.Name, r.LockTimeout)
}

// namespaces is known without discovery.
var namespaces = cluster.Resource{
	GVR: schema.GroupVersionResource{Version: "v1", Resource: "namespaces"},
	GVK: schema.GroupVersionKind{Version: "v1", Kind: "Namespace"},
}
