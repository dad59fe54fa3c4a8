package run

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/plan"
	"brine/bundle/ready"
)

// hints are what the readiness of the plan's objects depends on besides them.
func (r *run) hints(ctx context.Context, p *plan.Plan) ready.Hints {
	var ids []bundle.ID
	for _, s := range slices.Concat(p.Steps, p.Outside) {
		ids = append(ids, s.ID)
	}
	return storageHints(ctx, r.client, ids, r.bundle.Objects)
}

// storageHints says which StorageClasses bind their claims only when a pod
// uses them. They are listed only where there are claims; who may not list them
// waits for the claims like for anything else.
func storageHints(ctx context.Context, c *cluster.Client, ids []bundle.ID, objects []*bundle.Object) ready.Hints {
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
