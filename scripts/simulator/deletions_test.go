package simulator

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"brine/bundle"
	"brine/bundle/plan"
	"brine/inventory"
	"brine/scripts/simulator/apiserver"
)

// The invariants about what is deleted, and when.

func (o *oracle) onlyOurs() (wrong []string) {
	given := map[types.UID]string{} // back to the inventory that they came from
	stored, listed := map[string]*unstructured.Unstructured{}, o.listedAt(o.d.from)
	for i, w := range o.server.Log[:o.d.to] {
		if w.Kind == bundle.ConfigMapKind && w.Namespace == home {
			stored[w.Name] = w.After
			if i >= o.d.from {
				maps.Copy(listed, members(stored, o.d.inventory))
			}
		}
		if i < o.d.from || w.Actor != o.d.actor {
			continue
		}
		if w.Before == nil || o.bookkeeping(w) {
			continue
		}
		by := owner(w.Before)
		if by == o.id() && o.goesBack() && owner(w.After) != "" {
			given[w.Before.GetUID()] = owner(w.After)
		}
		deleted := w.After == nil || w.After.GetDeletionTimestamp() != nil && w.Before.GetDeletionTimestamp() == nil
		switch {
		case o.isRelease(w), isRewritten(w):
		case deleted && by == "" && o.d.command == "destroy" && w.Kind == bundle.NamespaceKind && w.Name == home && w.Before.GetAnnotations()[inventory.MadeAnnotation] != "":
		case deleted && by == o.id() && bundle.KeptBy(w.Before) != "":
			wrong = append(wrong, "an annotation keeps it: "+w.String())
		case deleted && by == o.id() && !listed[bundle.ID{GroupKind: w.Kind, Namespace: w.Namespace, Name: w.Name}] && !o.d.options.wants(w.Kind, w.Namespace, w.Name) && (w.Kind != bundle.NamespaceKind || w.Name != home):
			wrong = append(wrong, "it is no member: "+w.String())
		case by == o.id(), by != "" && given[w.Before.GetUID()] == by && (!deleted || o.createsAgain(w)):
		case deleted && o.goesBack() && (o.d.policy == plan.AdoptAll || by == "" && o.d.policy == plan.AdoptIfNoInventory) && o.createsAgain(w):
		case deleted && o.recreates(w) && (o.d.policy == plan.AdoptAll || by == "" && o.d.policy == plan.AdoptIfNoInventory):
		case deleted && by == "" && o.d.command == "apply" && o.d.options.wants(w.Kind, w.Namespace, w.Name):
		case deleted:
			wrong = append(wrong, fmt.Sprintf("deleted an object of %q: %s", by, w))
		case o.d.policy == plan.AdoptAll, by == "" && o.d.policy == plan.AdoptIfNoInventory:
		case ours(w.Before, o.d.inventory) && owner(w.After) == by && !ours(w.After, o.d.inventory): // the rest of our mark is taken off
		default:
			wrong = append(wrong, fmt.Sprintf("changed an object of %q: %s", by, w))
		}
	}
	return wrong
}

// metadataStays: no change of an object takes a finalizer, an owner or a person's annotation.
func (o *oracle) metadataStays() (wrong []string) {
	for _, w := range o.own() {
		if w.Before == nil || w.After == nil || w.Before.GetUID() != w.After.GetUID() || w.Verb == "delete" || o.bookkeeping(w) {
			continue
		}
		set := func(u *unstructured.Unstructured) string {
			return fmt.Sprint(u.GetFinalizers(), bundle.At[[]any](u.Object, "metadata", "ownerReferences"), u.GetAnnotations()["example.com/seen"])
		}
		if was, is := set(w.Before), set(w.After); was != is {
			wrong = append(wrong, fmt.Sprintf("%s becomes %s: %s", was, is, w))
		}
	}
	return wrong
}

// recreates says whether a deletion is of an object that the bundle has, and that the user lets
// brine recreate.
func (o *oracle) recreates(w *apiserver.Write) bool {
	return o.d.bundle != nil && slices.ContainsFunc(o.d.bundle.Objects, func(object *bundle.Object) bool {
		return object.ID == bundle.ID{GroupKind: w.Kind, Namespace: w.Namespace, Name: w.Name} &&
			(o.d.options.recreate != nil || object.Content.GetAnnotations()[bundle.OnImmutable] != "" || object.Content.GetAnnotations()[bundle.Run] != "")
	})
}

// createsAgain says whether what is deleted comes back at once: the other inventory's bundle
// lets brine recreate what is given back.
func (o *oracle) createsAgain(w *apiserver.Write) bool {
	return slices.ContainsFunc(o.own(), func(later *apiserver.Write) bool {
		return later.Seq > w.Seq && later.Before == nil && later.Kind == w.Kind && later.Namespace == w.Namespace && later.Name == w.Name
	})
}

// undoesOnly: a rollback deletes no object that was there before brine, or that somebody
// else created, and gives none to an inventory that never had it. The log knows who created
// each UID, and whose it was, also before somebody recreated it.
func (o *oracle) undoesOnly() (wrong []string) {
	if o.d.command != "rollback" && o.d.back == 0 {
		return nil
	}
	which, created, had, madeFor := identities{}, map[types.UID]types.UID{}, map[bundle.ID][]types.UID{}, map[types.UID]string{}
	creating := map[bundle.ID]bool{} // by a run that did not end: what a person restores then, with all marks, is taken for that
	for i, w := range o.server.Log[:o.d.to] {
		which.follow(w)
		id := bundle.ID{GroupKind: w.Kind, Namespace: w.Namespace, Name: w.Name}
		uid, its := uidOf(w), which[owner(w.After)]
		if w.Kind == bundle.ConfigMapKind && w.Namespace == home && w.Name == o.d.inventory && w.After != nil {
			texts, _, _ := unstructured.NestedStringMap(w.After.Object, "data")
			for key, text := range texts {
				if member, err := inventory.ParseMemberKey(key); err == nil {
					creating[member] = strings.Contains(text, `"creating":`)
				}
			}
		}
		if w.Before == nil && (w.Actor != person || creating[id] && owner(w.After) == o.id()) {
			created[uid] = its
		}
		deleted := w.Before != nil && (w.After == nil || w.After.GetDeletionTimestamp() != nil && w.Before.GetDeletionTimestamp() == nil)
		ours := which[o.id()] != "" && created[uid] == which[o.id()]
		if i >= o.d.back && w.Actor == o.d.actor && w.Verb == "delete" && deleted && !o.bookkeeping(w) && !ours && !o.createsAgain(w) {
			wrong = append(wrong, "brine did not create it: "+w.String())
		}
		if i >= o.d.back && w.Actor == o.d.actor && owner(w.Before) == o.id() && owner(w.After) != "" && owner(w.After) != o.id() && !slices.Contains(had[id], its) && owner(w.After) != madeFor[uid] {
			wrong = append(wrong, "given to an inventory that never had it: "+w.String())
		}
		if its != "" {
			had[id] = append(had[id], its)
		}
		if w.Before == nil && w.After.GetAnnotations()[inventory.MadeAnnotation] != "" { // before there is an inventory
			madeFor[uid] = inventory.DefaultID(home, w.After.GetAnnotations()[inventory.MadeAnnotation])
		}
	}
	return wrong
}

// identities are, by the ID of an inventory, the uid of the ConfigMap with which it began. An
// inventory that was renamed is the same; one that brine makes after it had deleted one of that
// name is another.
type identities map[string]types.UID

func (all identities) follow(w *apiserver.Write) {
	if w.Kind != bundle.ConfigMapKind || w.Namespace != home || !slices.Contains(inventories, w.Name) {
		return
	}
	id := inventory.DefaultID(home, w.Name)
	switch {
	case w.After == nil && w.Actor != person: // brine repairs what a person deletes
		delete(all, id)
	case w.After == nil:
	case w.Before == nil && w.After.GetAnnotations()["brine.dev/renamed-from"] != "":
		name, _, _ := strings.Cut(w.After.GetAnnotations()["brine.dev/renamed-from"], " ")
		all[id] = all[inventory.DefaultID(home, strings.TrimPrefix(name, home+"/"))]
	case all[id] == "":
		all[id] = w.After.GetUID()
	}
}

func uidOf(w *apiserver.Write) types.UID {
	if w.After != nil {
		return w.After.GetUID()
	}
	return w.Before.GetUID()
}

// onlyEmptied: a Namespace or CRD is not deleted while somebody has something in it, or of
// it, since before the command began. What comes between its last look and the DELETE,
// within one request, is not brine's to see.
func (o *oracle) onlyEmptied() (wrong []string) {
	if o.d.options.forceNamespaces {
		return nil
	}
	state := map[bundle.ID]*unstructured.Unstructured{}
	since := map[types.UID]int{} // whose an object is now
	for i, w := range o.server.Log[:o.d.to] {
		id := bundle.ID{GroupKind: w.Kind, Namespace: w.Namespace, Name: w.Name}
		if w.After != nil && (w.Before == nil || owner(w.Before) != owner(w.After)) {
			since[w.After.GetUID()] = i
		}
		holder := bundle.HoldsObjects(w.Kind) && w.Verb == "delete" && w.Before.GetDeletionTimestamp() == nil
		if holder && i >= o.d.from && w.Actor == o.d.actor {
			defines, _, _ := unstructured.NestedString(w.Before.Object, "spec", "group")
			for held, u := range state {
				in := w.Kind == bundle.NamespaceKind && held.Namespace == w.Name || w.Kind != bundle.NamespaceKind && held.GroupKind.Group == defines
				if in && len(u.GetOwnerReferences()) == 0 && owner(u) != o.id() && u.GetName() != "kube-root-ca.crt" && (held.Namespace != home || !named(o.d.inventory, held.Name)) && held.GroupKind.Kind != "ServiceAccount" && held.GroupKind != bundle.LeaseKind && u.GetDeletionTimestamp() == nil && (since[u.GetUID()] < o.d.from || o.d.process.faulty == 0 && w.Time.Sub(o.server.Log[since[u.GetUID()]].Time) > 5*time.Second) {
					wrong = append(wrong, fmt.Sprintf("with %s, which is not ours: %s", bundle.Name(held), w))
				}
			}
		}
		if state[id] = w.After; w.After == nil {
			delete(state, id)
		}
	}
	return wrong
}

// inUse: what the bundle has objects in is not deleted.
func (o *oracle) inUse() (wrong []string) {
	if o.d.command == "destroy" || o.d.bundle == nil {
		return nil
	}
	for _, w := range o.forward() {
		for _, object := range o.d.bundle.Objects {
			if w.Kind == bundle.NamespaceKind && w.Verb == "delete" && object.ID.Namespace == w.Name {
				wrong = append(wrong, fmt.Sprintf("the bundle has %s: %s", bundle.Name(object.ID), w))
			}
		}
	}
	return wrong
}

// order: what another object needs is there before it, and goes after it; it may have gone with its owner. A
// partial run deletes nothing.
func (o *oracle) order() (wrong []string) {
	state, collected := map[bundle.ID]*unstructured.Unstructured{}, map[bundle.ID]bool{}
	for i, w := range o.server.Log[:o.d.to] {
		id := bundle.ID{GroupKind: w.Kind, Namespace: w.Namespace, Name: w.Name}
		own := i >= o.d.from && w.Actor == o.d.actor && !o.bookkeeping(w)
		collected[id] = i >= o.d.from && w.Verb == "collect" && len(w.Before.GetOwnerReferences()) > 0
		said := w.After // an annotation of an earlier bundle may be left, where another field manager has it
		if o.d.bundle != nil && o.d.result != nil && o.d.result.Rollback == nil {
			if i := slices.IndexFunc(o.d.bundle.Objects, func(object *bundle.Object) bool { return object.ID == id }); i >= 0 {
				said = o.d.bundle.Objects[i].Content
			}
		}
		if need, ok := needOf(said); ok && own && w.Verb != "delete" && owner(w.After) == o.id() && state[need] == nil && !collected[need] && o.alone {
			wrong = append(wrong, fmt.Sprintf("%s is not there yet: %s", bundle.Name(need), w))
		}
		if own && w.Verb == "delete" {
			if o.d.only != nil && !o.recreates(w) && (!o.goesBack() || !o.createsAgain(w)) {
				wrong = append(wrong, "deleted by a partial run: "+w.String())
			}
			for other, u := range state {
				if need, ok := needOf(u); ok && need == id && owner(u) == o.id() && other.Namespace != restored && u.GetDeletionTimestamp() == nil && o.alone && !o.isLeftAlone(other) {
					wrong = append(wrong, fmt.Sprintf("%s still needs it: %s", bundle.Name(other), w))
				}
			}
		}
		state[id] = w.After
	}
	return wrong
}

// needOf reads depends-on as manifests writes it.
func needOf(u *unstructured.Unstructured) (bundle.ID, bool) {
	if u == nil {
		return bundle.ID{}, false
	}
	parts := strings.Split(u.GetAnnotations()["config.kubernetes.io/depends-on"], "/")
	if len(parts) != 5 {
		return bundle.ID{}, false
	}
	return bundle.ID{GroupKind: bundle.ConfigMapKind, Namespace: parts[2], Name: parts[4]}, true
}

// pruneLast: an apply deletes nothing before all that it sent is there and ready.
func (o *oracle) pruneLast() (wrong []string) {
	if o.d.command == "destroy" || o.d.bundle == nil {
		return nil
	}
	wanted, short := map[bundle.ID]bool{}, map[bundle.ID]bool{}
	for _, object := range o.d.bundle.Objects {
		wanted[object.ID], short[object.ID] = true, expires(object.Content)
	}
	state := map[bundle.ID]*unstructured.Unstructured{}
	for i, w := range o.server.Log[:cmp.Or(o.d.back, o.d.to)] {
		id := bundle.ID{GroupKind: w.Kind, Namespace: w.Namespace, Name: w.Name}
		pruned := i >= o.d.from && w.Actor == o.d.actor && w.Verb == "delete" && !o.bookkeeping(w) && !wanted[id] && (w.Kind != gate.GroupKind || len(o.d.options.pruneFirst) == 0)
		for id := range wanted {
			if u := state[id]; pruned && !o.others && (u == nil && !short[id] && !o.isCollected(id, i) || u != nil && !isReady(u) && !o.d.options.waitApplied && !o.d.options.pruneAnyway && o.says(id, bundle.Wait) == "") {
				wrong = append(wrong, fmt.Sprintf("pruned while %s is not ready: %s", bundle.Name(id), w))
			}
		}
		state[id] = w.After
	}
	return wrong
}

// keeps: flags that prune nothing, or little, hold; so does what may be recreated.
func (o *oracle) keeps() (wrong []string) {
	if o.d.command != "apply" || o.d.bundle == nil {
		return nil
	}
	wanted, pruned, most := map[bundle.ID]*bundle.Object{}, 0, 1<<30
	for _, object := range o.d.bundle.Objects {
		wanted[object.ID] = object
	}
	number, share := strings.CutSuffix(o.d.options.maxPrune, "%")
	if n, err := strconv.Atoi(number); err == nil {
		if most = n; share {
			locked := slices.IndexFunc(o.server.Log, func(w *apiserver.Write) bool { return w.Actor == o.d.actor && w.Kind == bundle.LeaseKind })
			most = n * len(o.listedAt(max(locked, o.d.from))) / 100
		}
	}
	for _, w := range o.forward() {
		if w.Verb != "delete" || o.bookkeeping(w) {
			continue
		}
		object := wanted[bundle.ID{GroupKind: w.Kind, Namespace: w.Namespace, Name: w.Name}]
		if object == nil {
			pruned++
		}
		switch {
		case object != nil && !o.recreates(w):
			wrong = append(wrong, "recreated, and nothing allows it: "+w.String())
		case object == nil && (o.d.options.noPrune || o.d.options.skipInvalid):
			wrong = append(wrong, "pruned, though nothing is to be: "+w.String())
		case pruned > most:
			wrong = append(wrong, fmt.Sprintf("more than %d are pruned: %s", most, w))
		}
	}
	return wrong
}
