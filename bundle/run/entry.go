package run

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"

	"brine/bundle"
	"brine/bundle/apply"
	"brine/bundle/plan"
	"brine/bundle/redact"
	"brine/bundle/report"
	"brine/inventory"
	"brine/inventory/store"
)

// What a run enters in its inventory is decided here, without a request: before its first
// object (beginningOf), and once the plan was carried out (entryOf). persist.go writes it.

// part is a part of the inventory, written by itself.
type part int

const (
	origins part = iota
	fingerprints
	key
	past     // is read: what the history says that the inventory does not
	revision // the bundle, in the history
	members  // who enters, who leaves, their statuses: the inventory object, last of all
	trim     // old revisions go
)

// entry is what a run enters in its inventory.
type entry struct {
	enters       []bundle.ID                    // new members
	gone         []bundle.ID                    // members that leave
	statuses     map[bundle.ID]inventory.Status // of members that stay
	origins      map[bundle.ID]inventory.Origin
	fingerprints map[bundle.ID]inventory.Fingerprint
	revision     inventory.Revision // Number is 0 unless the last revision says the same; Digest is "" where the history says nothing of the run
	content      *inventory.Content // which the revision keeps
	number       int                // of the run
	begins       inventory.Revision // what the inventory says of an apply until a revision does; Number is 0 where nothing is to be said
	// order has the parts that are written, one slice after the other: who is a member, and
	// what is known of it, is on the cluster before anything depends on it.
	order [][]part
}

// beginningOf is what is written before the first object. Then a run that is killed leaves
// no object that is not a member, none that was there before and of which that is not known,
// no memory of a completed Job's earlier spec, and no history that does not know of it.
func beginningOf(o *Options, in intent) entry {
	e := entry{begins: beginsOf(o, in, time.Now()), enters: in.plan.Add, origins: originsBefore(in), number: in.number, order: [][]part{{origins}, {members, key, past}}}
	if left, found := in.plan.Forgotten(in.inventory.Fingerprints); found {
		e.fingerprints, e.order[1] = left, append(e.order[1], fingerprints)
	}
	return e
}

// beginsOf is what is said of an apply before its first object, if it is not of the last revision's
// bundle: a rollback undoes it, and not the one before.
func beginsOf(o *Options, in intent, now time.Time) inventory.Revision {
	digest, last, begun := digestOf(in.bundle, in.inventory.Key), in.inventory.Last(), in.inventory.Begun()
	said := in.isOf(last) || digest == begun.Digest && begun.Number > last.Number
	if o.Mode != Apply || o.givesBack || in.plan.ChangesNothing() || said {
		return inventory.Revision{}
	}
	return inventory.Revision{
		Number: in.number, Digest: digest, Time: now.UTC().Truncate(time.Second), Who: o.Who, JobID: o.JobID, Result: inventory.Interrupted,
		Objects: len(in.bundle.Objects), Version: o.Version, Command: o.Command,
	}
}

// ending is what an entry follows from once the plan was carried out.
type ending struct {
	intent
	mode      Mode
	steps     []apply.Outcome
	revision  inventory.Revision
	content   *inventory.Content
	namespace *unstructured.Unstructured // the inventory's, if this run made it
}

// entryOf are the members that leave the inventory, the statuses, the origins and the
// fingerprints of the others.
func entryOf(end ending) entry {
	e := entry{
		gone: slices.Clone(end.plan.Forget), statuses: map[bundle.ID]inventory.Status{}, fingerprints: map[bundle.ID]inventory.Fingerprint{},
		revision: end.revision, content: end.content,
	}
	switch {
	case end.mode == Destroy:
		e.order = [][]part{{members}, {fingerprints, origins}} // there may be nothing left to hold them
	case e.revision.Digest == "":
		e.order = [][]part{{fingerprints, origins}, {members}}
	default:
		e.order = [][]part{{revision, fingerprints, origins}, {members}, {trim}}
	}
	if end.chosen != nil { // those of the other members still hold
		maps.Copy(e.fingerprints, end.inventory.Fingerprints)
	}
	for i := range end.steps {
		o := &end.steps[i]
		switch {
		case o.Result.Action == plan.Pruned && o.Done && end.mode == Destroy && o.ID == (bundle.ID{GroupKind: bundle.NamespaceKind, Name: end.inventory.Namespace}):
			return entry{} // the inventory went with it: what has its name by now is another run's
		case o.Deletes() && o.Done:
			e.gone = append(e.gone, o.ID)
		case o.Deletes():
			if o.Result.Action != plan.Skipped {
				e.statuses[o.ID] = inventory.Status{Strategy: "Delete", Actuation: "Succeeded", Reconcile: "Timeout"}
			}
		case o.Blocked != "", o.ID.Name == "":
		case end.neverOwned(o):
			e.gone = append(e.gone, o.ID)
		default:
			e.mark(o, &end.inventory.Inventory)
		}
	}
	deleted := bundle.SetOf(bundle.Where(end.steps, func(o apply.Outcome) bool { return o.Deletes() && o.Action == plan.Pruned }), func(o apply.Outcome) bundle.ID { return o.ID })
	for id, f := range end.inventory.Fingerprints { // what has completed stays known where the run did not come to it
		if now := e.fingerprints[id]; f.Completed != "" && now.Completed == "" && end.mode != Destroy && !deleted.Has(id) && !slices.Contains(e.gone, id) {
			now.Completed, now.CompletedIn = f.Completed, f.CompletedIn
			e.fingerprints[id] = now
		}
	}
	e.origins = originsAfter(end, e.gone)
	return e
}

func (e *entry) mark(o *apply.Outcome, inv *inventory.Inventory) {
	e.statuses[o.ID] = statusOf(o.Result, inv.Members[o.ID])
	if o.UID == "" && o.Action != plan.Unchanged {
		e.statuses[o.ID] = stillCreating(e.statuses[o.ID], inv.Members[o.ID])
	}
	f, known := o.Fingerprint, o.HasFingerprint
	if o.Action == plan.Unchanged {
		f, known = inv.Fingerprints[o.ID]
	}
	if o.SeenCompleted {
		f, known = o.WithCompletion(f), true
	}
	if delete(e.fingerprints, o.ID); known {
		e.fingerprints[o.ID] = f
	}
}

// neverOwned says whether an object was added to the inventory before it was
// applied, and then was not: refused for good, or never sent. As in cli-utils it
// stays only if it was a member before.
func (end *ending) neverOwned(o *apply.Outcome) bool {
	if o.Member || o.Unread != nil || end.namespace != nil && o.ID == (bundle.ID{GroupKind: bundle.NamespaceKind, Name: end.namespace.GetName()}) {
		return false
	}
	for _, live := range []*unstructured.Unstructured{o.Live, o.Terminating} {
		if live != nil && live.GetAnnotations()[inventory.OwningInventory] == end.inventory.ID {
			return false // its inventory was lost
		}
	}
	return o.Result.Action == plan.Skipped || o.Result.Action == plan.Failed && o.Refused && !o.Uncertain
}

// isIn says whether the inventory says all of it already, in whatever format.
func (e *entry) isIn(inv *store.Inventory) bool {
	ends := e.revision.Digest != "" && e.revision.Ends() && inv.Begun().Number > 0
	return len(e.gone) == 0 && !ends && (e.revision.Digest == "" || e.revision.Number > 0) && inv.Holds(e.statuses, e.origins, e.fingerprints)
}

// withoutOrigins is what is entered where the origins could not be: the next run records
// what this one created.
func (e *entry) withoutOrigins(before map[bundle.ID]inventory.Status) {
	for id, status := range e.statuses {
		e.statuses[id] = stillCreating(status, before[id])
	}
}

func (e *entry) leavesNone(all map[bundle.ID]inventory.Status) bool {
	left := len(all)
	for _, id := range e.gone {
		if _, ok := all[id]; ok {
			left--
		}
	}
	return left == 0
}

// keepsRevision says whether the history keeps what the run applied. It always keeps a rollback that somebody
// asked for: nothing else says what was undone, and it holds what the history has already.
func (o *Options) keepsRevision() bool {
	return o.HistoryLimit > 0 || o.Mode == Rollback && !o.automatic
}

// revisionOf is what the history is to say of a run that has ended, whose revision keeps
// content.
func revisionOf(o *Options, in intent, content *inventory.Content, objects []*report.ObjectResult, now time.Time) inventory.Revision {
	if content == nil || !o.keepsRevision() || len(in.bundle.Objects)+len(in.bundle.Absent) == 0 {
		return inventory.Revision{}
	}
	r := inventory.Revision{
		Digest: digestOf(in.bundle, in.inventory.Key), Time: now.UTC().Truncate(time.Second), Who: o.Who, JobID: o.JobID,
		Result: "applied", Objects: len(in.bundle.Objects), Version: o.Version,
		Command: o.Command, RollbackTo: o.Revision, Rendered: content.Bundle.RenderedFrom(),
	}
	last := in.inventory.Last()
	if in.isOf(last) {
		r.Digest = last.Digest // maybe a plain one
	}
	for _, object := range objects {
		switch {
		case object.Action == plan.Failed || object.Action == plan.Skipped && object.Source.File != "":
			r.Result = "failed"
		case object.Ready != report.StateReady && object.Ready != "" && r.Result == "applied":
			r.Result = inventory.NotReady
		}
	}
	if in.chosen != nil {
		r.Objects = len(content.Bundle.Objects)
		switch key := in.inventory.Key; {
		case key != nil && !key.Fresh():
			r.Digest = key.Digest(content.Bundle.Digest)
		case slices.ContainsFunc(content.Bundle.Objects, func(o *bundle.Object) bool { return redact.Holds(o.Content) }):
			r.Digest = content.Bundle.DigestWithoutSecrets(redact.Holds)
		default:
			r.Digest = content.Bundle.Digest
		}
		if r.Result == "applied" || o.Mode == Apply && last.Good() && last.Digest == r.Digest && len(content.Before) == 0 { // it asked for nothing else than that
			r.Result = inventory.Partial
		}
	}
	if last.Says(r, in.inventory.Unfinished()) && !r.Adopts(content) && !in.inventory.Misses(last.Number) {
		r.Number = last.Number
	}
	return r
}

// nextNumber is the number of a run: that of the revision that it saves, or would save.
func nextNumber(in intent, undoes bool) int {
	last, begun := in.inventory.Last(), in.inventory.Begun()
	switch {
	case last.Number == 0:
		return max(in.inventory.LastRun(), in.inventory.NewestRead()) + 1
	case undoes && begun.Number > last.Number:
		return begun.Number + 1
	case in.chosen == nil && in.isOf(last):
		return last.Number
	}
	return last.Number + 1
}

// originsBefore are the origins that the inventory records before the first write.
func originsBefore(in intent) map[bundle.ID]inventory.Origin {
	all := map[bundle.ID]inventory.Origin{}
	maps.Copy(all, in.inventory.Origins)
	for id, o := range in.plan.Origins {
		if all[id] = numbered(o, in.number); o.Equal(inventory.Origin{}) {
			delete(all, id)
		}
	}
	return all
}

func numbered(o inventory.Origin, run int) inventory.Origin {
	if o.Run == 0 && o.Before() && o.BroughtFrom != inventory.ToGiveBack {
		o.Run = run
	}
	return o
}

// originsAfter are the origins that the inventory is to hold after the run: of what it
// has created too, and of no object that left it.
func originsAfter(end ending, gone []bundle.ID) map[bundle.ID]inventory.Origin {
	all := originsBefore(end.intent)
	if end.begun { // they are recorded, and what was found since as well
		all = maps.Clone(end.inventory.Origins)
	}
	applied := sets.New[string]() // where what the run applied came from
	for i := range end.steps {
		o := &end.steps[i]
		if origin := all[o.ID]; o.PutBack && origin.How != inventory.Unknown {
			all[o.ID] = origin.Of(o.UID)
		}
		if o.Deletes() || o.ID.Name == "" || o.UID == "" && o.Result.Action != plan.Unchanged {
			continue
		}
		origin := all[o.ID]
		if origin.BroughtFrom == inventory.ToGiveBack { // each for itself
			origin.BroughtFrom = ""
		}
		applied.Insert(origin.BroughtFrom)
		switch o.Result.Action {
		case plan.Created:
			if created := (inventory.Origin{How: inventory.Created, Run: end.number}).Of(o.UID); origin.UID != created.UID { // else it was adopted meanwhile
				origin = created
			}
		case plan.Recreated:
			origin = origin.Of(o.UID)
		}
		if delete(all, o.ID); origin.How != inventory.Unknown {
			all[o.ID] = origin
		}
	}
	return inventory.SettleOrigins(all, applied, gone)
}

// statusOf is cli-utils' status for the outcome of a step.
func statusOf(o *report.ObjectResult, before inventory.Status) inventory.Status {
	s := inventory.Status{Strategy: "Apply", Actuation: "Succeeded", Reconcile: "Succeeded"}
	switch o.Action {
	case plan.Failed:
		s.Actuation, s.Reconcile = "Failed", "Skipped"
	case plan.Skipped:
		s.Actuation, s.Reconcile = "Skipped", "Skipped"
	}
	switch {
	case o.Ready == report.StateNotReady:
		s.Reconcile = "Timeout"
	case o.Ready == report.StateFailed:
		s.Reconcile = "Failed"
	case o.Ready != "" || s.Actuation != "Succeeded":
	case o.Action == plan.Unchanged: // it was not waited for
		s.Reconcile = cmp.Or(before.Reconcile, "Pending")
	default:
		s.Reconcile = "Pending"
	}
	return s
}

// stillCreating is a status of a member of which it is not known what the run created.
func stillCreating(s, before inventory.Status) inventory.Status {
	s.Creating = before.Creating
	return s
}
