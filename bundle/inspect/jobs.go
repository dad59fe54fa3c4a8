package inspect

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/ready"
	"brine/inventory/store"
)

// The namespaces in which the memory of completed Jobs holds.

// ReadNamespacesOfJobs reads the namespaces in which the memory of a completed Job holds, where
// nothing else does. Of one that cannot be read nothing is known.
func ReadNamespacesOfJobs(ctx context.Context, c *cluster.Client, b *bundle.Bundle, inv *store.Inventory) map[string]types.UID {
	found := map[string]types.UID{}
	own := bundle.IDs(b.Objects)
	for _, o := range b.Objects {
		id := bundle.ID{GroupKind: bundle.NamespaceKind, Name: o.ID.Namespace}
		_, member := inv.Members[id]
		if _, read := found[id.Name]; read || member || own.Has(id) || o.ID.GroupKind != bundle.JobKind || !ready.Expires(o.Content) {
			continue
		}
		found[id.Name] = ""
		if live, err := c.Get(ctx, cluster.Namespaces, id); err == nil && live != nil {
			found[id.Name] = live.GetUID()
		}
	}
	return found
}

// stillCompleted says whether the namespace in which a Job completed is as it was, as package plan does for a run.
func stillCompleted(inv *store.Inventory, view *cluster.Snapshot, id bundle.ID, uidOf func(namespace string) string) bool {
	namespace := bundle.ID{GroupKind: bundle.NamespaceKind, Name: id.Namespace}
	live, unknown := view.Live[namespace], view.Unknown[namespace]
	if _, member := inv.Members[namespace]; member {
		return unknown != nil || live != nil && inv.IsSame(namespace, live)
	}
	return inv.Fingerprints[id].IsCompletedIn(uidOf(id.Namespace))
}

// uidsOf finds the UIDs of namespaces, "" where one cannot be read, and asks once for each.
func uidsOf(ctx context.Context, c *cluster.Client) func(namespace string) string {
	known := map[string]string{}
	return func(namespace string) string {
		if _, asked := known[namespace]; !asked {
			live, err := c.Get(ctx, cluster.Namespaces, bundle.ID{GroupKind: bundle.NamespaceKind, Name: namespace})
			switch {
			case live != nil:
				known[namespace] = string(live.GetUID())
			case err == nil:
				known[namespace] = "gone"
			default:
				known[namespace] = ""
			}
		}
		return known[namespace]
	}
}
