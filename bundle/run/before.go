package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/bundle/apply"
	"brine/bundle/plan"
	"brine/bundle/redact"
	"brine/bundle/remedy"
	"brine/bundle/report"
	"brine/bundle/takeover"
	"brine/bundle/takeover/helm"
	"brine/inventory"
	"brine/inventory/store"
)

// What was before the run: the objects that it adopts or takes over, Helm releases, what earlier
// revisions had.

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
	before := maps.Clone(o.Planning.Before)
	for number, ids := range wanted {
		content, err := now.inventory.LoadRevision(ctx, number)
		switch {
		case errors.Is(err, store.ErrNoRevision), errors.Is(err, store.ErrDamagedRevision):
			continue // what they were is not kept
		case err != nil:
			return nil, err
		}
		if before == nil {
			before = map[bundle.ID]*plan.Was{}
		}
		for _, was := range content.Before {
			if id := bundle.IDOf(was); slices.Contains(ids, id) {
				before[id] = &plan.Was{Unstructured: was, Kept: true}
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

// checkRemoved looks for SLS and files that the last run that applied everything had and
// this one has not, where it prunes. A rollback, a partial run, and a plan that was saved
// and approved do what they say.
func checkRemoved(ctx context.Context, s *session, o *Options, in intent) error {
	p := in.plan
	if o.Mode != Apply || in.chosen != nil || o.SavedPlan != nil {
		return nil
	}
	pruned := p.Removes()
	if len(pruned) == 0 {
		return nil
	}
	number, earlier, err := renderedLast(ctx, in.inventory)
	switch {
	case err != nil && in.bundle.Rendering == nil && !o.Planning.RefuseRemoved:
		s.record.Warn(fmt.Sprintf("whether the bundle lacks a file that the last run had is not known: %v", err))
		return nil
	case err != nil:
		return fmt.Errorf("find out which SLS and files are no longer in the bundle, before anything is pruned (%s prunes nothing): %w", remedy.NoPrune, err)
	}
	p.Removals = plan.Removals{
		Revision: number, Earlier: earlier, Now: in.bundle, Pruned: pruned, Removed: o.Planning.Removed, Refuse: o.Planning.RefuseRemoved,
		IsFile: func(path string) bool {
			_, err := os.Lstat(path)
			return !os.IsNotExist(err)
		},
	}.Find()
	for _, one := range p.Removals {
		if one.Refused {
			p.Refused = append(p.Refused, bundle.Problem{Message: one.String()})
		} else {
			p.Warnings = append(p.Warnings, one.String())
		}
	}
	return nil
}

// renderedLast are the objects of the last run that applied everything, and those that runs
// without pruning before it left.
func renderedLast(ctx context.Context, inv *store.Inventory) (number int, objects []*bundle.Object, err error) {
	history, err := inv.History(ctx)
	for _, one := range history {
		if !one.Applied() {
			continue
		}
		content, err := inv.LoadRevision(ctx, one.Number)
		if err != nil {
			return 0, nil, err
		}
		number, objects = max(number, one.Number), append(objects, content.Bundle.Objects...)
		if content.Options["no-prune"] != "true" {
			break
		}
	}
	return number, objects, err
}

func readReleases(ctx context.Context, s *session, o *Options, now situation) ([]helm.Release, error) {
	releases, wrong, err := helm.Read(ctx, s.client, o.Planning.TakeOverFrom, now.bundle, now.live.Live)
	if err != nil {
		return nil, err
	}
	for i := range releases {
		s.record.Warn(fmt.Sprintf("%s is taken over: when all of its objects are applied, Helm forgets it (label %s of what it stores)", releases[i], takeover.HelmOwner))
	}
	if len(releases) > 0 {
		wrong = append(wrong, releases[0].CheckOptions(len(o.Only) > 0, o.RollbackOnFailure)...)
	}
	if len(wrong) > 0 {
		return nil, &report.Stop{Code: report.ExitBadBundle, Errors: wrong}
	}
	return releases, nil
}

// forgetReleases makes Helm forget the releases, once all of their objects are applied.
func forgetReleases(ctx context.Context, s *session, o *Options, releases []helm.Release, steps []apply.Outcome) {
	for i := range releases {
		err := apply.AllApplied(steps)
		if err == nil {
			err = releases[i].Forget(ctx, s.client, o.Inventory.Namespace+"/"+o.Inventory.Name)
		}
		if err != nil {
			s.record.Warn(fmt.Sprintf("%s is not forgotten by Helm, and \"helm uninstall\" would still delete its objects: %v. The next run with %s tries again", releases[i], err, remedy.TakeOverFrom))
		}
	}
}
