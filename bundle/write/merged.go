package write

import (
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/merge"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"brine/bundle"
	"brine/bundle/cluster/answers"
)

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
