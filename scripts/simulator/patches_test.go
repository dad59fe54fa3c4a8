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

// deleteByPatch: some steps, and what comes after some, are deletions of single objects.
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
// the command began that is in one. Each of them has its mark.
func (o *oracle) patchesOnly() (wrong []string) {
	if o.d.command != "patch" {
		return nil
	}
	state, since := map[bundle.ID]*unstructured.Unstructured{}, map[bundle.ID]int{}
	for i, w := range o.server.Log[:o.d.to] {
		id := bundle.ID{GroupKind: w.Kind, Namespace: w.Namespace, Name: w.Name}
		if w.Before == nil || w.After == nil || owner(w.Before) != owner(w.After) {
			since[id] = i
		}
		if i >= o.d.from && w.Actor == o.d.actor {
			wrong = append(wrong, o.patched(w, state, since)...)
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

func (o *oracle) patched(w *apiserver.Write, state map[bundle.ID]*unstructured.Unstructured, since map[bundle.ID]int) (wrong []string) {
	named := func(object *bundle.Object) bool {
		return object.ID.GroupKind == w.Kind && object.ID.Name == w.Name
	}
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
