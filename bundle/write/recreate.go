package write

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/cluster/answers"
	"brine/bundle/plan"
	"brine/bundle/ready"
	"brine/bundle/report"
)

// An object is deleted and created again, or put back as it was.

// recreate deletes the object and creates it again. was is the apply that was just
// refused, with the object as it is: the server compared its resourceVersion first.
// A dry run shows no new object: its name is still taken.
//
// The claims of a StatefulSet grow first. A run that is killed after that finds the
// old object, or none, and goes on with either.
func (w *Writer) recreate(ctx context.Context, t *target, was written, why error) (written, error) {
	result := written{Outcome: Outcome{Body: t.body}, live: was.live}
	unproven, err := w.prepareRecreation(ctx, t, was, &result)
	if w.Mode == DryRun {
		result.Reason = reasonOf(t.step, result.Claims, why)
	}
	if err != nil {
		return result, fmt.Errorf("it is kept as it is: %w", err)
	}
	replaced := *t
	replaced.body = result.Body
	old, err := w.remove(ctx, &replaced, was.live)
	if old == nil || w.Mode == DryRun {
		return result, err
	}
	t.stored.any = true
	w.changes.touch("limits in " + t.step.ID.Namespace) // a quota counts the old one for a while
	created := written{}
	if err == nil { // it is gone
		created, err = w.put(ctx, &replaced, nil)
	}
	found := created.live
	created.live, created.Claims, created.Warnings = old, result.Claims, append(result.Warnings, created.Warnings...)
	created.Reason = strings.Join(lines(result.Claims), "\n")
	var notOwned *NotOwned
	switch {
	case err == nil, errors.As(err, &notOwned):
		return created, err
	case found != nil:
		return created, fmt.Errorf("it was deleted, and another client created it meanwhile: %w", err)
	}
	if unproven != "" {
		err = fmt.Errorf("%w (a dry run could not show this before: %s)", err, unproven)
	}
	// An interrupted run does not end with the object lost, either.
	ctx, cancel := cluster.Outliving(ctx, settling, restoreGrace)
	defer cancel()
	_, lost := w.restore(ctx, &replaced, old)
	switch {
	case apierrors.IsAlreadyExists(lost): // the answer to its creation may have been lost
		return created, fmt.Errorf("it was deleted, and an object of its name is there, which may be the new one: %w", err)
	case lost != nil:
		return created, fmt.Errorf("the object is lost: it was deleted, the new one could not be created: %w, and the old one could not be restored: %s. Apply a bundle that has it again", err, lost.Error())
	}
	restored := "the old one was restored"
	if replaced.step.ID.GroupKind == bundle.PersistentVolumeClaimKind {
		restored += ", with a new volume"
	}
	return created, fmt.Errorf("it was deleted, the new one could not be created, and %s: %w", restored, err)
}

// prepareRecreation does all that can be refused before the object is deleted. The
// result gets what is created, and the claims.
func (w *Writer) prepareRecreation(ctx context.Context, t *target, was written, result *written) (unproven string, err error) {
	desired, err := bundle.Decode(t.body)
	if err != nil {
		return "", err
	}
	if err := w.mayDelete(t, was.live); err != nil {
		return "", err
	}
	if t.step.Orphans() {
		if why := plan.Abandons(was.live, desired); why != "" {
			return "", fmt.Errorf("%s. With %s: %s they are deleted with it", why, bundle.OnImmutable, bundle.Recreate)
		}
		if result.Body, err = keepLive(t, was, desired); err != nil {
			return "", err
		}
	}
	replaced := *t
	replaced.body = result.Body
	if unproven, err = w.provesCreation(ctx, &replaced); err != nil {
		return "", fmt.Errorf("a new one would be refused: %w", err)
	}
	result.Claims, err = w.grow(ctx, t, was.live, desired)
	for _, c := range result.Claims {
		if c.Kept != "" {
			result.Warnings = append(result.Warnings, c.String())
		}
	}
	return unproven, err
}

// keepLive is what is created where the dependents stay, see plan.KeepLive.
func keepLive(t *target, was written, desired *unstructured.Unstructured) ([]byte, error) {
	if was.Body == nil {
		return t.body, nil
	}
	sent, err := bundle.Decode(was.Body)
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(plan.KeepLive(desired.Object, sent.Object, was.live.Object))
	if err != nil {
		return nil, fmt.Errorf("encode what is to be created: %w", err)
	}
	return body, nil
}

func reasonOf(s *plan.Step, claims []plan.Claim, why error) string {
	text := "deleted and created again: "
	if s.Orphans() {
		text = "deleted without its dependents, which the new one adopts, and created again: "
	}
	return strings.Join(append([]string{text + why.Error()}, lines(claims)...), "\n")
}

func lines(claims []plan.Claim) []string { return bundle.Each(claims, plan.Claim.String) }

// restoreGrace is how long an interrupted run tries to restore an object.
const restoreGrace = report.Grace * 3 / 10

// restore creates an object again as it was, once it is gone, and gives its fields back
// to their managers: of a creation all are its own. A Job that has ended would run again.
func (w *Writer) restore(ctx context.Context, t *target, old *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if ready.Ended(old) {
		return nil, errors.New("it is a Job that has ended, and would run again")
	}
	if err := w.awaitGone(ctx, t, old, time.Time{}); err != nil {
		return nil, err
	}
	u := restorable(old)
	fields := u.GetManagedFields()
	u.SetManagedFields(nil)
	var stored *unstructured.Unstructured
	err := w.caughtUp(ctx, t.step, func() (err error) {
		stored, err = w.Client.Create(ctx, t.resource, u, cluster.Write{})
		return err
	})
	if err != nil {
		return nil, err
	}
	for range restoreTries {
		entries := slices.Concat(fields, slices.DeleteFunc(stored.GetManagedFields(), func(f metav1.ManagedFieldsEntry) bool { return f.Subresource == "" }))
		// Without it the next apply reports a conflict, and nothing is lost.
		if _, err = w.Client.SetManagedFields(ctx, t.resource, stored, entries, cluster.Write{}); !answers.Overtaken(err) {
			return stored, nil
		}
		again, err := w.Client.Get(ctx, t.resource, t.step.ID)
		if err != nil || again == nil {
			return stored, nil //nolint:nilerr // as above
		}
		stored = again
	}
	return stored, nil
}

// PutBack creates an object again that this run deleted, as it was.
func (w *Writer) PutBack(ctx context.Context, s *plan.Step) (*unstructured.Unstructured, error) {
	resource, err := w.Client.Any(s.ID.GroupKind)
	if err != nil {
		return nil, err
	}
	live, err := w.Client.Get(ctx, resource, s.ID)
	if err != nil || live != nil && live.GetDeletionTimestamp() == nil {
		return live, err // the DELETE whose answer was lost was not carried out, or another client was first
	}
	return w.restore(cluster.WithEnd(ctx, ctx), &target{step: s, resource: resource}, s.Live)
}

// restoreTries is how often a controller may be quicker with its status.
const restoreTries = 10

// provesCreation asks the server whether it would let a new object in whose
// name is still taken: it looks at that last, after admission and validation
// (apiserver's registry/generic/registry/store.go, Create). It returns why that
// cannot be known where what prevents it is deleted with the old object.
func (w *Writer) provesCreation(ctx context.Context, t *target) (unproven string, err error) {
	u, err := bundle.Decode(t.body)
	if err != nil {
		return "", err
	}
	_, err = w.Client.Create(ctx, t.resource, u, cluster.Write{DryRun: true})
	switch {
	case err == nil, apierrors.IsAlreadyExists(err):
		return "", nil
	case answers.QuotaExceeded(err), answers.Allocated(err), answers.NoDryRun(err): // the old object may hold what the new one asks for
		return err.Error(), nil
	}
	return "", err
}

// provesDeletion asks the server whether it would delete an object, before claims grow
// for the new one: they never shrink again. remove deals with another version of it.
func (w *Writer) provesDeletion(ctx context.Context, t *target, live *unstructured.Unstructured) error {
	_, err := w.Client.Delete(ctx, t.resource, live, cluster.Deletion{DryRun: true})
	if err == nil || apierrors.IsConflict(err) || answers.NoDryRun(err) {
		return nil
	}
	return fmt.Errorf("delete it, to create it again: %w", err)
}

func (w *Writer) mayDelete(t *target, live *unstructured.Unstructured) error {
	if why := w.Plan.Guard.Recreate(t.step.ID, live, t.step.Object.Content, t.step.Orphans()); why != "" {
		return fmt.Errorf("it cannot be deleted, to create it again: %w", &NotOwned{why})
	}
	return nil
}

// remove deletes an object that is to be recreated, and waits until it is gone: the
// garbage collector takes its dependents away from it, or deletes them, before. It
// returns the object as it was last: with an error, if it is deleted and not gone yet.
func (w *Writer) remove(ctx context.Context, t *target, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	deadline := time.Now().Add(contended)
	for {
		if err := w.mayDelete(t, live); err != nil {
			return nil, err
		}
		old, propagation, err := live, metav1.DeletePropagationForeground, error(nil)
		if t.step.Orphans() {
			propagation = metav1.DeletePropagationOrphan
			if plan.ClaimsDie(live) {
				live, err = w.retain(ctx, t, live)
			}
		}
		gone := false
		if err == nil {
			gone, err = w.Client.Delete(ctx, t.resource, live, cluster.Deletion{Propagation: propagation, DryRun: w.Mode == DryRun})
		}
		switch {
		case err == nil && (gone || w.Mode == DryRun):
			return old, nil
		case err == nil:
			return old, w.awaitGone(ctx, t, old, w.Deadline)
		case !answers.Overtaken(err) && !apierrors.IsConflict(err) || time.Now().After(deadline):
			err = fmt.Errorf("delete it, to create it again: %w", err)
			if answers.Refused(err) || w.Mode == DryRun {
				return nil, err
			}
			return w.perhapsRemoved(ctx, t, old, err)
		}
		if live, err = w.again(ctx, t); err != nil {
			if live == nil || live.GetUID() != old.GetUID() {
				return nil, err
			}
			return old, err // it was deleted, perhaps by our own request whose answer was lost
		}
		if live == nil { // deleted by another client, or by our own request whose answer was lost
			return old, nil
		}
		if live.GetUID() != old.GetUID() {
			return nil, fmt.Errorf("it is not deleted, to create it again: %w", &NotOwned{"another client deleted and created it again during this run"})
		}
	}
}

// perhapsRemoved is what became of an object where the fate of its DELETE is unknown.
func (w *Writer) perhapsRemoved(ctx context.Context, t *target, old *unstructured.Unstructured, failed error) (*unstructured.Unstructured, error) {
	late, cancel := cluster.Outliving(ctx, settling, restoreGrace/3) // the rest is for putting it back
	defer cancel()
	now, err := w.Client.Get(late, t.resource, t.step.ID)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w; whether it was deleted is unknown: %w", failed, err)
	case now != nil && now.GetUID() == old.GetUID() && now.GetDeletionTimestamp() == nil, now != nil && now.GetUID() != old.GetUID():
		return nil, failed
	case cluster.Ended(ctx):
		return old, failed
	case now == nil:
		return old, nil
	}
	return old, w.awaitGone(ctx, t, old, w.Deadline)
}

// restorable is an object without what only the server sets, to be created
// again as it was.
func restorable(old *unstructured.Unstructured) *unstructured.Unstructured {
	u := old.DeepCopy()
	unstructured.RemoveNestedField(u.Object, "status")
	for _, field := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "selfLink", "deletionTimestamp", "deletionGracePeriodSeconds"} {
		unstructured.RemoveNestedField(u.Object, "metadata", field)
	}
	u.SetFinalizers(slices.DeleteFunc(u.GetFinalizers(), func(f string) bool {
		return f == metav1.FinalizerDeleteDependents || f == metav1.FinalizerOrphanDependents
	}))
	u.SetManagedFields(slices.DeleteFunc(u.GetManagedFields(), func(f metav1.ManagedFieldsEntry) bool { return f.Subresource != "" }))
	switch u.GroupVersionKind().GroupKind() {
	case bundle.JobKind:
		if !bundle.At[bool](u.Object, "spec", "manualSelector") {
			unstructured.RemoveNestedField(u.Object, "spec", "selector")
			for _, label := range []string{"controller-uid", "batch.kubernetes.io/controller-uid"} {
				unstructured.RemoveNestedField(u.Object, "spec", "template", "metadata", "labels", label)
			}
		}
	case bundle.PersistentVolumeClaimKind: // its volume goes, or stays bound to the old claim
		unstructured.RemoveNestedField(u.Object, "spec", "volumeName")
		annotations := u.GetAnnotations()
		for key := range annotations {
			if strings.HasPrefix(key, "pv.kubernetes.io/") {
				delete(annotations, key)
			}
		}
		u.SetAnnotations(annotations)
	}
	return u
}
