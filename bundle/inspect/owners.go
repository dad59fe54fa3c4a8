package inspect

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/plan"
)

// ReadOwners is what owns live objects, upwards; what is not among them is read. The garbage collector deletes an
// object with the owner of its owner, too. That only one with the UID of the reference does.
func ReadOwners(ctx context.Context, c *cluster.Client, live map[bundle.ID]*unstructured.Unstructured) plan.Owners {
	owners := plan.Owners{Of: map[types.UID][]types.UID{}, Unknown: map[types.UID]plan.Unreadable{}}
	seen := sets.New[types.UID]()
	next := slices.Collect(maps.Values(live))
	for _, u := range next {
		seen.Insert(u.GetUID())
		if refs := u.GetOwnerReferences(); len(refs) > 0 {
			owners.Of[u.GetUID()] = bundle.Each(refs, uidOf)
		}
	}
	var mu sync.Mutex
	for len(next) > 0 {
		refs := map[types.UID]bundle.ID{}
		for _, u := range next {
			for _, ref := range u.GetOwnerReferences() {
				id := bundle.ID{GroupKind: schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind(), Namespace: u.GetNamespace(), Name: ref.Name}
				if was, known := refs[ref.UID]; !seen.Has(ref.UID) && (!known || bundle.CompareIDs(id, was) < 0) { // the same in each run
					refs[ref.UID] = id
				}
			}
		}
		seen, next = seen.Union(sets.KeySet(refs)), nil
		_ = bundle.AtOnce(ctx, ownersAtOnce, slices.Sorted(maps.Keys(refs)), func(ctx context.Context, uid types.UID) error {
			id, owner, err := readOwner(ctx, c, refs[uid])
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil:
				owners.Unknown[uid] = plan.Unreadable{ID: id, Err: err}
			case owner != nil && owner.GetUID() == uid:
				owners.Of[uid] = bundle.Each(owner.GetOwnerReferences(), uidOf)
				next = append(next, owner)
			}
			return nil
		})
	}
	return owners
}

const ownersAtOnce = 16 // requests

func uidOf(ref metav1.OwnerReference) types.UID { return ref.UID }

// readOwner reads an owner of an object in a namespace: it is there, too, or in none. Of a kind that is not served,
// though its group is, the garbage collector knows nothing either: no right to prove that is needed.
func readOwner(ctx context.Context, c *cluster.Client, id bundle.ID) (bundle.ID, *unstructured.Unstructured, error) {
	resource, served, err := c.AnyOrAbsent(ctx, id.GroupKind)
	if err != nil || !served {
		return id, nil, c.Failed(id.GroupKind.Group)
	}
	if !resource.Namespaced {
		id.Namespace = ""
	}
	owner, err := c.Get(cluster.Briefly(ctx), resource, id)
	return id, owner, err
}

// OwnersReader reads what owns the objects of a plan by now, where one of their namespace is deleted, and
// tells its guard: a controller may have adopted one since the plan was made.
func OwnersReader(c *cluster.Client, p *plan.Plan, selector string) func(context.Context) error {
	namespaces, owned := sets.New[string](), map[bundle.ID]*plan.Step{}
	for _, s := range p.Steps {
		if s.Action == plan.Pruned && !bundle.HoldsObjects(s.ID.GroupKind) { // what holds objects owns none
			namespaces.Insert(s.ID.Namespace)
		}
	}
	for _, s := range p.Steps {
		if !s.Shared && (s.Unread == nil || !s.Deletes()) && s.ID.Name != "" && namespaces.HasAny(s.ID.Namespace, "") {
			owned[s.ID] = s
		}
	}
	if p.Guard.Options.Orphans || len(owned) < 2 {
		return nil
	}
	return func(ctx context.Context) error {
		view, err := c.Snapshot(ctx, bundle.SortedIDs(owned), nil, nil, selector)
		if err != nil {
			return fmt.Errorf("read what owns objects of the plan by now: %w", err)
		}
		p.Guard.Know(ReadOwners(ctx, c, view.Live), view.Unknown)
		for id, live := range view.Live {
			if live.GetDeletionTimestamp() == nil {
				p.Guard.See(owned[id], live)
			}
		}
		return nil
	}
}
