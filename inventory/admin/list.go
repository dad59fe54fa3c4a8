// Package admin carries out the commands about inventories themselves: it lists
// them, finds orphans, repairs them, and moves members from one to another. No
// command of this package deletes a member.
package admin

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/report"
	"brine/inventory"
	"brine/inventory/store"
)

// List is all inventories of a namespace or of the cluster: the document of -o
// json, in apiVersion brine.dev/v1. Fields are added to it, never renamed.
type List struct {
	APIVersion  string   `json:"apiVersion"`
	Kind        string   `json:"kind"`
	Inventories []Listed `json:"inventories"`
	ExitCode    int      `json:"exitCode"`
}

// Listed is one inventory.
type Listed struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	ID        string `json:"id"`
	Members   int    `json:"members"`
	// LastRun is when the last run that writes began.
	LastRun *time.Time `json:"lastRun,omitempty"`
	// Revision is the last one; there is none without a history.
	Revision *inventory.Revision `json:"revision,omitempty"`
	// Version is that of brine that wrote the inventory last; "" where another tool
	// did.
	Version string `json:"version"`
	Lock    *Lock  `json:"lock,omitempty"`
	// Damage is why members may be missing.
	Damage []string `json:"damage"`
	// Unknown is what could not be read.
	Unknown []string `json:"unknown"`
}

// Lock is the run that holds the lock of an inventory.
type Lock struct {
	Holder string `json:"holder"`
	// Ended: the run was killed. The next one takes the lock at once.
	Ended bool `json:"ended"`
}

const readers = 8 // parallel reads

// ListInventories lists the inventories of a namespace, or with "" of the cluster.
// Its exit code is 1 if one of them is damaged, or its lock cannot be read.
func ListInventories(ctx context.Context, c *cluster.Client, namespace, version string) (*List, error) {
	all, err := openAll(ctx, c, namespace, version)
	if err != nil {
		return nil, err
	}
	l := &List{APIVersion: "brine.dev/v1", Kind: "InventoryList", Inventories: make([]Listed, len(all))}
	group, reading := errgroup.WithContext(ctx)
	group.SetLimit(readers)
	for i, inv := range all {
		group.Go(func() error {
			l.Inventories[i] = listed(reading, c, inv)
			return context.Cause(reading)
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	for i := range l.Inventories {
		if len(l.Inventories[i].Damage)+len(l.Inventories[i].Unknown) > 0 {
			l.ExitCode = report.ExitFailed
		}
	}
	return l, nil
}

func openAll(ctx context.Context, c *cluster.Client, namespace, version string) ([]*store.Inventory, error) {
	all, err := store.OpenAll(ctx, c, namespace, version)
	if namespace == "" && apierrors.IsForbidden(err) {
		err = fmt.Errorf("%w; give a namespace to list only the inventories in it", err)
	}
	return all, err
}

func listed(ctx context.Context, c *cluster.Client, inv *store.Inventory) Listed {
	l := Listed{
		Namespace: inv.Namespace, Name: inv.Name, ID: inv.ID, Members: len(inv.Members),
		Damage: append([]string{}, inv.Damage()...), Unknown: []string{},
	}
	if own, ok := strings.CutPrefix(inv.Tool(), "brine/"); ok {
		l.Version = own
	}
	if last := inv.Last(); last.Number > 0 {
		l.Revision = &last
	}
	lock, err := store.ReadLock(ctx, c, inv.Namespace, inv.Name)
	if err != nil {
		l.Unknown = append(l.Unknown, err.Error())
	}
	if !lock.LastRun.IsZero() {
		l.LastRun = &lock.LastRun
	}
	if lock.Holder != "" {
		l.Lock = &Lock{Holder: lock.Holder, Ended: lock.Ended}
	}
	return l
}

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
	all, failed := c.Listable()
	for gv, err := range failed {
		s.skip(gv.String(), err)
	}
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
