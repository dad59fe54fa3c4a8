package simulator

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/scripts/simulator/apiserver"
)

// brine patch --delete: people delete single objects that are in no inventory.

// patchInvariants are those of brine patch, which takes no lock and asks for no inventory.
var patchInvariants = []invariant{
	{"1 patches delete only what is in no inventory", (*oracle).patchesOnly},
	{"6 the result is true", (*oracle).resultIsTrue},
	{"6 a refusal is told as what it is", (*oracle).toldAsItIs},
	{"12 every run ends in its time", (*oracle).endsInTime},
	{"13 no secret", (*oracle).noSecret},
}

// deleteByPatch: some steps are deletions of a single object.
func deleteByPatch(*rand.Rand) func(*rand.Rand, *scene) {
	return func(r *rand.Rand, one *scene) {
		if one.step.isAdministrative() || one.step.secret || one.step.carriesOut || one.step.saves || r.IntN(3) > 0 {
			return
		}
		one.step = step{command: "patch", inventory: one.step.inventory, around: one.step.around, text: []string{
			"apiVersion: v1\nkind: Namespace\nmetadata: {name: app}\n",
			"apiVersion: v1\nkind: Namespace\nmetadata: {name: extra-app}\n",
			"apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: widgets.app.example.com}\n",
			"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: app}\n",
			"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shop, namespace: default}\n",
		}[r.IntN(5)]}
		one.too = nil
	}
}

// patchesOnly: what is deleted alone is named, is in no inventory, and holds nothing since before
// the command began that is in one.
func (o *oracle) patchesOnly() (wrong []string) {
	state, since := map[bundle.ID]*unstructured.Unstructured{}, map[bundle.ID]int{}
	for i, w := range o.server.Log[:o.d.to] {
		id := bundle.ID{GroupKind: w.Kind, Namespace: w.Namespace, Name: w.Name}
		if w.Before == nil || w.After == nil || owner(w.Before) != owner(w.After) {
			since[id] = i
		}
		if i >= o.d.from && w.Actor == o.d.actor {
			wrong = append(wrong, o.patchedWrongly(w, id, state, since)...)
		}
		if state[id] = w.After; w.After == nil {
			delete(state, id)
		}
	}
	return wrong
}

// isOfInventory says whether an object is a member of an inventory, or a part of it.
func isOfInventory(u *unstructured.Unstructured) bool {
	return owner(u) != "" || keepsBooks(u.GetNamespace(), u.GetName()) && u.GetKind() != "Lease"
}

// patchedWrongly is what is wrong with one write, in the state before it.
func (o *oracle) patchedWrongly(w *apiserver.Write, id bundle.ID, state map[bundle.ID]*unstructured.Unstructured, since map[bundle.ID]int) (wrong []string) {
	named := func(object *bundle.Object) bool { return object.ID == id }
	switch {
	case w.Verb != "delete" || !slices.ContainsFunc(o.d.bundle.Objects, named):
		wrong = append(wrong, "it is not named: "+w.String())
	case isOfInventory(w.Before):
		wrong = append(wrong, "it is in an inventory: "+w.String())
	}
	if !bundle.HoldsObjects(w.Kind) {
		return wrong
	}
	defines, _, _ := unstructured.NestedString(w.Before.Object, "spec", "group")
	for held, u := range state {
		in := w.Kind == bundle.NamespaceKind && held.Namespace == w.Name || w.Kind == bundle.CRDKind && held.GroupKind.Group == defines
		if in && isOfInventory(u) && u.GetDeletionTimestamp() == nil && since[held] < o.d.from {
			wrong = append(wrong, fmt.Sprintf("with %s of %q: %s", bundle.Name(held), owner(u), w))
		}
	}
	return wrong
}
