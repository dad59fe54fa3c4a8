package run

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/bundle/plan"
	"brine/bundle/redact"
	"brine/inventory"
	"brine/inventory/store"
)

// keepBefore notes what the run adopts or takes over, as it is, for its revision. Nothing
// goes back past the first one.
func (r *run) keepBefore(found map[bundle.ID]*unstructured.Unstructured) {
	if r.inv.Last().Number == 0 || r.HistoryLimit <= 0 {
		return
	}
	if r.before == nil {
		r.before = map[bundle.ID]*unstructured.Unstructured{}
	}
	for id, live := range found {
		if live == nil || redact.Holds(live) {
			continue
		}
		was := &unstructured.Unstructured{Object: maps.Clone(live.Object)}
		was.Object["metadata"] = map[string]any{}
		was.SetName(live.GetName())
		was.SetNamespace(live.GetNamespace())
		was.SetUID(live.GetUID())
		was.SetLabels(live.GetLabels())
		was.SetAnnotations(live.GetAnnotations())
		delete(was.Object, "status")
		r.before[id] = was
	}
}

// recallBefore reads what the members were before brine, that a rollback is to release.
func (r *run) recallBefore(ctx context.Context) error {
	if !r.Planning.Undo {
		return nil
	}
	inBundle := map[bundle.ID]bool{}
	for _, o := range r.bundle.Objects {
		inBundle[o.ID] = true
	}
	wanted := map[int][]bundle.ID{}
	for id, o := range r.inv.Origins {
		if (o.How == inventory.Adopted || o.How == inventory.TakenOver) && o.Run > 0 && !inBundle[id] && r.Planning.Before[id] == nil {
			wanted[o.Run] = append(wanted[o.Run], id)
		}
	}
	before := maps.Clone(r.Planning.Before)
	for number, ids := range wanted {
		content, err := r.inv.LoadRevision(ctx, number)
		switch {
		case errors.Is(err, store.ErrNoRevision), errors.Is(err, store.ErrDamagedRevision):
			continue // what they were is not kept
		case err != nil:
			return err
		}
		if before == nil {
			before = map[bundle.ID]*plan.Was{}
		}
		for _, was := range content.Before {
			id := bundle.ID{Namespace: was.GetNamespace(), Name: was.GetName(), GroupKind: was.GroupVersionKind().GroupKind()}
			if slices.Contains(ids, id) {
				before[id] = &plan.Was{Unstructured: was, Kept: true}
			}
		}
	}
	r.Planning.Before = before
	return nil
}

// keptBefore is what the revision keeps of it.
func (r *run) keptBefore() []*unstructured.Unstructured {
	return slices.SortedFunc(maps.Values(r.before), func(a, b *unstructured.Unstructured) int {
		return cmp.Or(cmp.Compare(a.GetKind(), b.GetKind()), cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()), cmp.Compare(a.GetAPIVersion(), b.GetAPIVersion()))
	})
}
