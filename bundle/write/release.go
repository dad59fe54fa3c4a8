package write

import (
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/bundle/diff"
	"brine/bundle/plan"
	"brine/bundle/takeover"
	"brine/inventory"
)

// releasing is the merge patch that takes the ownership metadata off an object and, where
// it is known what the object was before, sets its fields back. It is nil where there is no
// ownership metadata.
func (w *Writer) releasing(s *plan.Step, live *unstructured.Unstructured, restore bool) map[string]any {
	metadata := w.Inventory.ClearOwner(live)
	if metadata == nil {
		return nil
	}
	patch := map[string]any{}
	if restore {
		patch = setBack(given(live), given(s.Restore.Unstructured), nil, settable(live, s.Restore.Kept))
	}
	if others, ok := patch["metadata"].(map[string]any); ok {
		for _, key := range []string{"labels", "annotations"} {
			metadata[key] = mergedMaps(bundle.At[map[string]any](others, key), bundle.At[map[string]any](metadata, key))
		}
	}
	patch["metadata"] = metadata
	return patch
}

// settable says of the path of a field whether it may be set back: what others have set or removed
// since stays theirs. In the same run it was brine that removed what is missing.
func settable(live *unstructured.Unstructured, laterRun bool) func(path []string) bool {
	ours := takeover.Ours(live)
	return func(path []string) bool {
		_, there, _ := unstructured.NestedFieldNoCopy(live.Object, path...)
		return ours(path) || !there && !laterRun
	}
}

// setBack is the merge patch that makes fields what they were, but those below path that
// may not be changed.
func setBack(is, was map[string]any, path []string, may func(path []string) bool) map[string]any {
	patch := map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(mergedMaps(is, was))) {
		now, there := is[key]
		before, existed := was[key]
		at := append(slices.Clone(path), key)
		inside, isMap := now.(map[string]any)
		earlier, wasMap := before.(map[string]any)
		switch {
		case there && existed && reflect.DeepEqual(now, before):
		case isMap && (wasMap || !existed && !may(at)):
			if changes := setBack(inside, earlier, at, may); len(changes) > 0 {
				patch[key] = changes
			}
		case may(at):
			patch[key] = before // null removes it
		}
	}
	return patch
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
	was, is := &unstructured.Unstructured{Object: given(s.Restore.Unstructured)}, &unstructured.Unstructured{Object: given(stored)}
	paths := bundle.Each(diff.Objects(was, is, func(text string) string { return text }).Changes, func(c diff.Change) string { return c.Path })
	if len(paths) == 0 {
		return ""
	}
	return "not set back: " + bundle.Some(slices.Compact(paths), 10)
}
