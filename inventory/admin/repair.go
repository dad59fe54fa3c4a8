package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/report"
	"brine/inventory"
	"brine/inventory/lock"
	"brine/inventory/store"
)

// A damaged inventory finds its members again.

// RepairOptions are what a user says about a repair of an inventory.
type RepairOptions struct {
	Inventory   report.Inventory
	Version     string // brine's
	DryRun      bool
	AllKinds    bool // search also kinds that the inventory does not list
	LockTimeout time.Duration
	Report      func(message string) // of what is waited for
}

// Repair is what a repair of an inventory came to: the document of -o json, in
// apiVersion brine.dev/v1. Fields are added to it, never renamed.
type Repair struct {
	APIVersion string           `json:"apiVersion"`
	Kind       string           `json:"kind"`
	Inventory  report.Inventory `json:"inventory"`
	DryRun     bool             `json:"dryRun"`
	// Damage is what was missing of the inventory, Members what it still held.
	Damage  []string `json:"damage"`
	Members int      `json:"members"`
	// Added are the objects that are members again.
	Added []Object `json:"added"`
	// NotAdded carry the label of the inventory, and are not its members.
	NotAdded []Object `json:"notAdded"`
	// NotSearched are kinds that may hold members that were not found.
	NotSearched []UnsearchedKind `json:"notSearched"`
	ExitCode    int              `json:"exitCode"`
}

// RepairInventory finds the members of a damaged inventory by the label that they carry, and
// by what is left of the inventory, and adds them to it. An error ends it before the first write.
func RepairInventory(ctx context.Context, c *cluster.Client, o RepairOptions) (*Repair, error) {
	if err := c.Discover(ctx); err != nil {
		return nil, err
	}
	var own *lock.Lock
	if !o.DryRun {
		var err error
		if own, err = lock.Await(ctx, c, o.Inventory.Namespace, o.Inventory.Name, lock.Wait{Until: time.Now().Add(o.LockTimeout), Report: o.Report}); err != nil {
			return nil, err
		}
	}
	inv, err := store.Open(ctx, c, o.Inventory.Namespace, o.Inventory.Name, o.Inventory.ID, o.Version)
	if err != nil {
		return nil, err
	}
	if err := inv.Recover(ctx); err != nil {
		return nil, err
	}
	r := &Repair{
		APIVersion: "brine.dev/v1", Kind: "Repair", DryRun: o.DryRun, Inventory: o.Inventory, Members: len(inv.Members),
		Damage: append([]string{}, inv.Damage()...), Added: []Object{}, NotAdded: []Object{}, NotSearched: []UnsearchedKind{},
	}
	r.Inventory.ID = inv.ID
	if !inv.Exists() {
		r.Damage = append(r.Damage, "ConfigMap "+inv.Name+" is missing")
	}
	if err := r.find(ctx, c, inv, o.AllKinds); err != nil {
		return nil, err
	}
	if damage := inv.Superseded(); damage != "" {
		r.Damage = append(r.Damage, damage)
	}
	if !inv.Exists() && r.Members+len(r.Added) == 0 {
		if _, err := inv.Remains(ctx); err != nil {
			return nil, err
		}
		return nil, r.nothing(inv)
	}
	if len(r.NotSearched) > 0 {
		r.ExitCode = report.ExitFailed
	}
	if o.DryRun {
		return r, nil
	}
	return r, r.write(ctx, inv, own)
}

// nothing is the error of a search that found no inventory, and no member of one.
func (r *Repair) nothing(inv *store.Inventory) error {
	none := fmt.Sprintf("there is no inventory %s/%s, and no object carries its label (%s)", inv.Namespace, inv.Name, inv.Selector())
	if len(r.NotSearched) == 0 {
		return refused("%s", none)
	}
	kinds := bundle.Each(r.NotSearched, func(k UnsearchedKind) string { return k.Kind })
	return &report.Stop{Code: report.ExitFailed, Errors: []error{fmt.Errorf("%s, of the kinds that can be searched. Not searched: %s: %s", none, bundle.Some(kinds, 5), r.NotSearched[0].Reason)}}
}

// noNamespace tells of a lock that cannot be taken, as its namespace is not there, what to do.
func noNamespace(err error) error {
	if apierrors.IsNotFound(err) && !errors.Is(err, lock.ErrTaken) {
		return refused("%v: create the namespace first, and repeat the command; nothing was changed", err)
	}
	return err
}

// releaseTime bounds how long an interrupted command takes to release its locks.
const releaseTime = report.Grace * 9 / 10

// find lists the kinds of the members, or all that can be listed where the
// inventory does not say, and keeps what carries its ownership metadata. What may
// not be listed everywhere is listed in each namespace that the inventory lists. Where
// what is left of the inventory names a member that it does not list, there may be more like it.
func (r *Repair) find(ctx context.Context, c *cluster.Client, inv *store.Inventory, allKinds bool) error {
	live, unknown, err := inv.Outlived(ctx) // also what has lost its label
	if err != nil {
		return err
	}
	s := &search{client: c, selector: inv.Selector()}
	if namespaces, known := inv.RecordedNamespaces(); known {
		more := bundle.SetOf(bundle.SortedIDs(live), func(id bundle.ID) string { return id.Namespace })
		s.namespaces = sets.List(more.Insert(namespaces...).Delete(""))
	}
	if err := s.run(ctx, s.resourcesOf(ctx, inv, bundle.SortedIDs(live), allKinds), ""); err != nil {
		return err
	}
	known, err := inv.MemberNamespaces(ctx)
	if err != nil {
		return err
	}
	for id, u := range live {
		s.found[id] = metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Annotations: u.GetAnnotations(), OwnerReferences: u.GetOwnerReferences()}}
	}
	for _, id := range bundle.SortedIDs(unknown) {
		if kind := id.GroupKind.String(); !slices.ContainsFunc(s.notSearched, func(k UnsearchedKind) bool { return k.Kind == kind }) {
			s.skip(kind, unknown[id])
		}
	}
	for _, id := range bundle.SortedIDs(s.found) {
		r.judge(inv, known, id, s.found[id], live[id] != nil)
	}
	r.NotSearched = append(r.NotSearched, s.notSearched...)
	return nil
}

func (s *search) resourcesOf(ctx context.Context, inv *store.Inventory, named []bundle.ID, allKinds bool) []cluster.Resource {
	kinds, listed := inv.RecordedKinds()
	if !listed || allKinds {
		return s.everything(ctx)
	}
	for _, id := range named {
		if !slices.Contains(kinds, id.GroupKind) {
			kinds = append(kinds, id.GroupKind)
		}
	}
	var resources []cluster.Resource
	for _, gk := range kinds {
		r, served, err := s.client.AnyOrAbsent(ctx, gk)
		switch {
		case err != nil:
			s.skip(gk.String(), err)
		case served: // else there are none
			resources = append(resources, r)
		}
	}
	return resources
}

// judge adds an object to the inventory, unless it only looks like a member:
// controllers copy labels and annotations to what they make, and so does what restores a
// backup in another namespace. One that what is left of the inventory names is no copy.
func (r *Repair) judge(inv *store.Inventory, namespaces sets.Set[string], id bundle.ID, item metav1.PartialObjectMetadata, named bool) {
	if _, ok := inv.Members[id]; ok || inventory.Auxiliary(inv.Namespace, inv.Name, id) != "" {
		return
	}
	o, namespace := objectOf(id, ""), id.Namespace
	if id.GroupKind == bundle.NamespaceKind {
		namespace = id.Name
	}
	owner, controller := item.Annotations[inventory.OwningInventory], metav1.GetControllerOf(&item)
	switch {
	case owner == "":
		o.Reason = "it has no annotation " + inventory.OwningInventory
	case owner != inv.ID:
		o.Reason = fmt.Sprintf("it belongs to inventory %q", owner)
	case named: // a run refuses to forget it
		r.Added = append(r.Added, o)
		return
	case controller != nil:
		o.Reason = fmt.Sprintf("it is controlled by %s %s", controller.Kind, controller.Name)
	case len(namespaces) > 0 && !namespaces.Has(namespace):
		o.Reason = fmt.Sprintf("nothing says that the inventory has namespace %s, or members in it: it may be a copy of one", namespace)
	default:
		r.Added = append(r.Added, o)
		return
	}
	r.NotAdded = append(r.NotAdded, o)
}

// write takes the lock, which proves that no other run wrote the inventory since
// it was read, and writes it.
func (r *Repair) write(ctx context.Context, inv *store.Inventory, own *lock.Lock) error {
	held, err := own.Take(ctx)
	if err := noNamespace(err); err != nil {
		return err
	}
	err = inv.Repair(held, bundle.Each(r.Added, func(o Object) bundle.ID { return o.ID() }), len(r.NotSearched) == 0)
	if cause := context.Cause(held); err != nil && errors.Is(cause, lock.ErrLost) {
		err = cause
	}
	release, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTime)
	defer cancel()
	return errors.Join(err, own.Release(release, false))
}
