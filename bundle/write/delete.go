package write

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/cluster/answers"
	"brine/bundle/plan"
	"brine/inventory"
)

// Deletions and detachments.

// guardTries is how often a deletion is decided again because the object changed
// between the decision and the act. Controllers write status all the time.
const guardTries = 20

// errDecided: what was decided does not hold any more.
var errDecided = errors.New("it has to be decided again")

// errChanging ends a deletion whose object never holds still.
var errChanging = errors.New("other clients changed it again and again")

// Delete deletes a member. The guard that decided about the plan decides again
// about the very version of the object that the DELETE asks for, and about what
// a Namespace or CRD holds by then: a plan may be minutes old. A dry run follows
// the plan at once, and does not ask the guard again.
func (w *Writer) Delete(ctx context.Context, s *plan.Step) Outcome {
	resource, there, err := w.Client.AnyOrAbsent(ctx, s.ID.GroupKind)
	switch {
	case err != nil:
		return failed(fmt.Errorf("delete: %w", err))
	case !there:
		return Outcome{Action: plan.Pruned, Gone: true} // its CRD was deleted, and all objects with it
	}
	o := w.delete(ctx, s, resource)
	o.Resource = resource
	return o
}

func (w *Writer) delete(ctx context.Context, s *plan.Step, r cluster.Resource) Outcome {
	// The version that was planned with is as good as one that is read now: the
	// DELETE is for this version only.
	live := s.Live
	for range guardTries {
		decision, err := w.decide(ctx, s, live)
		switch {
		case err != nil:
			return failed(fmt.Errorf("delete: %w", err))
		case decision.Action == plan.Detached && decision.Shared:
			return Outcome{Action: plan.Detached, Gone: true, Reason: decision.Reason}
		case decision.Action == plan.Detached:
			if owner := w.Plan.Guard.OwnedBy(live); owner != "" {
				return Outcome{Action: plan.Skipped, Err: fmt.Errorf("not deleted: %s; it stays a member, as %s owns it", decision.Reason, owner)}
			}
			o := w.detach(ctx, s, r, live)
			o.Reason = decision.Reason
			return o
		case decision.Action != plan.Pruned:
			// What a CRD holds cannot be read once it is gone.
			if fresh, err := w.Client.Get(ctx, r, s.ID); err == nil && fresh == nil {
				return Outcome{Action: plan.Pruned, Gone: true}
			}
			return Outcome{Action: plan.Skipped, Err: fmt.Errorf("not deleted: %s", decision.Reason)}
		}
		isGone, err := w.deleteVersion(ctx, s, r, live)
		if err == nil {
			return Outcome{Action: plan.Pruned, Gone: isGone}
		}
		if !apierrors.IsConflict(err) && !errors.Is(err, errDecided) {
			return failed(fmt.Errorf("delete: %w", err))
		}
		fresh, err := w.Client.Get(ctx, r, s.ID)
		switch {
		case err != nil:
			return failed(fmt.Errorf("read it again, to delete it: %w", err))
		case fresh == nil:
			return Outcome{Action: plan.Pruned, Gone: true}
		case fresh.GetUID() != s.Live.GetUID():
			return Outcome{Action: plan.Skipped, Err: errors.New("not deleted: another client deleted and created it again during this run")}
		case fresh.GetDeletionTimestamp() != nil && s.Live.GetDeletionTimestamp() == nil:
			w.deleted.Add(s.Live) // by our own request whose answer was lost, or by another client
			return Outcome{Action: plan.Pruned}
		}
		live = fresh
	}
	return failed(fmt.Errorf("delete: %w", errChanging))
}

func (w *Writer) decide(ctx context.Context, s *plan.Step, live *unstructured.Unstructured) (plan.Verdict, error) {
	if w.Mode == DryRun {
		return plan.Verdict{Action: plan.Pruned}, nil
	}
	if !s.First { // what is pruned first goes before the objects of the bundle are there
		if err := w.readOwners(ctx); err != nil {
			return plan.Verdict{}, err
		}
	}
	if err := w.keepOwner(ctx, live, sets.New[types.UID]()); err != nil {
		return plan.Verdict{}, err
	}
	var holds bundle.Contents
	if w.Plan.Guard.Holds(s.ID) {
		var err error
		if holds, err = w.contents(ctx, live); err != nil {
			return plan.Verdict{}, err
		}
	}
	return w.Plan.Guard.Decide(s.ID, live, holds), nil
}

// readOwners has the guard know what owns the objects of the plan by now, when the first one is deleted.
func (w *Writer) readOwners(ctx context.Context) error {
	if w.Owners == nil {
		return nil
	}
	_, err := w.owners.Get(struct{}{}, func() (struct{}, error) { return struct{}{}, w.Owners(ctx) })
	return err
}

// keepOwner has the guard keep an owner where one of its dependents, which was to be deleted, too, stays
// by now, or one of theirs: the garbage collector would delete that. seen are the UIDs of those that were asked.
func (w *Writer) keepOwner(ctx context.Context, owner *unstructured.Unstructured, seen sets.Set[types.UID]) error {
	guard := w.Plan.Guard
	dependents := guard.DependentsOf(owner.GetUID())
	if len(dependents) == 0 || guard.Options.Orphans || seen.Has(owner.GetUID()) {
		return nil
	}
	seen.Insert(owner.GetUID())
	ids := bundle.SortedIDs(dependents)
	view, err := w.Client.Snapshot(ctx, ids, nil, nil, w.Inventory.Selector())
	if err != nil {
		return fmt.Errorf("read what names it in ownerReferences: %w", err)
	}
	for _, id := range ids {
		now := view.Live[id]
		switch {
		case view.Unknown[id] != nil:
			return fmt.Errorf("read %s, which names it in ownerReferences: %w", bundle.Name(id), view.Unknown[id])
		case now == nil, now.GetDeletionTimestamp() != nil, now.GetUID() != dependents[id] && bundle.KeptBy(now) == "":
			continue // another one of its name its controller has made again
		}
		if err := w.keepOwner(ctx, now, seen); err != nil {
			return err
		}
		var holds bundle.Contents
		if guard.Holds(id) {
			if holds, err = w.contents(ctx, now); err != nil {
				return err
			}
		}
		decision := guard.Decide(id, now, holds)
		if decision.Action != plan.Pruned && (decision.Action != plan.Detached || !guard.IsLeft(now)) {
			guard.Keep(id, now)
		}
	}
	return nil
}

func (w *Writer) deleteVersion(ctx context.Context, s *plan.Step, r cluster.Resource, live *unstructured.Unstructured) (bool, error) {
	if w.Mode == Persist {
		w.BeforeDelete(s.ID)
	}
	d := cluster.Deletion{Propagation: w.Options.Cascade, DryRun: w.Mode == DryRun}
	if w.Plan.Guard.Holds(s.ID) || len(w.Plan.Guard.DependentsOf(live.GetUID())) > 0 { // neither is of its version
		d.Confirm = func(ctx context.Context) error {
			if again, err := w.decide(ctx, s, live); err != nil || again.Action != plan.Pruned {
				return errors.Join(err, errDecided)
			}
			return nil
		}
	}
	isGone, err := w.Client.Delete(ctx, r, live, d)
	if err != nil || w.Mode == DryRun {
		return false, err
	}
	w.deleted.Add(live)
	w.changes.note(&bundle.Object{ID: s.ID, Content: live}, plan.Pruned) // what is pruned first is heard of late
	if s.ID.GroupKind == bundle.NamespaceKind && !isGone {
		w.deleteClaims(ctx, s.ID.Name)
	}
	return isGone, nil
}

// deleteClaims deletes the PersistentVolumeClaims that the controllers of
// deleted StatefulSets made in a deleted namespace. The namespace's controller
// would do so only five seconds later, and look five seconds after that whether
// they are gone (kube's namespace_controller.go, namespaceDeletionGracePeriod,
// and its queue's back-off). It still does where we may not, and for claims of
// others.
func (w *Writer) deleteClaims(ctx context.Context, namespace string) {
	if !w.deleted.HasSets(namespace) {
		return
	}
	resource, err := w.Client.Any(bundle.PersistentVolumeClaimKind)
	if err != nil {
		return
	}
	items, err := w.Client.ListMetadata(ctx, resource, namespace, "")
	if err != nil {
		return
	}
	for i := range items {
		if items[i].DeletionTimestamp == nil && w.deleted.Claim(&items[i]) {
			_, _ = w.Client.Delete(ctx, resource, &items[i], cluster.Deletion{})
		}
	}
}

// Detach takes the ownership metadata off an object that stays.
func (w *Writer) Detach(ctx context.Context, s *plan.Step) Outcome {
	done := Outcome{Action: plan.Detached, Gone: true}
	if s.Shared {
		return done // the metadata is the other's
	}
	resource, there, err := w.Client.AnyOrAbsent(ctx, s.ID.GroupKind)
	switch {
	case err != nil:
		return failed(fmt.Errorf("detach: %w", err))
	case !there:
		return done
	}
	o := w.detach(ctx, s, resource, s.Live)
	o.Resource = resource
	return o
}

// detach detaches the version of the object that was decided about. One that
// changed meanwhile still stays, and may not keep our metadata either.
func (w *Writer) detach(ctx context.Context, s *plan.Step, r cluster.Resource, live *unstructured.Unstructured) Outcome {
	done := Outcome{Action: plan.Detached, Gone: true}
	restore := s.Restore != nil && s.Restore.GetUID() == live.GetUID() && s.Restore.GetAPIVersion() == live.GetAPIVersion()
	for range guardTries {
		patch := w.releasing(s, live, restore)
		if patch == nil {
			w.release(s)
			return done
		}
		stored, err := w.patchOwn(ctx, r, s.ID, live, patch)
		switch {
		case err == nil:
			w.release(s)
			if done.Stored = stored; restore {
				done.Reason = strings.TrimSuffix(s.Reason+"; "+notSetBack(s, stored), "; ")
			}
			return done
		case apierrors.IsConflict(err), apierrors.IsNotFound(err), answers.NotServed(err):
			if live, err = w.Client.Get(ctx, r, s.ID); live != nil && w.Plan.Guard.Leaves(s) && (bundle.KeptBy(live) != "" || live.GetAnnotations()[inventory.OwningInventory] != "") {
				if owner := w.Plan.Guard.OwnedBy(live); owner != "" {
					w.Plan.Guard.Keep(s.ID, live)
					return Outcome{Action: plan.Skipped, Err: fmt.Errorf("not detached: it is not left to its controller any more, and stays a member, as %s owns it", owner)}
				}
			}
		case restore && answers.RefusedLast(err): // a try before it that was stored is a conflict next
			restore = false // it is released at least
			done.Reason = fmt.Sprintf("%s; its fields are not set back: %v", s.Reason, err)
			continue
		}
		switch {
		case err != nil:
			return failed(fmt.Errorf("detach: %w", err))
		case live == nil:
			return done
		}
	}
	return failed(fmt.Errorf("detach: %w", errChanging))
}

// release tells the guard what was let go: a dry run lets nothing go.
func (w *Writer) release(s *plan.Step) {
	if w.Mode == Persist {
		w.Plan.Guard.Release(s)
	}
}
