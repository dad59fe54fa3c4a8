package write

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/plan"
)

// lastApplied is where kubectl's client-side apply keeps what it applied.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// takeOver makes brine the manager of the fields that the managers of
// TakeOverFrom own on the live object, so that the apply that follows
// removes those of them that the bundle does not set. It returns the object as
// it is then; nil if it was deleted.
func (w *Writer) takeOver(ctx context.Context, t *target, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	patch, err := takeOverPatch(live, plan.Taking(live, w.Options.TakeOverFrom))
	if err != nil {
		return nil, err
	}
	moved, err := w.Client.Patch(ctx, t.resource, t.step.ID, types.JSONPatchType, patch, cluster.Write{DryRun: w.Mode == DryRun})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("take over the fields of %s: %w", strings.Join(w.Options.TakeOverFrom, ", "), err)
	}
	return moved, nil
}

// afterMove dry-runs the apply that follows a take-over or another move of field
// ownership. The server cannot see both requests in one: it is asked about an update
// with the object as the apply would leave it.
func (w *Writer) afterMove(ctx context.Context, t *target, result written, moved *unstructured.Unstructured) (written, error) {
	result.update = true
	body, err := t.sent(moved)
	if err != nil {
		return result, err
	}
	gv := t.step.GVK.GroupVersion()
	converter, err := w.schemas.Get(gv, func() (managedfields.TypeConverter, error) { return w.Client.Types(ctx, gv) })
	var would *unstructured.Unstructured
	var conflicts settled
	if err == nil {
		conflicts, err = w.settle(t, moved, body, func(body []byte, force bool) (err error) {
			sent := &unstructured.Unstructured{}
			if err := json.Unmarshal(body, &sent.Object); err != nil {
				return fmt.Errorf("decode what is to be applied: %w", err)
			}
			would, err = applied(converter, moved, sent, force || w.Client.Forces())
			return err
		})
	}
	switch {
	case len(cluster.FieldConflicts(err)) > 0:
		return result, err
	case err != nil:
		result.unverified = err.Error()
		return result, nil //nolint:nilerr // the preview shows the bundle's words instead
	}
	result.stored, result.warnings, err = w.Client.DryUpdate(ctx, t.resource, would)
	result.warnings = append(result.warnings, conflicts.warnings...)
	if right, ok := cluster.MissingRight(err); ok {
		result.stored, result.unverified = would, "no right to "+right
		return result, nil
	}
	return result, err
}

// takeOverPatch is a JSON patch that moves the managers' fields to brine, and removes
// the ownership metadata of a tool that lets go. It holds only for the very version
// that was read (client-go's csaupgrade). What another applier owns by Apply moves
// like what was written by Update.
func takeOverPatch(live *unstructured.Unstructured, from plan.TakeOver) ([]byte, error) {
	moved := live.DeepCopy()
	fields := moved.GetManagedFields()
	for i := range fields {
		if slices.Contains(from.Managers, fields[i].Manager) && fields[i].Subresource == "" {
			fields[i].Operation = metav1.ManagedFieldsOperationUpdate
		}
	}
	moved.SetManagedFields(fields)
	text, err := csaupgrade.UpgradeManagedFieldsPatch(moved, sets.New(from.Managers...), bundle.FieldManager)
	if err != nil {
		return nil, fmt.Errorf("read the managed fields: %w", err)
	}
	patch := []map[string]any{{"op": "replace", "path": "/metadata/resourceVersion", "value": live.GetResourceVersion()}}
	if text != nil { // else they own none
		patch = nil
		if err := json.Unmarshal(text, &patch); err != nil {
			return nil, fmt.Errorf("read the managed fields: %w", err)
		}
	}
	remove := func(field string, keys []string, there map[string]string) {
		for _, key := range keys {
			if _, ok := there[key]; ok {
				patch = append(patch, map[string]any{"op": "remove", "path": "/metadata/" + field + "/" + strings.ReplaceAll(key, "/", "~1")})
			}
		}
	}
	remove("annotations", append([]string{lastApplied}, from.Tool.Annotations...), live.GetAnnotations())
	remove("labels", from.Tool.Labels, live.GetLabels())
	return json.Marshal(patch)
}
