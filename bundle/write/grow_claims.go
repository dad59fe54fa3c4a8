package write

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/plan"
)

// The PersistentVolumeClaims of a StatefulSet that is recreated.

// grow makes the claims of a StatefulSet that is recreated as large as its new
// templates ask for. The server refuses to change the templates of a live one, and no
// controller grows claims (kubernetes/kubernetes#68737, KEP-661). It returns all
// claims of another size than their templates.
func (w *Writer) grow(ctx context.Context, t *target, live, desired *unstructured.Unstructured) ([]plan.Claim, error) {
	if !plan.Resizes(live, desired) || plan.ClaimsDie(live) && !t.step.Orphans() {
		return nil, nil
	}
	r, items, err := w.claims(ctx, live)
	if err != nil {
		return nil, err
	}
	rigid := func(class string) (string, error) { return w.rigid(ctx, class) }
	grows := false
	for i := range items { // what is unknown of one claim ends it before another one is written
		c, differs, err := plan.Resize(desired, &items[i], rigid)
		if err != nil {
			return nil, err
		}
		grows = grows || differs && c.Kept == ""
	}
	if grows && w.Mode != DryRun {
		if err := w.provesDeletion(ctx, t, live); err != nil {
			return nil, err
		}
	}
	var claims []plan.Claim
	for i := range items {
		c, differs, err := w.growOne(ctx, r, desired, &items[i], rigid)
		if err != nil {
			return claims, err
		}
		if differs {
			claims = append(claims, c)
			t.stored.any = t.stored.any || c.Kept == "" && w.Mode == Persist
		}
	}
	return claims, nil
}

func (w *Writer) claims(ctx context.Context, set *unstructured.Unstructured) (cluster.Resource, []unstructured.Unstructured, error) {
	r, items, err := w.claimsBeside(ctx, set)
	return r, slices.DeleteFunc(items, func(claim unstructured.Unstructured) bool {
		return !cluster.Claims(set, &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: claim.GetNamespace(), Name: claim.GetName(), Labels: claim.GetLabels()}})
	}), err
}

func (w *Writer) claimsBeside(ctx context.Context, set *unstructured.Unstructured) (cluster.Resource, []unstructured.Unstructured, error) {
	r, err := w.Client.Any(bundle.PersistentVolumeClaimKind)
	if err != nil {
		return r, nil, err
	}
	items, err := w.Client.List(ctx, r, set.GetNamespace(), "", "")
	if err != nil {
		return r, nil, fmt.Errorf("read its PersistentVolumeClaims: %w", err)
	}
	return r, items, nil
}

// growOne grows a claim, unless it keeps its size. It is decided again when the claim
// changes in between.
func (w *Writer) growOne(ctx context.Context, r cluster.Resource, desired, claim *unstructured.Unstructured, rigid func(string) (string, error)) (c plan.Claim, differs bool, err error) {
	id := bundle.ID{GroupKind: bundle.PersistentVolumeClaimKind, Namespace: claim.GetNamespace(), Name: claim.GetName()}
	for range guardTries {
		class := bundle.At[string](claim.Object, "spec", "storageClassName")
		if c, differs, err = plan.Resize(desired, claim, rigid); err != nil || !differs || c.Kept != "" || w.Mode == DryRun && w.changesClass(class) != nil {
			return c, differs, err
		}
		_, err = w.patchOwn(ctx, r, id, claim, map[string]any{"spec": map[string]any{"resources": map[string]any{"requests": map[string]any{"storage": c.To}}}})
		switch {
		case err == nil:
			return c, true, nil
		case !apierrors.IsConflict(err) && !apierrors.IsNotFound(err):
			return c, true, fmt.Errorf("%s: %w", c.String(), err)
		}
		if claim, err = w.Client.Get(ctx, r, id); err != nil || claim == nil {
			return plan.Claim{}, false, err
		}
	}
	return c, true, fmt.Errorf("%s: %w", c.String(), errChanging)
}

// patchOwn merges a patch into the very version of an object that was read.
func (w *Writer) patchOwn(ctx context.Context, r cluster.Resource, id bundle.ID, live *unstructured.Unstructured, patch map[string]any) (*unstructured.Unstructured, error) {
	bound := &unstructured.Unstructured{Object: patch}
	bound.SetUID(live.GetUID())
	bound.SetResourceVersion(live.GetResourceVersion())
	body, err := json.Marshal(patch)
	if err != nil {
		return nil, fmt.Errorf("encode a patch: %w", err)
	}
	return w.Client.Patch(ctx, r, id, types.MergePatchType, body, cluster.Write{DryRun: w.Mode == DryRun})
}

// rigid says why claims of a StorageClass cannot grow; "" if they can.
func (w *Writer) rigid(ctx context.Context, class string) (string, error) {
	live := w.changesClass(class)
	if live == nil {
		r, err := w.Client.Any(bundle.StorageClassKind)
		if err == nil {
			live, err = w.Client.Get(ctx, r, bundle.ID{GroupKind: bundle.StorageClassKind, Name: class})
		}
		if err != nil {
			return "", fmt.Errorf("whether StorageClass %s allows volume expansion is unknown: %w", class, err)
		}
	}
	if live == nil {
		return fmt.Sprintf("StorageClass %s does not exist", class), nil
	}
	if !bundle.At[bool](live.Object, "allowVolumeExpansion") {
		return fmt.Sprintf("StorageClass %s does not allow volume expansion", class), nil
	}
	return "", nil
}

// changesClass is a StorageClass of the bundle that the run of a preview would create
// or change first; nil otherwise.
func (w *Writer) changesClass(name string) *unstructured.Unstructured {
	if w.Mode != DryRun {
		return nil
	}
	for _, s := range w.Plan.Steps {
		if s.ID == (bundle.ID{GroupKind: bundle.StorageClassKind, Name: name}) && s.Object != nil && s.Action != plan.Unchanged && s.Blocked == "" {
			return s.Object.Content
		}
	}
	return nil
}

// retain makes a StatefulSet whose controller deletes its claims with it let them go,
// and returns it as it is then. The garbage collector would delete a claim that it
// takes from it too late. So the controller has to have seen the other policy, which
// ends its writing of owner references, and the references have to be gone. A run
// that is killed after that takes the field back: fields.ConflictRules.Of.
func (w *Writer) retain(ctx context.Context, t *target, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	body, err := json.Marshal(map[string]any{
		"apiVersion": live.GetAPIVersion(), "kind": live.GetKind(), "metadata": map[string]any{"name": live.GetName(), "namespace": live.GetNamespace()},
		"spec": map[string]any{"persistentVolumeClaimRetentionPolicy": map[string]any{"whenDeleted": "Retain"}},
	})
	if err != nil {
		return nil, fmt.Errorf("encode a patch: %w", err)
	}
	set, _, err := w.Client.Apply(ctx, t.resource, t.step.ID, body, cluster.Write{Live: live, DryRun: w.Mode == DryRun, Force: true, Manager: bundle.RecreationManager})
	if err != nil || w.Mode == DryRun {
		return live, err
	}
	t.stored.any = true
	generation := set.GetGeneration()
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, 2*time.Second) {
		switch {
		case set.GetUID() != live.GetUID() || set.GetDeletionTimestamp() != nil || plan.ClaimsDie(set):
			return live, nil // this version is no more: the deletion is refused, and decided again
		case bundle.At[int64](set.Object, "status", "observedGeneration") >= generation:
			return set, w.disown(ctx, set)
		case !w.Deadline.IsZero() && time.Now().After(w.Deadline) || !cluster.Sleep(ctx, pause):
			return nil, fmt.Errorf("its controller has not seen that it is to keep its PersistentVolumeClaims: %w", cmp.Or(cluster.WhyEnded(ctx), context.DeadlineExceeded))
		}
		if set, err = w.Client.Get(ctx, t.resource, t.step.ID); err != nil {
			return nil, err
		}
		if set == nil {
			return live, nil
		}
	}
}

func (w *Writer) disown(ctx context.Context, set *unstructured.Unstructured) error {
	for range guardTries {
		r, items, err := w.claimsBeside(ctx, set)
		if err != nil {
			return err
		}
		owned := false
		for i := range items {
			claim := &items[i]
			refs := slices.Clone(claim.GetOwnerReferences())
			left := slices.DeleteFunc(refs, func(ref metav1.OwnerReference) bool { return ref.UID == set.GetUID() })
			if len(left) == len(claim.GetOwnerReferences()) {
				continue
			}
			owned = true
			id := bundle.ID{GroupKind: bundle.PersistentVolumeClaimKind, Namespace: claim.GetNamespace(), Name: claim.GetName()}
			_, err := w.patchOwn(ctx, r, id, claim, map[string]any{"metadata": map[string]any{"ownerReferences": left}})
			if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
				return fmt.Errorf("take its owner reference from PersistentVolumeClaim %s: %w", claim.GetName(), err)
			}
		}
		if !owned {
			return nil
		}
	}
	return fmt.Errorf("take its owner references from its PersistentVolumeClaims: %w", errChanging)
}
