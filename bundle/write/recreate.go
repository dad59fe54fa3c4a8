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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/plan"
)

// recreate deletes the object and creates it anew. live is the object whose
// update was just refused: the server compared its resourceVersion first. A dry
// run shows no new object: its name is still taken.
func (w *Writer) recreate(ctx context.Context, t *target, live *unstructured.Unstructured, why error) (written, error) {
	result := written{live: live}
	if w.Mode == DryRun {
		result.reason = "deleted and created anew: " + why.Error()
	}
	unproven, err := w.provesCreation(ctx, t)
	if err != nil {
		return result, fmt.Errorf("it is kept as it is, because a new one would be refused: %w", err)
	}
	old, err := w.remove(ctx, t, live)
	if err != nil || w.Mode == DryRun {
		return result, err
	}
	w.changes.touch("limits in " + t.step.ID.Namespace) // a quota counts the old one for a while
	result, err = w.put(ctx, t, nil)
	var notOwned *NotOwned
	if err == nil || old == nil || errors.As(err, &notOwned) {
		result.live = old
		return result, err
	}
	if unproven != "" {
		err = fmt.Errorf("%w (a dry run could not show this before: %s)", err, unproven)
	}
	// An interrupted run does not end with the object lost, either.
	patience := settling
	if ctx.Err() != nil {
		patience = restoreGrace
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	if lost := w.restore(ctx, t, old); lost != nil {
		return result, fmt.Errorf("the object is lost: it was deleted, the new one could not be created: %w, and the old one could not be restored: %s. Apply a bundle that has it again", err, lost.Error())
	}
	return result, fmt.Errorf("it was deleted, the new one could not be created, and the old one was restored: %w", err)
}

// restoreGrace is how long an interrupted run tries to restore an object.
const restoreGrace = 5 * time.Second

// restore creates an object again as it was, and gives its fields back to their
// managers: of a creation all are its own.
func (w *Writer) restore(ctx context.Context, t *target, old *unstructured.Unstructured) error {
	u := restorable(old)
	fields := u.GetManagedFields()
	u.SetManagedFields(nil)
	var stored *unstructured.Unstructured
	err := w.caughtUp(ctx, t.step, func() (err error) {
		stored, err = w.Client.Create(ctx, t.resource, u, cluster.Write{})
		return err
	})
	if err != nil {
		return err
	}
	for range restoreTries {
		entries := slices.Concat(fields, slices.DeleteFunc(stored.GetManagedFields(), func(f metav1.ManagedFieldsEntry) bool { return f.Subresource == "" }))
		patch, err := json.Marshal([]map[string]any{
			{"op": "replace", "path": "/metadata/managedFields", "value": entries},
			{"op": "replace", "path": "/metadata/resourceVersion", "value": stored.GetResourceVersion()},
		})
		if err != nil {
			return fmt.Errorf("encode its managed fields: %w", err)
		}
		// Without it the next apply reports a conflict, and nothing is lost.
		if _, err = w.Client.Patch(ctx, t.resource, t.step.ID, types.JSONPatchType, patch, cluster.Write{}); !cluster.Overtaken(err) {
			return nil
		}
		if stored, err = w.Client.Get(ctx, t.resource, t.step.ID); err != nil || stored == nil {
			return nil //nolint:nilerr // as above
		}
	}
	return nil
}

// restoreTries is how often a controller may be quicker with its status.
const restoreTries = 10

// provesCreation asks the server whether it would let a new object in whose
// name is still taken: it looks at that last, after admission and validation
// (apiserver's registry/generic/registry/store.go, Create). It returns why that
// cannot be known where what prevents it is deleted with the old object.
func (w *Writer) provesCreation(ctx context.Context, t *target) (unproven string, err error) {
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal(t.body, &u.Object); err != nil {
		return "", fmt.Errorf("decode what is to be created: %w", err)
	}
	_, err = w.Client.Create(ctx, t.resource, u, cluster.Write{DryRun: true})
	switch {
	case err == nil, apierrors.IsAlreadyExists(err):
		return "", nil
	case cluster.QuotaExceeded(err), cluster.Allocated(err), cluster.NoDryRun(err): // the old object may hold what the new one asks for
		return err.Error(), nil
	}
	return "", err
}

// remove deletes an object that is to be recreated, and waits until it is gone.
// It returns the object as it was last; nil if another client deleted it.
func (w *Writer) remove(ctx context.Context, t *target, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	deadline := time.Now().Add(contended)
	for {
		if why := plan.KeptBy(live.GetAnnotations()); why != "" {
			return nil, fmt.Errorf("it cannot be deleted, to create it anew: %s", why)
		}
		isGone, err := w.Client.Delete(ctx, t.resource, t.step.ID, cluster.Deletion{
			UID: live.GetUID(), Version: live.GetResourceVersion(), Propagation: metav1.DeletePropagationForeground, DryRun: w.Mode == DryRun,
		})
		switch {
		case err == nil && w.Mode == DryRun:
			return live, nil
		case err == nil && isGone:
			return live, nil
		case err == nil:
			return live, w.awaitGone(ctx, t, live)
		case !apierrors.IsConflict(err) || time.Now().After(deadline):
			return nil, fmt.Errorf("delete it, to create it anew: %w", err)
		}
		if live, err = w.again(ctx, t); err != nil || live == nil {
			return nil, err
		}
	}
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
		if manual, _, _ := unstructured.NestedBool(u.Object, "spec", "manualSelector"); !manual {
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
