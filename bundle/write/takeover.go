package write

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/cluster/answers"
	"brine/bundle/takeover"
)

// Fields of other managers are taken over.

// takeOver makes brine the manager of the fields that the managers of
// TakeOverFrom own on the live object, so that the apply that follows
// removes those of them that the bundle does not set. It returns the object as
// it is then; nil if it was deleted.
func (w *Writer) takeOver(ctx context.Context, t *target, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	patch, err := takeover.Of(live, w.Options.TakeOverFrom).Patch(live)
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
	if w.Mode == Persist {
		*t.stored = storedSoFar{any: true, takeOver: true}
	}
	return moved, nil
}

// afterMove dry-runs the apply that follows a take-over or another move of field
// ownership. The server cannot see both requests in one: it is asked about an update
// with the object as the apply would leave it.
func (w *Writer) afterMove(ctx context.Context, t *target, result written, moved *unstructured.Unstructured) (written, error) {
	result.Update = true
	body, err := t.sent(moved)
	if err != nil {
		return result, err
	}
	gv := t.step.GVK.GroupVersion()
	converter, err := w.schemas.Get(gv, func() (managedfields.TypeConverter, error) { return w.Client.Types(ctx, gv) })
	var would *unstructured.Unstructured
	var leaves []string
	if err == nil {
		leaves, err = w.settle(t, moved, body, func(body []byte, force bool) (err error) {
			sent, err := bundle.Decode(body)
			if err != nil {
				return err
			}
			would, err = applied(converter, moved, sent, force || w.Client.Forces())
			return err
		})
	}
	switch {
	case len(answers.FieldConflicts(err)) > 0:
		return result, err
	case err != nil:
		result.Unverified = err.Error()
		return result, nil //nolint:nilerr // the preview shows the bundle's words instead
	}
	result.Stored, result.Warnings, err = w.Client.DryUpdate(ctx, t.resource, would)
	result.Warnings = append(result.Warnings, leaves...)
	if right, ok := answers.MissingRight(err); ok {
		result.Stored, result.Unverified = would, "no right to "+right
		return result, nil
	}
	return result, err
}
