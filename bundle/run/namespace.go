package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/plan"
	"brine/bundle/report"
	"brine/bundle/write"
	"brine/inventory"
	"brine/inventory/store"
)

// errNothingToDestroy: there is neither an inventory nor a part of one.
var errNothingToDestroy = errors.New("nothing to destroy")

// hasAnything is errNothingToDestroy unless there is an inventory, or a part of one, as a run
// that was killed or another tool leaves it: a namespace, too, that was made for it. It is
// another error where the inventory object is lost, and members are not.
func hasAnything(ctx context.Context, c *cluster.Client, inv *store.Inventory) error {
	if remains, err := inv.Remains(ctx); remains || err != nil {
		return err
	}
	switch live, err := c.Get(ctx, cluster.Namespaces, bundle.ID{GroupKind: bundle.NamespaceKind, Name: inv.Namespace}); {
	case err != nil && !apierrors.IsForbidden(err):
		return fmt.Errorf("read Namespace %s: %w", inv.Namespace, err)
	case live != nil && live.GetAnnotations()[inventory.MadeAnnotation] == inv.Name:
		return nil
	}
	return fmt.Errorf("there is no inventory %s/%s: %w", inv.Namespace, inv.Name, errNothingToDestroy)
}

// removeNamespace deletes the namespace that a run made for the inventory, once the
// inventory is destroyed, if nothing is left in it but what Kubernetes makes there. A
// preview says whether it would. deleted are the members that go before.
func removeNamespace(ctx context.Context, s *session, o *Options, inv *store.Inventory, deleted *cluster.Deleted) {
	id := inventoryNamespace(o)
	live, err := s.client.Get(ctx, cluster.Namespaces, id)
	if err != nil && !apierrors.IsForbidden(err) {
		s.record.Warn(fmt.Sprintf("namespace %s stays: it is unknown whether brine made it for the inventory: %v", id.Name, err))
	}
	if err != nil || live == nil || live.GetDeletionTimestamp() != nil || live.GetAnnotations()[inventory.MadeAnnotation] == "" {
		return // none that is known to be brine's
	}
	if owner := live.GetAnnotations()[inventory.OwningInventory]; owner != "" && owner != inv.ID {
		return // another inventory's member
	}
	if err = checkEmpty(ctx, s.client, o, inv, live, deleted); err == nil && bundle.KeptBy(live) != "" {
		err = fmt.Errorf("%s keeps it", bundle.KeptBy(live))
	}
	if err == nil {
		if s.held {
			s.lock.Leave()
		}
		_, err = s.client.Delete(ctx, cluster.Namespaces, live, cluster.Deletion{DryRun: o.DryRun == report.Server, Confirm: func(ctx context.Context) error {
			return checkEmpty(ctx, s.client, o, inv, live, deleted)
		}})
	}
	if err != nil {
		s.record.Warn(fmt.Sprintf("namespace %s, which brine made for the inventory, stays: %v. If it is not needed: %s", id.Name, err, s.client.Commands().Delete(id.GroupKind, "", id.Name)))
		return
	}
	result := &report.ObjectResult{Version: "v1", Kind: id.GroupKind.Kind, Name: id.Name, Action: plan.Pruned, Reason: "brine made it for the inventory, and nothing else is in it", Needs: []report.Need{}}
	s.record.Result.Objects = append(s.record.Result.Objects, result)
	s.record.Emit(report.Acted{Object: result})
	for begin := time.Now(); o.DryRun == report.None && time.Since(begin) < namespaceTime; {
		if now, err := s.client.Get(ctx, cluster.Namespaces, id); err != nil || now == nil || now.GetUID() != live.GetUID() || !cluster.Sleep(ctx, 200*time.Millisecond) {
			return
		}
	}
	if o.DryRun == report.None {
		s.record.Warn(fmt.Sprintf("namespace %s, which brine made for the inventory, is still terminating after %s", id.Name, namespaceTime))
	}
}

// namespaceTime is how long a deleted namespace is waited for: the next apply could not use it.
const namespaceTime = 30 * time.Second

// checkEmpty is nil where complete LISTs show that a namespace holds nothing that would be lost.
func checkEmpty(ctx context.Context, c *cluster.Client, o *Options, inv *store.Inventory, live *unstructured.Unstructured, deleted *cluster.Deleted) error {
	if o.DryRun == report.None { // kinds may have come since the run began
		if err := c.Discover(ctx); err != nil {
			return err
		}
	}
	q := write.Search(&inv.Inventory, o.Cascade, []*unstructured.Unstructured{live}, deleted)
	q.Strict = true
	found, err := c.Contents(ctx, q)
	if err != nil {
		return err
	}
	lock := bundle.Name(bundle.ID{GroupKind: bundle.LeaseKind, Namespace: live.GetName(), Name: inventory.LockName(o.Inventory.Name)})
	holds := found[inventoryNamespace(o)]
	holds.Unmanaged = slices.DeleteFunc(holds.Unmanaged, func(name string) bool { return name == lock })
	switch {
	case len(holds.Unmanaged) > 0:
		return fmt.Errorf("it contains %s", bundle.Some(holds.Unmanaged, 5))
	case len(holds.Unknown) > 0:
		return fmt.Errorf("cannot read %s in it", bundle.Some(holds.Unknown, 3))
	}
	return nil
}
