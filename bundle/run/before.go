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

// What was before the run: the objects that it adopts or takes over.

// keepBefore is what the run adopts or takes over, as it is, for its revision. Nothing
// goes back past the first one.
func keepBefore(o *Options, inv *store.Inventory, found map[bundle.ID]*unstructured.Unstructured) map[bundle.ID]*unstructured.Unstructured {
	before := map[bundle.ID]*unstructured.Unstructured{}
	if inv.Last().Number == 0 || o.HistoryLimit <= 0 {
		return before
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
		before[id] = was
	}
	return before
}

// recallBefore reads what the members were before brine, that a rollback is to release.
func recallBefore(ctx context.Context, o *Options, now situation) (map[bundle.ID]*plan.Was, error) {
	if o.Mode != Rollback {
		return o.Planning.Before, nil
	}
	inBundle := bundle.IDs(now.bundle.Objects)
	wanted := map[int][]bundle.ID{}
	for id, was := range now.inventory.Origins {
		if (was.How == inventory.Adopted || was.How == inventory.TakenOver) && was.Run > 0 && !inBundle.Has(id) && o.Planning.Before[id] == nil {
			wanted[was.Run] = append(wanted[was.Run], id)
		}
	}
	before := map[bundle.ID]*plan.Was{}
	maps.Copy(before, o.Planning.Before)
	missing := func(id bundle.ID) bool { return before[id] == nil }
	for run, ids := range wanted {
		for number := run; number <= run+1 && slices.ContainsFunc(ids, missing); number++ { // a run of the last bundle with another end saves the next one
			content, err := now.inventory.LoadRevision(ctx, number)
			switch {
			case errors.Is(err, store.ErrNoRevision), errors.Is(err, store.ErrDamagedRevision):
				continue // what they were is not kept
			case err != nil:
				return nil, err
			}
			for _, was := range content.Before {
				if id := bundle.IDOf(was); slices.Contains(ids, id) {
					before[id] = &plan.Was{Unstructured: was, Kept: true}
				}
			}
		}
	}
	return before, nil
}

// keptBefore is what the revision keeps of it. What was found last counts.
func keptBefore(planned, found map[bundle.ID]*unstructured.Unstructured) []*unstructured.Unstructured {
	all := map[bundle.ID]*unstructured.Unstructured{}
	maps.Copy(all, planned)
	maps.Copy(all, found)
	return slices.SortedFunc(maps.Values(all), func(a, b *unstructured.Unstructured) int {
		return cmp.Or(cmp.Compare(a.GetKind(), b.GetKind()), cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()), cmp.Compare(a.GetAPIVersion(), b.GetAPIVersion()))
	})
}
