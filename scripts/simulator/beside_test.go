package simulator

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"brine/bundle"
	"brine/bundle/plan"
	"brine/inventory"
	"brine/scripts/simulator/apiserver"
)

// What lies beside an inventory: a copy of it in another namespace, another inventory that a
// bundle takes for its own objects, and members that own others.

// restored is the namespace in which a backup of the others is restored.
const restored = "restored"

func isRestored(id bundle.ID) bool { return id.Namespace == restored || id.Name == restored }

// haveCopies: backups are restored in another namespace, and some commands are about the copy.
func haveCopies(*rand.Rand) func(*rand.Rand, *scene) {
	return func(r *rand.Rand, one *scene) {
		s := &one.step
		s.around.copied = r.IntN(2) == 0
		if ofCopy := r.IntN(2) == 0; ofCopy && !s.isAdministrative() && !s.secret && !s.saves && !s.carriesOut && s.command != "patch" {
			s.around.ofCopy, one.too = true, nil
		}
	}
}

// somebodyRestores copies what the namespaces of inventories and bundles hold.
func (w *World) somebodyRestores() {
	k, _ := w.server.Find(func(k apiserver.Kind) bool { return k.GroupKind() == bundle.NamespaceKind })
	if w.server.Get(bundle.NamespaceKind, "", restored) == nil {
		u := bundle.V1(bundle.ID{GroupKind: bundle.NamespaceKind, Name: restored}, map[string]any{})
		if from := w.server.Get(bundle.NamespaceKind, "", "app"); from != nil { // as Velero makes it
			u.SetLabels(from.GetLabels())
			u.SetAnnotations(from.GetAnnotations())
		}
		_, _ = w.server.Create(person, k, u, false)
	}
	for _, p := range slices.Clone(w.server.Places()) {
		if p.Namespace != home && p.Namespace != "app" || p.Resource != "configmaps" && p.Resource != "secrets" || p.Name == "kube-root-ca.crt" || !w.happens() {
			continue
		}
		u := w.server.Objects[p].DeepCopy()
		u.SetNamespace(restored)
		u.SetUID("")
		u.SetResourceVersion("")
		u.SetManagedFields(nil)
		u.SetFinalizers(nil)
		u.SetDeletionTimestamp(nil)
		if _, err := w.server.Create(person, w.server.KindAt(p), u, false); err == nil {
			w.note("%s restores %s %s/%s in %s", person, p.Resource, p.Namespace, p.Name, restored)
		}
	}
}

// isCopied says whether there is a copy of an inventory.
func (w *World) isCopied(name string) bool {
	u := w.server.Get(bundle.ConfigMapKind, restored, name)
	return u != nil && u.GetLabels()[inventory.Label] != ""
}

// copyInvariants are those of commands about the copy of an inventory.
var copyInvariants = []invariant{
	{"1 nothing is done with the copy of an inventory", func(o *oracle) (wrong []string) {
		for _, w := range o.own() {
			wrong = append(wrong, w.String())
		}
		return wrong
	}},
	{"12 every run ends in its time", (*oracle).endsInTime},
	{"13 no secret", (*oracle).noSecret},
}

// noCopies: a copy of a member becomes none, unless nothing at all was left of the inventory. One that
// is a member already may go to another inventory.
func (o *oracle) noCopies() (wrong []string) {
	stored, had := map[string]*unstructured.Unstructured{}, map[bundle.ID]bool{}
	for _, w := range o.server.Log[:o.d.from] {
		if w.Namespace == home && w.Kind == bundle.ConfigMapKind {
			stored[w.Name] = w.After
		}
	}
	for _, name := range inventories {
		maps.Copy(had, members(stored, name))
	}
	for _, name := range inventories {
		left := map[string]bool{}
		for _, w := range o.server.Log[:o.d.from] {
			if w.Namespace == home && named(name, w.Name) && w.Kind != bundle.LeaseKind {
				if left[w.Name] = true; w.After == nil || strings.HasSuffix(w.Name, "-brine-key") || strings.HasSuffix(w.Name, "-brine-plan") || w.Name == name && w.After.GetAnnotations()["applyset.kubernetes.io/additional-namespaces"] == "" {
					delete(left, w.Name)
				}
			}
		}
		for id := range o.listed(name) {
			if isRestored(id) && !had[id] && len(left) > 0 {
				wrong = append(wrong, fmt.Sprintf("inventory %s has %s", name, bundle.Name(id)))
			}
		}
	}
	return wrong
}

// nameParts: a bundle has, or wants absent, what the other inventory consists of.
func nameParts(*rand.Rand) func(*rand.Rand, *scene) {
	return func(r *rand.Rand, one *scene) {
		if s := &one.step; s.command == "apply" && !s.secret && !s.carriesOut && r.IntN(2) == 0 {
			other := map[string]string{"shop": "other", "other": "shop"}[s.inventory]
			s.around.part = []bundle.ID{
				{GroupKind: bundle.ConfigMapKind, Name: other}, {GroupKind: bundle.ConfigMapKind, Name: other + "-origins-1"},
				{GroupKind: bundle.SecretKind, Name: other + "-revision-1-0"}, {GroupKind: bundle.LeaseKind, Name: inventory.LockName(other)},
			}[r.IntN(4)]
			s.around.partAbsent = r.IntN(2) == 0
		}
	}
}

// withPart is the bundle of a step that has a part of another inventory, if that is there.
func (w *World) withPart(s step) step {
	id := s.around.part
	switch live := w.server.Get(id.GroupKind, home, id.Name); {
	case live == nil:
		s.around.part = bundle.ID{}
	case !s.around.partAbsent:
		s.text += fmt.Sprintf("---\napiVersion: %s\nkind: %s\nmetadata: {name: %s, namespace: %s}\n", live.GetAPIVersion(), live.GetKind(), id.Name, home)
	}
	return s
}

// absentPart is what the bundle of a step wants absent of another inventory.
func (s surroundings) absentPart() (all []*bundle.Absent) {
	if s.partAbsent && s.part.Name != "" {
		all = append(all, &bundle.Absent{ID: bundle.ID{GroupKind: s.part.GroupKind, Namespace: home, Name: s.part.Name}, GVK: s.part.GroupKind.WithVersion("v1"), Source: bundle.Source{File: "-", Line: 1}})
	}
	return all
}

// partsStay: what another inventory consists of is that one's alone.
func (o *oracle) partsStay() (wrong []string) {
	for _, w := range o.own() {
		if !o.goesBack() && w.Before != nil && keepsBooks(w.Namespace, w.Name) && !of(w, o.d.inventory) && owner(w.Before) != o.id() { // it may have become an object, when that one was destroyed
			wrong = append(wrong, w.String())
		}
	}
	return wrong
}

// ownMembers: operators make some members the owners of others.
func ownMembers(*rand.Rand) func(*rand.Rand, *scene) {
	return func(r *rand.Rand, one *scene) {
		one.step.around.owned = r.IntN(2) == 0
		if s := &one.step; !s.isAdministrative() && !s.secret && !s.carriesOut {
			s.options.cascade = []string{"", "", string(metav1.DeletePropagationOrphan), string(metav1.DeletePropagationForeground)}[r.IntN(4)]
		}
	}
}

// haveOperators: operators make members the owners of others, also during a run, and through what they make.
func haveOperators(history *rand.Rand) func(*rand.Rand, *scene) {
	own := ownMembers(nil)
	stuck := []string{"", "", "deployments web", "configmaps c", "configmaps d"}[history.IntN(5)] // what a webhook does not let go
	return func(r *rand.Rand, one *scene) {
		if own(r, one); stuck != "" {
			one.step.around.hooks = append(one.step.around.hooks, "refuse-delete "+stuck)
		}
		one.step.around.operated, one.step.around.through = true, r.IntN(2) == 0
		if r.IntN(3) == 0 && !one.step.calm && len(one.step.around.denied) == 0 {
			one.step.around.adopting = true
			one.mood = mood{name: "somebody acts", people: 0.1}
		}
	}
}

// somebodyMakesOwners has one object own another, of those that bundles have.
func (w *World) somebodyMakesOwners() {
	owners, owned := []string{"a", "d", "fixed"}, []string{"b", "c", "key", "data", "web"}
	if w.around.operated {
		owned = append(owned, "a") // which d may need
	}
	for _, p := range slices.Clone(w.server.Places()) {
		o := w.server.Get(bundle.ConfigMapKind, "app", owners[w.rand.IntN(len(owners))])
		if o == nil || p.Namespace != "app" || p.Name == o.GetName() || p.Name == "a" && o.GetName() == "d" || !slices.Contains(owned, p.Name) || w.rand.IntN(2) == 0 || !w.happens() {
			continue
		}
		w.note("%s has %s own %s %s", person, o.GetName(), p.Resource, p.Name)
		controls, keeps := w.rand.IntN(2) == 0, w.rand.IntN(3) == 0
		if w.around.through && w.rand.IntN(2) == 0 {
			o = w.somethingBetween(o)
		}
		w.edit(w.server.KindAt(p), w.server.Objects[p], func(u *unstructured.Unstructured) {
			u.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: o.GetAPIVersion(), Kind: o.GetKind(), Name: o.GetName(), UID: o.GetUID(), Controller: &controls}})
			if keeps {
				annotations := maps.Clone(u.GetAnnotations())
				if annotations == nil {
					annotations = map[string]string{}
				}
				annotations[bundle.OnRemove] = "keep"
				u.SetAnnotations(annotations)
			}
		})
	}
}

// somethingBetween is what an operator makes of an object, which owns it.
func (w *World) somethingBetween(owner *unstructured.Unstructured) *unstructured.Unstructured {
	k, _ := w.server.Find(func(k apiserver.Kind) bool { return k.Kind == "ConfigMap" })
	u := bundle.V1(bundle.ID{Namespace: owner.GetNamespace(), Name: "made-of-" + owner.GetName(), GroupKind: bundle.ConfigMapKind}, map[string]any{})
	u.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: owner.GetAPIVersion(), Kind: owner.GetKind(), Name: owner.GetName(), UID: owner.GetUID()}})
	_, _ = w.server.Create(person, k, u, false)
	if made := w.server.Get(bundle.ConfigMapKind, u.GetNamespace(), u.GetName()); made != nil {
		return made
	}
	return owner
}

// dependentsStay: what the bundle has, or an annotation keeps, or the command says that it skips, is not collected
// with an owner that the command deletes, nor with what such an owner owns. It is looked at once more when all
// is applied. An API server that is behind does not show who owns it.
func (o *oracle) dependentsStay() (wrong []string) {
	if o.behind {
		return nil
	}
	state, since, stored := map[bundle.ID]*unstructured.Unstructured{}, map[bundle.ID]int{}, map[string]*unstructured.Unstructured{}
	deleted, again := map[types.UID]int{}, map[types.UID]bool{} // until when it was known what they own; recreated
	for _, w := range o.server.Log[:o.d.from] {
		if w.Namespace == home && w.Kind == bundle.ConfigMapKind {
			stored[w.Name] = w.After
		}
	}
	member, skips, pruning := members(stored, o.d.inventory), map[bundle.ID]bool{}, o.d.from
	if o.d.result != nil {
		for _, object := range o.d.result.Objects {
			skips[object.ID()] = object.Action == plan.Skipped && member[object.ID()]
		}
	}
	for i, w := range o.server.Log[o.d.from:o.d.to] {
		if w.Actor != o.d.actor || o.bookkeeping(w) {
			continue
		}
		if w.Verb == "delete" && !o.createsAgain(w) {
			break
		}
		if w.After != nil && owner(w.After) == o.id() { // what is let go is pruned
			pruning = o.d.from + i
		}
	}
	stays := func(id bundle.ID, u *unstructured.Unstructured) bool {
		wanted := o.d.command != "destroy" && o.d.bundle != nil && o.d.result != nil && o.d.result.Rollback == nil && slices.ContainsFunc(o.d.bundle.Objects, func(object *bundle.Object) bool { return object.ID == id })
		kept := bundle.KeptBy(u) != "" && member[id] && owner(u) == o.id()
		return (wanted || kept || skips[id]) && u.GetDeletionTimestamp() == nil && slices.ContainsFunc(u.GetOwnerReferences(), func(ref metav1.OwnerReference) bool {
			known := deleted[ref.UID]
			return known > 0 && since[id] < o.d.from && (wanted || kept || !again[ref.UID]) || (wanted || kept) && since[id] < known
		})
	}
	for i, w := range o.server.Log[:o.d.to] {
		id := bundle.ID{GroupKind: w.Kind, Namespace: w.Namespace, Name: w.Name}
		if i >= o.d.from && w.Before != nil {
			leaves := w.After == nil || w.After.GetDeletionTimestamp() != nil && w.Before.GetDeletionTimestamp() == nil
			collected := leaves && w.Actor == "system" && (w.Verb == "collect" || w.Verb == "delete")
			if collected && stays(id, w.Before) {
				wrong = append(wrong, "it stays, and goes with its owner: "+w.String())
			}
			for _, ref := range w.Before.GetOwnerReferences() {
				if collected && deleted[ref.UID] > 0 {
					deleted[w.Before.GetUID()], again[w.Before.GetUID()] = deleted[ref.UID], again[ref.UID]
				}
			}
			if leaves && w.Actor == o.d.actor {
				if deleted[w.Before.GetUID()] = pruning; o.createsAgain(w) { // its dependents go with it, also before pruning begins
					deleted[w.Before.GetUID()], again[w.Before.GetUID()] = o.d.from, true
				}
			}
			leaves = w.Actor == o.d.actor && o.alone && owner(w.Before) == o.id() && owner(w.After) == "" && w.After != nil && bundle.KeptBy(w.After) != "" && since[id] < o.d.from
			for held, u := range state {
				if leaves && u != nil && !o.leavesToo(held) && member[held] && owner(u) == o.id() && u.GetDeletionTimestamp() == nil && slices.ContainsFunc(w.After.GetOwnerReferences(), func(ref metav1.OwnerReference) bool { return ref.UID == u.GetUID() }) {
					wrong = append(wrong, fmt.Sprintf("it leaves the inventory, and %s, which owns it, does not: %s", bundle.Name(held), w))
				}
				if w.After == nil && u != nil && u.GetNamespace() == w.Namespace && deleted[w.Before.GetUID()] > 0 && slices.ContainsFunc(u.GetOwnerReferences(), func(ref metav1.OwnerReference) bool { return ref.UID == w.Before.GetUID() }) && stays(held, u) {
					wrong = append(wrong, fmt.Sprintf("%s stays, and its owner goes: %s", bundle.Name(held), w))
				}
			}
		}
		if state[id] = w.After; w.Actor != o.d.actor {
			since[id] = i
		}
	}
	return wrong
}

// leavesToo says whether the command has let go of an object by its end, or deleted it.
func (o *oracle) leavesToo(id bundle.ID) bool {
	return slices.ContainsFunc(o.server.Log[o.d.from:o.d.to], func(w *apiserver.Write) bool {
		return w.Actor == o.d.actor && w.Kind == id.GroupKind && w.Namespace == id.Namespace && w.Name == id.Name && (w.Verb == "delete" || owner(w.After) == "")
	})
}

// isCollected says whether an object went, before a write of the command, with an owner that
// somebody else deletes.
func (o *oracle) isCollected(id bundle.ID, before int) bool {
	deleted := bundle.SetOf(bundle.Where(o.server.Log[o.d.from:before], func(w *apiserver.Write) bool { return w.Actor == o.d.actor && w.Before != nil && w.Verb == "delete" }),
		func(w *apiserver.Write) types.UID { return w.Before.GetUID() })
	return slices.ContainsFunc(o.server.Log[o.d.from:before], func(w *apiserver.Write) bool {
		return w.Verb == "collect" && w.Kind == id.GroupKind && w.Namespace == id.Namespace && w.Name == id.Name &&
			!slices.ContainsFunc(w.Before.GetOwnerReferences(), func(ref metav1.OwnerReference) bool { return deleted.Has(ref.UID) })
	})
}

// applied is an apply that a rollback may undo, or go back to.
type applied struct {
	digest string // of its bundle
	good   bool   // and kept by the history
	back   bool   // by a rollback, which the next one does not undo
	number int    // of its revision, 0: none
	to     int    // the revision that it went back to: what came after that is undone
}

// noteApplied notes what a step applied, killed or not, and judges where a rollback without a
// number goes: to the last good apply before the last one, with another bundle. Of two commands
// at once either may have come first; and of people who delete an inventory, or keep little of
// its history, nothing is known.
func (f *Finding) noteApplied(w *World, d *done, alone bool) {
	known := w.applies[d.inventory]
	saved := func(number int) bool {
		return slices.ContainsFunc((&oracle{server: w.server, d: d}).own(), func(write *apiserver.Write) bool {
			return write.Name == inventory.RevisionName(d.inventory, number, 0)
		})
	}
	switch {
	case !alone, d.isAdministrative(), d.command == "destroy", d.damaged, d.hasUnplaced(), // revisions have it without its namespace
		d.options.history > 0, w.server.Get(bundle.ConfigMapKind, home, d.inventory) == nil:
		delete(w.applies, d.inventory)
		if d.into != "" {
			delete(w.applies, d.into)
		}
	case d.command == "apply" && d.bundle != nil:
		o := &oracle{server: w.server, d: d}
		wrote := slices.ContainsFunc(o.own(), func(write *apiserver.Write) bool { // or it has begun, and says so
			return !o.bookkeeping(write) && !makesHome(write) || write.Name == d.inventory && write.Before != nil && begunIn(write.After) != "" && begunIn(write.After) != begunIn(write.Before)
		})
		number := 0
		if last := w.lastRevision(d.inventory); !d.process.dead && d.result != nil {
			number = d.result.Revision
		} else if saved(last.Number) { // it was killed after its very last write
			number = last.Number
		} else if saved(last.Number + 1) { // it was killed before that: later runs make a revision of it
			delete(w.applies, d.inventory)
			return
		}
		digest, kept := d.bundle.ContentDigest(), number > 0
		ended := number
		if d.result != nil && d.result.Rollback != nil {
			ended = cmp.Or(d.result.Rollback.Revision, number)
		}
		if kept && saved(number) && w.lastRevision(d.inventory).Number != ended { // the inventory could not be written
			delete(w.applies, d.inventory)
			return
		}
		if d.only != nil && kept { // it keeps the last bundle, with some objects of this one
			digest = w.contentOf(d.inventory, number)
		}
		// What a rollback has applied is the state before and after it: it is no revision of its own.
		same := kept && len(known) > 0 && known[len(known)-1].back && known[len(known)-1].digest == digest && !saved(number)
		if (wrote || kept && saved(number)) && !same { // else nothing was changed, as by a part of what is there
			w.applies[d.inventory] = append(known, applied{digest: digest, good: kept && d.only == nil && w.isGood(d.inventory, number), number: number})
			if d.result != nil && d.result.Rollback != nil {
				back := w.revision(d.inventory, d.result.Rollback.Revision)
				if good, found := lastGood(known); found && wentBackTo(d.result) > 0 && w.contentOf(d.inventory, wentBackTo(d.result)) != good.digest {
					f.violate("2 a rollback undoes the last apply", fmt.Sprintf("%s failed, and goes to revision %d, which is not the last good one", d.actor, wentBackTo(d.result)))
				}
				w.applies[d.inventory] = append(w.applies[d.inventory], applied{back: true, number: back.Number, to: back.RollbackTo})
			}
		}
	case d.command == "rollback" && d.bundle != nil:
		last := len(known) - 1
		for last >= 0 && known[last].back {
			last--
		}
		for one := range standing(known[:max(last, 0)]) {
			if d.target == 0 || !one.good || one.digest == known[last].digest {
				continue
			}
			if d.content != one.digest {
				f.violate("2 a rollback undoes the last apply", fmt.Sprintf("%s goes to revision %d, which is not the last good one before that", d.actor, d.target))
			}
			break
		}
		number := 0
		switch last := w.lastRevision(d.inventory).Number; {
		case !d.process.dead && d.result != nil && d.result.Revision > 0:
			number = d.result.Revision
		case d.process.dead || d.result != nil: // or the inventory was written, and the answer lost; it was killed after its very last write, or before the inventory named its revision
			for n := last; n <= last+2; n++ { // the apply that it undoes may have been killed
				if saved(n) {
					number = n
				}
			}
		}
		if number > 0 {
			w.applies[d.inventory] = append(known, applied{digest: d.bundle.ContentDigest(), good: w.isGood(d.inventory, number), back: true, number: number, to: w.revision(d.inventory, number).RollbackTo})
		}
	}
}

// lastGood is where a run that fails goes back to.
func lastGood(known []applied) (applied, bool) {
	for one := range standing(known) {
		if one.good {
			return one, true
		}
	}
	return applied{}, false
}

// standing are the applies that no later rollback undid, the newest first.
func standing(known []applied) iter.Seq[applied] {
	return func(yield func(applied) bool) {
		undone := math.MaxInt
		for _, one := range slices.Backward(known) {
			if one.number > undone || one.number == 0 && undone < math.MaxInt && !one.back {
				continue
			}
			if one.to > 0 {
				undone = min(undone, one.to)
			}
			if !yield(one) {
				return
			}
		}
	}
}

// isGood says whether a revision is kept, is the last one that the inventory names, and is of a
// run in which nothing went wrong.
func (w *World) isGood(name string, number int) bool {
	return w.lastRevision(name).Number == number && w.revision(name, number).Good()
}

// revision is what a kept revision says.
func (w *World) revision(name string, number int) inventory.Revision {
	return revisionOf(w.server, name, number)
}

func revisionOf(server *apiserver.Server, name string, number int) (r inventory.Revision) {
	if u := server.Get(bundle.SecretKind, home, inventory.RevisionName(name, number, 0)); u != nil {
		_ = json.Unmarshal([]byte(u.GetAnnotations()["brine.dev/revision-info"]), &r)
	}
	return r
}

// contentOf is the digest of what a kept revision holds, in one part.
func (w *World) contentOf(name string, number int) string {
	content, err := contentOfRevision(w.server, name, number)
	if err != nil {
		return err.Error()
	}
	return content.Bundle.ContentDigest()
}

func contentOfRevision(server *apiserver.Server, name string, number int) (*inventory.Content, error) {
	u := server.Get(bundle.SecretKind, home, inventory.RevisionName(name, number, 0))
	if u == nil {
		return nil, fmt.Errorf("there is no revision %d", number)
	}
	packed, _ := base64.StdEncoding.DecodeString(bundle.At[string](u.Object, "data", "bundle.json.zst"))
	sum, _ := base64.StdEncoding.DecodeString(bundle.At[string](u.Object, "data", "sha256"))
	return inventory.DecodeContent(packed, string(sum), name)
}

// lastRevision is what an inventory object says of the last revision.
func (w *World) lastRevision(name string) (r inventory.Revision) {
	if head := w.server.Get(bundle.ConfigMapKind, home, name); head != nil {
		_ = json.Unmarshal([]byte(head.GetAnnotations()["brine.dev/last-revision"]), &r)
	}
	return r
}

func begunIn(head *unstructured.Unstructured) string {
	if head == nil {
		return ""
	}
	return head.GetAnnotations()["brine.dev/begun"]
}
