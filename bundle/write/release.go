package write

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/bundle/diff"
	"brine/bundle/plan"
	"brine/inventory"
)

// releasing is the merge patch that takes the ownership metadata off an object and, where
// the object from before it was adopted is known, sets its fields back. It is nil where
// there is no ownership metadata.
func (w *Writer) releasing(s *plan.Step, live *unstructured.Unstructured, restore bool) (map[string]any, error) {
	metadata := w.Inventory.ClearOwner(live)
	if metadata == nil {
		return nil, nil
	}
	patch := map[string]any{}
	if restore {
		now, err := json.Marshal(given(live))
		if err != nil {
			return nil, fmt.Errorf("encode it: %w", err)
		}
		before, err := json.Marshal(given(s.Restore))
		if err != nil {
			return nil, fmt.Errorf("encode what it was: %w", err)
		}
		back, err := jsonpatch.CreateMergePatch(now, before)
		if err != nil {
			return nil, fmt.Errorf("compare it with what it was: %w", err)
		}
		if err := json.Unmarshal(back, &patch); err != nil {
			return nil, fmt.Errorf("compare it with what it was: %w", err)
		}
	}
	if others, ok := patch["metadata"].(map[string]any); ok {
		for _, key := range []string{"labels", "annotations"} {
			both, _ := others[key].(map[string]any)
			own, _ := metadata[key].(map[string]any)
			metadata[key] = mergedMaps(both, own)
		}
	}
	metadata["resourceVersion"] = live.GetResourceVersion()
	patch["metadata"] = metadata
	return patch, nil
}

func mergedMaps(a, b map[string]any) map[string]any {
	merged := maps.Clone(a)
	if merged == nil {
		merged = map[string]any{}
	}
	maps.Copy(merged, b)
	return merged
}

// given is what users and controllers give an object: all but its status and what the
// server keeps in its metadata.
func given(u *unstructured.Unstructured) map[string]any {
	fields := maps.Clone(u.Object)
	delete(fields, "status")
	metadata := map[string]any{}
	for _, key := range []string{"labels", "annotations"} {
		values, _, _ := unstructured.NestedMap(u.Object, "metadata", key)
		delete(values, inventory.OwningInventory)
		delete(values, inventory.PartOf)
		metadata[key] = mergedMaps(values, nil) // never nil: the patch names each key that goes
	}
	fields["metadata"] = metadata
	return fields
}

// notSetBack says which fields of a released object are not what they were; "" if all are.
func notSetBack(s *plan.Step, stored *unstructured.Unstructured) string {
	var paths []string
	was, is := &unstructured.Unstructured{Object: given(s.Restore)}, &unstructured.Unstructured{Object: given(stored)}
	for _, c := range diff.Objects(was, is, func(text string) string { return text }).Changes {
		paths = append(paths, c.Path)
	}
	if len(paths) == 0 {
		return ""
	}
	return "not set back: " + bundle.Some(slices.Compact(paths), 10)
}
