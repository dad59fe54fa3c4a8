package run

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/cluster/answers"
	"brine/bundle/plan"
	"brine/bundle/remedy"
	"brine/bundle/report"
	"brine/bundle/write"
	"brine/inventory"
)

// makeNamespace makes the inventory's namespace.
func (r *run) makeNamespace(ctx context.Context) error {
	id := r.ownNamespace()
	namespace := bundle.V1(id, map[string]any{})
	namespace.SetAnnotations(map[string]string{inventory.MadeAnnotation: r.Inventory.Name}) // so that it goes with the inventory
	for _, o := range r.bundle.Objects {
		if o.ID == id {
			namespace = o.Content.DeepCopy()
			// There is no inventory where there is no namespace.
			inventory.Empty(r.Inventory.Namespace, r.Inventory.Name, r.Inventory.ID).SetOwner(namespace)
		}
	}
	body, err := namespace.MarshalJSON()
	if err != nil {
		return fmt.Errorf("encode namespace %s: %w", r.Inventory.Namespace, err)
	}
	made, _, err := r.client.Apply(ctx, cluster.Namespaces, id, body, cluster.Write{})
	switch {
	case answers.Overtaken(err): // it is there now, and its owner is read with the rest
	case err != nil:
		return fmt.Errorf("create the inventory's namespace %s: %w", r.Inventory.Namespace, err)
	default:
		r.namespace = made
	}
	return nil
}

// removeNamespace deletes the namespace that a run made for the inventory, once the
// inventory is destroyed, if nothing is left in it but what Kubernetes makes there. A
// preview says whether it would. deleted are the members that go before.
func (r *run) removeNamespace(ctx context.Context, deleted *cluster.Deleted) {
	id := r.ownNamespace()
	live, err := r.client.Get(ctx, cluster.Namespaces, id)
	if err != nil || live == nil || live.GetDeletionTimestamp() != nil || live.GetAnnotations()[inventory.MadeAnnotation] == "" {
		return // none that is known to be brine's
	}
	err = r.emptied(ctx, live, deleted)
	if err == nil {
		if r.lock != nil {
			r.lock.Stop() // it goes with the namespace
		}
		_, err = r.client.Delete(ctx, cluster.Namespaces, live, cluster.Deletion{DryRun: r.DryRun == report.Server})
	}
	if err != nil {
		r.record.Warn(fmt.Sprintf("namespace %s, which brine made for the inventory, stays: %v. If it is not needed: %s", id.Name, err, remedy.DeleteObject("namespace", "", id.Name)))
		return
	}
	o := &report.ObjectResult{Version: "v1", Kind: id.GroupKind.Kind, Name: id.Name, Action: plan.Pruned, Reason: "brine made it for the inventory, and nothing else is in it", Needs: []report.Need{}}
	r.record.Result.Objects = append(r.record.Result.Objects, o)
	r.record.Emit(report.Acted{Object: o})
	for begin := time.Now(); r.DryRun == report.None && time.Since(begin) < namespaceTime; {
		if live, err := r.client.Get(ctx, cluster.Namespaces, id); err != nil || live == nil || !cluster.Sleep(ctx, 200*time.Millisecond) {
			return
		}
	}
}

// namespaceTime is how long a deleted namespace is waited for: the next apply could not
// use it.
const namespaceTime = 30 * time.Second

// emptied is nil where complete LISTs show that a namespace holds nothing that would be lost.
func (r *run) emptied(ctx context.Context, live *unstructured.Unstructured, deleted *cluster.Deleted) error {
	if r.DryRun == report.None { // kinds may have come since the run began
		if err := r.client.Discover(ctx); err != nil {
			return err
		}
	}
	q := write.Search(&r.inv.Inventory, r.Cascade, []*unstructured.Unstructured{live}, deleted)
	q.Strict = true
	found, err := r.client.Contents(ctx, q)
	if err != nil {
		return err
	}
	lock := bundle.Name(bundle.ID{GroupKind: bundle.LeaseKind, Namespace: live.GetName(), Name: inventory.LockName(r.Inventory.Name)})
	holds := found[r.ownNamespace()]
	holds.Unmanaged = slices.DeleteFunc(holds.Unmanaged, func(name string) bool { return name == lock })
	switch {
	case len(holds.Unmanaged) > 0:
		return fmt.Errorf("it contains %s", bundle.Some(holds.Unmanaged, 5))
	case len(holds.Unknown) > 0:
		return fmt.Errorf("cannot read %s in it", bundle.Some(holds.Unknown, 3))
	}
	return nil
}
