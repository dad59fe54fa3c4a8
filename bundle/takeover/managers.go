package takeover

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"brine/bundle"
)

// Which fields change hands when fields of other managers are taken over.

// lastApplied is where kubectl's client-side apply keeps what it applied.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// Manages says whether one of the managers owns fields of the object itself.
func Manages(live *unstructured.Unstructured, managers []string) bool {
	return len(managers) > 0 && slices.ContainsFunc(live.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Subresource == "" && slices.Contains(managers, entry.Manager)
	})
}

// Patch is a JSON patch that moves the managers' fields to brine, and removes
// the ownership metadata of the tools that let go. It holds only for the very version
// that was read (client-go's csaupgrade). What another applier owns by Apply moves
// like what was written by Update.
func (t TakeOver) Patch(live *unstructured.Unstructured) ([]byte, error) {
	moved := live.DeepCopy()
	fields := moved.GetManagedFields()
	for i := range fields {
		if slices.Contains(t.Managers, fields[i].Manager) && fields[i].Subresource == "" {
			fields[i].Operation = metav1.ManagedFieldsOperationUpdate
		}
	}
	moved.SetManagedFields(fields)
	text, err := csaupgrade.UpgradeManagedFieldsPatch(moved, sets.New(t.Managers...), bundle.FieldManager)
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
	remove("annotations", []string{lastApplied}, live.GetAnnotations())
	for _, tool := range t.Tools {
		remove("annotations", tool.Annotations, live.GetAnnotations())
		remove("labels", tool.Labels, live.GetLabels())
	}
	return json.Marshal(patch)
}

// Ours says of the path of a field whether brine owns it and no other manager does.
func Ours(live *unstructured.Unstructured) func(path []string) bool {
	sets := ownedSets(live)
	ours, others := united(sets, true), united(sets, false)
	return func(path []string) bool { return reach(ours, path) > reach(others, path) }
}

// Others says of the path of a field whether another manager than brine owns it, or a part of it.
func Others(live *unstructured.Unstructured, path []string) bool {
	return reach(united(ownedSets(live), false), path) > 0
}

// united are the fields of brine, or of all other managers.
func united(sets map[string]*fieldpath.Set, ours bool) *fieldpath.Set {
	all := &fieldpath.Set{}
	for owner, set := range sets {
		if strings.HasPrefix(owner, bundle.FieldManager+"\x00") == ours {
			all = all.Union(set)
		}
	}
	return all
}

// reach says how a set has a field: 2 itself or something below it; 1 what it is in,
// which is one value, or was made by an owner who lost all that is in it; 0 not at all.
func reach(set *fieldpath.Set, path []string) int {
	for i, name := range path {
		field := fieldpath.PathElement{FieldName: &name}
		below := set.WithPrefix(field)
		switch {
		case i == len(path)-1 && (set.Members.Has(field) || !below.Empty()):
			return 2
		case set.Members.Has(field) && below.Empty():
			return 1
		}
		set = below
	}
	return 0
}

// shownFields is how many fields are named of each manager.
const shownFields = 10

// Taken is which fields an apply takes from their owners, manager by
// manager: ".spec.replicas from kubectl-scale". live and stored are the object
// before and after it; only an apply that forces conflicts takes anything.
func Taken(live, stored *unstructured.Unstructured) []string {
	before, after := ownedSets(live), ownedSets(stored)
	ours := united(after, true)
	lost := map[string]*fieldpath.Set{}
	for owner, set := range before {
		manager, _, _ := strings.Cut(owner, "\x00")
		if manager == bundle.FieldManager {
			continue
		}
		rest := set
		if kept, ok := after[owner]; ok {
			rest = set.Difference(kept)
		}
		rest = rest.Intersection(ours)
		if rest.Empty() {
			continue
		}
		if lost[manager] == nil {
			lost[manager] = &fieldpath.Set{}
		}
		lost[manager] = lost[manager].Union(rest)
	}
	var taken []string
	for _, manager := range slices.Sorted(maps.Keys(lost)) {
		var fields []string
		lost[manager].Leaves().Iterate(func(p fieldpath.Path) { fields = append(fields, p.String()) })
		slices.Sort(fields)
		taken = append(taken, bundle.Some(fields, shownFields)+" from "+manager)
	}
	return taken
}

// ownedSets are the fields of each manager, by "manager NUL operation NUL
// subresource".
func ownedSets(u *unstructured.Unstructured) map[string]*fieldpath.Set {
	sets := map[string]*fieldpath.Set{}
	for _, entry := range u.GetManagedFields() {
		set := &fieldpath.Set{}
		if entry.FieldsV1 == nil || set.FromJSON(entry.FieldsV1.GetRawReader()) != nil {
			continue
		}
		owner := strings.Join([]string{entry.Manager, string(entry.Operation), entry.Subresource}, "\x00")
		if known, ok := sets[owner]; ok {
			set = set.Union(known)
		}
		sets[owner] = set
	}
	return sets
}
