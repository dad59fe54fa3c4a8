package plan

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/bundle/diff"
	"brine/bundle/remedy"
)

// Irreversible says what in the plan could not be undone by applying an earlier bundle:
// what is deleted with its data, and fields that the server does not change back.
func (p *Plan) Irreversible(earlier []*bundle.Object, o Options) []bundle.Problem {
	before := contents(earlier)
	var problems []bundle.Problem
	for _, s := range p.Steps {
		problem := bundle.Problem{ID: s.ID}
		if s.Deletes() {
			problem.Message = s.losesData(o)
		} else {
			problem = s.Object.Problem("", "")
			if was := before[s.ID]; was != nil && s.Action != Unchanged {
				problem.Message = s.irreversible(was, o)
			}
		}
		if problem.Message != "" {
			problems = append(problems, problem)
		}
	}
	return problems
}

func contents(objects []*bundle.Object) map[bundle.ID]*unstructured.Unstructured {
	all := map[bundle.ID]*unstructured.Unstructured{}
	for _, o := range objects {
		all[o.ID] = o.Content
	}
	return all
}

// losesData says what is lost with an object that is pruned; "" if it can be
// created again.
func (s *Step) losesData(o Options) string {
	if s.Action != Pruned {
		return ""
	}
	switch {
	case s.ID.GroupKind == bundle.PersistentVolumeClaimKind, s.ID.GroupKind == bundle.NamespaceKind:
		return "it would be pruned, and a rollback does not bring back what it contains"
	case s.ID.GroupKind == bundle.CRDKind && o.ForceNamespaces:
		return "it would be pruned with all of its resources, and a rollback does not bring those back that are not in the bundle"
	case ClaimsDie(s.Live):
		return "it would be pruned with its PersistentVolumeClaims (persistentVolumeClaimRetentionPolicy), and a rollback does not bring back their data"
	}
	return ""
}

// irreversible says which change of an object the server would not take back.
func (s *Step) irreversible(was *unstructured.Unstructured, o Options) string {
	now := s.Object.Content
	switch s.ID.GroupKind {
	case bundle.CRDKind:
		if o.Migrates(was, now) {
			return "" // they are rewritten on the way back
		}
		return storedForever(s.Live, now, was)
	case bundle.PersistentVolumeClaimKind:
		old, before := request(was.Object)
		larger, after := request(now.Object)
		if before && after && larger.Cmp(old) > 0 {
			return fmt.Sprintf("its size would grow from %s to %s, and the server does not shrink it again", old.String(), larger.String())
		}
	case bundle.ConfigMapKind, bundle.SecretKind:
		if now.Object["immutable"] == true && !diff.Equal(now, was) && !recreates(was, o) {
			return "it would become immutable with another content, and the earlier bundle does not allow to recreate it"
		}
	}
	return ""
}

// storedForever names a version in which resources of a CRD would be stored, and
// that the earlier CRD does not have.
func storedForever(live, now, was *unstructured.Unstructured) string {
	var stored []string
	if live != nil {
		stored = bundle.Items[string](live.Object, "status", "storedVersions")
	}
	next, _ := bundle.DefinitionOf(now)
	for _, v := range next.Versions {
		if v.Storage {
			stored = append(stored, v.Name)
		}
	}
	earlier, _ := bundle.DefinitionOf(was)
	for _, name := range stored {
		if !slices.ContainsFunc(earlier.Versions, func(v bundle.DefinedVersion) bool { return v.Name == name }) {
			return fmt.Sprintf("its resources would be stored as %s, which the earlier CRD does not have: that one can be applied only as long as there are none, or with %s, which rewrites them (annotation %s: %s)",
				name, remedy.MigrateStored, bundle.OnStoredVersion, bundle.StoredMigrate)
		}
	}
	return ""
}

// request is the size that a claim, or a template of one, asks for.
func request(claim map[string]any) (resource.Quantity, bool) {
	text := fmt.Sprint(bundle.At[any](claim, "spec", "resources", "requests", "storage")) // a bundle may write a number
	q, err := resource.ParseQuantity(text)
	return q, err == nil
}

// recreates says whether an object may be recreated for an immutable field.
func recreates(u *unstructured.Unstructured, o Options) bool {
	return o.recreation(u, u.GroupVersionKind().GroupKind()) != NoRecreation
}

// RecreatedForGood are the objects that the plan may recreate, and that the earlier
// bundle does not allow to recreate.
func (p *Plan) RecreatedForGood(earlier []*bundle.Object, o Options) map[bundle.ID]bool {
	found, before := map[bundle.ID]bool{}, contents(earlier)
	for _, s := range p.Steps {
		if was := before[s.ID]; was != nil && s.Recreate != NoRecreation && !s.Always && s.Live != nil && s.Action == Configured && !recreates(was, o) {
			found[s.ID] = true
		}
	}
	return found
}
