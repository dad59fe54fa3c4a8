package plan

import (
	"maps"
	"slices"
	"strings"

	"brine/bundle"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// shownFields is how many fields are named of each manager.
const shownFields = 10

// Taken is which fields an apply takes from their owners, manager by
// manager: ".spec.replicas from kubectl-scale". live and stored are the object
// before and after it; only an apply that forces conflicts takes anything.
func Taken(live, stored *unstructured.Unstructured) []string {
	before, after := ownedSets(live), ownedSets(stored)
	ours := &fieldpath.Set{}
	for owner, set := range after {
		if strings.HasPrefix(owner, bundle.FieldManager+"\x00") {
			ours = ours.Union(set)
		}
	}
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
