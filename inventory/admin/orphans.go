package admin

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/report"
	"brine/inventory"
	"brine/inventory/store"
)

// Orphans are the objects that carry the annotation of an inventory that does not
// list them: the document of -o json, in apiVersion brine.dev/v1. Fields are added
// to it, never renamed.
type Orphans struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Orphans    []Orphan `json:"orphans"`
	// Unknown are objects of damaged inventories: they may be members.
	Unknown []Orphan `json:"unknown"`
	// NotSearched are kinds that may have orphans that were not found.
	NotSearched []UnsearchedKind `json:"notSearched"`
	ExitCode    int              `json:"exitCode"`
}

// Orphan is an object, and the ID that its annotation holds.
type Orphan struct {
	Object
	Inventory string `json:"inventory"`
}

// FindOrphans lists the objects of all kinds, in one namespace or with "" in all,
// and compares their annotations with the inventories of the cluster. The exit code
// is 2 if there are orphans, and 1 if something is unknown.
func FindOrphans(ctx context.Context, c *cluster.Client, namespace, version string) (*Orphans, error) {
	if err := c.Discover(ctx); err != nil {
		return nil, err
	}
	s := &search{client: c, wanted: func(item metav1.PartialObjectMetadata) bool {
		// Controllers copy annotations to what they make.
		return item.Annotations[inventory.OwningInventory] != "" && metav1.GetControllerOf(&item) == nil
	}}
	all := s.everything(ctx)
	if namespace != "" {
		all = slices.DeleteFunc(all, func(r cluster.Resource) bool { return !r.Namespaced })
	}
	if err := s.run(ctx, all, namespace); err != nil {
		return nil, err
	}
	// The inventories are read after the objects: an inventory lists an object
	// before it is created. So only what was deleted or moved since has to be read
	// again.
	inventories, err := store.OpenAll(ctx, c, "", version)
	if err != nil {
		return nil, fmt.Errorf("read the inventories of all namespaces, any of which may list an object: %w", err)
	}
	o := &Orphans{APIVersion: "brine.dev/v1", Kind: "Orphans", Orphans: []Orphan{}, Unknown: []Orphan{}, NotSearched: append([]UnsearchedKind{}, s.notSearched...)}
	known := newMemberships(inventories)
	for id, item := range s.found {
		if known.holds(id, item.Annotations[inventory.OwningInventory]) {
			known.listed[item.UID] = true
		}
	}
	for _, id := range bundle.SortedIDs(s.found) {
		if item := s.found[id]; !known.listed[item.UID] {
			if err := o.judge(ctx, c, id, known); err != nil {
				return nil, err
			}
		}
	}
	switch {
	case len(o.Unknown)+len(o.NotSearched) > 0:
		o.ExitCode = report.ExitFailed
	case len(o.Orphans) > 0:
		o.ExitCode = report.ExitChanges
	}
	return o, nil
}

type memberships struct {
	byID   map[string][]*store.Inventory
	others map[bundle.ID]*store.Inventory // one that lists the object, whatever its annotation says
	listed map[types.UID]bool             // an object may be served under two API groups
}

func newMemberships(inventories []*store.Inventory) *memberships {
	m := &memberships{byID: map[string][]*store.Inventory{}, others: map[bundle.ID]*store.Inventory{}, listed: map[types.UID]bool{}}
	for _, inv := range inventories {
		m.byID[inv.ID] = append(m.byID[inv.ID], inv)
		for id := range inv.Members {
			m.others[id] = inv
		}
	}
	return m
}

func (m *memberships) holds(id bundle.ID, owner string) bool {
	return slices.ContainsFunc(m.byID[owner], func(inv *store.Inventory) bool {
		_, ok := inv.Members[id]
		return ok
	})
}

// judge reads a candidate again and reports it, unless it was deleted or moved since.
func (o *Orphans) judge(ctx context.Context, c *cluster.Client, id bundle.ID, known *memberships) error {
	r, err := c.Any(id.GroupKind)
	if err != nil {
		return err
	}
	live, err := c.Get(ctx, r, id)
	if err != nil {
		o.Unknown = append(o.Unknown, Orphan{Object: objectOf(id, "it cannot be read again: "+err.Error())})
		return context.Cause(ctx)
	}
	if live == nil || live.GetDeletionTimestamp() != nil {
		return nil
	}
	owner := live.GetAnnotations()[inventory.OwningInventory]
	if owner == "" || known.holds(id, owner) {
		return nil
	}
	orphan := Orphan{Object: objectOf(id, ""), Inventory: owner}
	other, listed := known.others[id]
	invs := known.byID[owner]
	switch at := slices.IndexFunc(invs, func(inv *store.Inventory) bool { return len(inv.Damage()) > 0 }); {
	case at >= 0:
		orphan.Reason = fmt.Sprintf("inventory %s/%s is damaged: %s finds its members", invs[at].Namespace, invs[at].Name, c.Commands().Repair(invs[at].Namespace, invs[at].Name))
		o.Unknown = append(o.Unknown, orphan)
		return nil
	case listed:
		orphan.Reason = fmt.Sprintf("inventory %s/%s lists it, but its annotation names another one", other.Namespace, other.Name)
	case len(invs) > 0:
		orphan.Reason = fmt.Sprintf("inventory %s/%s does not list it", invs[0].Namespace, invs[0].Name)
	default:
		orphan.Reason = "no inventory has this id"
	}
	o.Orphans = append(o.Orphans, orphan)
	return nil
}
