package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/cluster/answers"
	"brine/bundle/redact"
	"brine/inventory"
)

// An object gets another owner.

// ownTries is how often an object may change between two requests. Controllers
// write status all the time.
const ownTries = 20

// ownOne makes an object one of the target's, and changes nothing else of it. Once its
// metadata say so, it is moved, whatever becomes of the requests after that.
func (m *mover) ownOne(ctx context.Context, b *batch, id bundle.ID, live *unstructured.Unstructured) error {
	r, err := m.client.Any(id.GroupKind)
	if err != nil {
		return err
	}
	for range ownTries {
		patch, kind, err := m.next(b, live)
		if err != nil || patch == nil {
			return err
		}
		stored, err := m.client.Patch(ctx, r, id, kind, patch, cluster.Write{})
		var refused error
		switch {
		case err == nil:
			live = stored
			continue
		case apierrors.IsConflict(err), apierrors.IsNotFound(err), answers.NotServed(err):
		case m.owns(live):
			return nil
		case !answers.RefusedLast(err):
			return &unknownOwner{redact.Error(err, live.Object)}
		default:
			refused = fmt.Errorf("change its owner: %w", redact.Error(err, live.Object))
		}
		if refused != nil && answers.Refused(err) {
			return refused
		}
		fresh, err := m.client.Get(ctx, r, id)
		switch {
		case err != nil && m.owns(live):
			return nil
		case err != nil:
			return &unknownOwner{err} // an earlier try may have been stored, and its answer lost
		case fresh == nil:
			return nil // another client deleted it
		}
		if live = fresh; refused != nil && !m.owns(live) {
			return refused
		}
	}
	if m.owns(live) {
		return nil
	}
	return errors.New("change its owner: other clients changed it again and again")
}

func (m *mover) owns(live *unstructured.Unstructured) bool {
	return live.GetAnnotations()[inventory.OwningInventory] == m.to.ID && live.GetLabels()[inventory.PartOf] == m.to.ApplySetID()
}

// next is the next request about an object as it is now; nil when there is nothing
// left to do. The ownership metadata changes first. The server attributes that to
// an update by brine, and the next apply of another inventory would conflict with
// it. So its fields are added to what brine has applied.
func (m *mover) next(b *batch, live *unstructured.Unstructured) ([]byte, types.PatchType, error) {
	want := &unstructured.Unstructured{Object: map[string]any{}}
	m.to.SetOwner(want)
	if why := b.refusal(live); why != "" && live.GetAnnotations()[inventory.OwningInventory] != m.to.ID {
		return nil, "", errors.New(why)
	}
	if !m.owns(live) {
		want.SetUID(live.GetUID())
		want.SetResourceVersion(live.GetResourceVersion())
		patch, err := json.Marshal(want.Object)
		return patch, types.MergePatchType, err
	}
	entries, changed, err := appliedOwner(live.GetManagedFields(), live.GetAPIVersion())
	if err != nil || !changed {
		return nil, "", err
	}
	patch, err := json.Marshal([]map[string]any{
		{"op": "replace", "path": "/metadata/managedFields", "value": entries},
		{"op": "replace", "path": "/metadata/resourceVersion", "value": live.GetResourceVersion()}, // a conflict if it changed
	})
	return patch, types.JSONPatchType, err
}

func ownership() (fields, parents *fieldpath.Set) {
	annotations, labels := fieldpath.MakePathOrDie("metadata", "annotations"), fieldpath.MakePathOrDie("metadata", "labels")
	return fieldpath.NewSet(fieldpath.MakePathOrDie("metadata", "annotations", inventory.OwningInventory), fieldpath.MakePathOrDie("metadata", "labels", inventory.PartOf)),
		fieldpath.NewSet(annotations, labels)
}

// appliedOwner moves the ownership metadata from what brine has updated to what it
// has applied.
func appliedOwner(entries []metav1.ManagedFieldsEntry, apiVersion string) (moved []metav1.ManagedFieldsEntry, changed bool, err error) {
	fields, parents := ownership()
	owned, at := &fieldpath.Set{}, -1
	for _, entry := range entries {
		set, ours := &fieldpath.Set{}, entry.Manager == bundle.FieldManager && entry.Subresource == "" && entry.FieldsV1 != nil
		if ours {
			if err := set.FromJSON(bytes.NewReader(entry.FieldsV1.GetRawBytes())); err != nil {
				return nil, false, fmt.Errorf("read its managed fields: %w", err)
			}
		}
		switch taken := set.Intersection(fields); {
		case !ours:
		case entry.Operation == metav1.ManagedFieldsOperationApply:
			at, owned = len(moved), owned.Union(set)
		case !taken.Empty():
			owned, changed = owned.Union(taken), true
			rest := set.Difference(fields)
			if rest.Difference(parents).Empty() {
				continue
			}
			if entry.FieldsV1, err = fieldsOf(rest); err != nil {
				return nil, false, err
			}
		}
		moved = append(moved, entry)
	}
	if !changed {
		return entries, false, nil
	}
	if at < 0 {
		now := metav1.Now()
		at, moved = len(moved), append(moved, metav1.ManagedFieldsEntry{Manager: bundle.FieldManager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: apiVersion, Time: &now, FieldsType: "FieldsV1"})
	}
	moved[at].FieldsV1, err = fieldsOf(owned)
	return moved, true, err
}

func fieldsOf(set *fieldpath.Set) (*metav1.FieldsV1, error) {
	text, err := set.ToJSON()
	if err != nil {
		return nil, fmt.Errorf("encode its managed fields: %w", err)
	}
	fields := &metav1.FieldsV1{}
	fields.SetRawBytes(text)
	return fields, nil
}

// unknownOwner is the error of a change of the owner that may have been stored.
type unknownOwner struct{ err error }

func (u *unknownOwner) Error() string {
	return "change its owner: whether it was stored is unknown: " + u.err.Error()
}
func (u *unknownOwner) Unwrap() error { return u.err }
