package write

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/merge"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/cluster/answers"
	"brine/bundle/fields"
	"brine/bundle/redact"
	"brine/bundle/remedy"
	"brine/bundle/takeover"
)

// Fields of other managers: taken over, in conflict, left to them.

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
		result.unverified = err.Error()
		return result, nil //nolint:nilerr // the preview shows the bundle's words instead
	}
	result.stored, result.warnings, err = w.Client.DryUpdate(ctx, t.resource, would)
	result.warnings = append(result.warnings, conflicts.warnings...)
	if right, ok := answers.MissingRight(err); ok {
		result.stored, result.unverified = would, "no right to "+right
		return result, nil
	}
	return result, err
}

// settled is what the rules about conflicts say about an apply.
type settled struct {
	warnings []string
	left     bool // fields were left to other managers
}

// conflictRounds is how often the server is asked about one version of an object.
const conflictRounds = 3

// settle applies a body to an object that is live. Where the server reports
// conflicts, the rules decide about them: the body is sent again without the
// fields that are left to their managers, and takes the others.
func (w *Writer) settle(t *target, live *unstructured.Unstructured, body []byte, apply func(body []byte, force bool) error) (settled, error) {
	var s settled
	force := false
	for range conflictRounds {
		err := apply(body, force)
		reported := answers.FieldConflicts(err)
		if len(reported) == 0 || live == nil {
			return s, err
		}
		wanted, wrong := bundle.Decode(body)
		if wrong != nil {
			return s, wrong
		}
		conflicts := slices.Concat(bundle.Each(reported, func(c answers.Conflict) []fields.Conflict {
			return fields.ConflictsOf(c.Field, c.Name(), wanted.Object, live)
		})...)
		sent, left, taken, ok := w.Options.Conflicts.Settle(wanted.Object, conflicts)
		if !ok {
			secret := t.secret || redact.Holds(t.step.Object.Content) || redact.Holds(live) || CopiesSecret(t.step.Object.Content)
			return s, conflictError(err, conflicts, !secret)
		}
		if body, err = json.Marshal(sent); err != nil {
			return s, fmt.Errorf("encode what is to be applied: %w", err)
		}
		if len(left) > 0 {
			s.left = true
			s.warnings = append(s.warnings, "leaves "+fields.Named(left, "to"))
		}
		force = force || len(taken) > 0 // who owned them is told by what was stored
	}
	return s, apply(body, force)
}

// conflictError is the server's refusal with what an operator needs to decide.
func conflictError(err error, conflicts []fields.Conflict, values bool) error {
	return &answer{err: err, text: fmt.Sprintf(
		"conflict: %s. Take the fields with %s, decide by manager with %s, move them with %s, leave them to others with %s, or remove them from the bundle (see %s)",
		fields.Explained(conflicts, values), remedy.ForceConflicts, remedy.Conflicts, remedy.TakeOverManagers, remedy.IgnoreFields, remedy.HelpConflict)}
}

// applied is live as it would be after an apply of sent, with the code that the
// server does it with and the server's schemas. It replaces the server
// where the apply follows another write, and no dry run can see both.
func applied(types managedfields.TypeConverter, live, sent *unstructured.Unstructured, force bool) (*unstructured.Unstructured, error) {
	managers, err := managersOf(live)
	if err != nil {
		return nil, err
	}
	bare := live.DeepCopy()
	bare.SetManagedFields(nil)
	before, err := types.ObjectToTyped(bare, typed.AllowDuplicates)
	if err != nil {
		return nil, fmt.Errorf("read the live object by its schema: %w", err)
	}
	asked, err := types.ObjectToTyped(sent)
	if err != nil {
		return nil, fmt.Errorf("read what is to be applied by its schema: %w", err)
	}
	updater := (&merge.UpdaterBuilder{Converter: oneVersion{}}).BuildUpdater()
	after, _, err := updater.Apply(before, asked, fieldpath.APIVersion(sent.GetAPIVersion()), managers, oursApplied, force)
	if conflicts, ok := errors.AsType[merge.Conflicts](err); ok {
		return nil, answers.ConflictError(bundle.Each(conflicts, func(c merge.Conflict) answers.Conflict { // as the server reports it
			return answers.Conflict{Manager: c.Manager, Field: c.Path.String()}
		}), conflicts.Error())
	}
	if err != nil {
		return nil, fmt.Errorf("merge what is to be applied: %w", err)
	}
	if after == nil {
		return bare, nil
	}
	object, err := types.TypedToObject(after)
	if err != nil {
		return nil, fmt.Errorf("merge what is to be applied: %w", err)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("merge what is to be applied: %w", err)
	}
	return &unstructured.Unstructured{Object: content}, nil
}

// oursApplied names our entry of applies among the managers.
const oursApplied = bundle.FieldManager + " Apply"

func managersOf(live *unstructured.Unstructured) (fieldpath.ManagedFields, error) {
	managers := fieldpath.ManagedFields{}
	for i, entry := range live.GetManagedFields() {
		if entry.FieldsV1 == nil {
			continue
		}
		set := &fieldpath.Set{}
		if err := set.FromJSON(entry.FieldsV1.GetRawReader()); err != nil {
			return nil, fmt.Errorf("read the managed fields: %w", err)
		}
		isApply := entry.Operation == metav1.ManagedFieldsOperationApply
		name := fmt.Sprintf("%q using %s #%d", entry.Manager, entry.APIVersion, i)
		if isApply && entry.Manager == bundle.FieldManager && entry.Subresource == "" {
			name = oursApplied
		}
		managers[name] = fieldpath.NewVersionedSet(set, fieldpath.APIVersion(entry.APIVersion), isApply)
	}
	return managers, nil
}

// oneVersion leaves objects in the version in which they are: fields of others,
// in other versions of it, are nearly always called the same.
type oneVersion struct{}

func (oneVersion) Convert(object *typed.TypedValue, _ fieldpath.APIVersion) (*typed.TypedValue, error) {
	return object, nil
}

func (oneVersion) IsMissingVersionError(error) bool { return false }
