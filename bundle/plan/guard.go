package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"brine/bundle"
	"brine/bundle/remedy"
	"brine/inventory"
)

// Whether an object may be deleted.

// Guard decides whether an object may be deleted. It knows what the plan knows,
// and decides twice: for the plan, and directly before the deletion.
type Guard struct {
	Of      *inventory.Inventory // as it was when the plan was made
	Options Options
	// Absent are the objects that the bundle names as absent.
	Absent sets.Set[bundle.ID]
	// Same are the objects of the bundle by UID: one object may be served under
	// two API groups, and must not be deleted under the old one.
	Same map[types.UID]bundle.ID
	// Namespaces and Kinds name, for a namespace and a kind that the bundle uses,
	// one of the objects that use it.
	Namespaces map[string]string
	Kinds      map[schema.GroupKind]string
	// keeps are the owners of objects that stay, by UID: the garbage collector would delete
	// these with them.
	keeps map[types.UID]bundle.ID
	above map[types.UID][]types.UID // as Owners.Of
	owns  sync.Mutex                // of all down to released
	// unread are the members beside the bundle that cannot be read, outside such owners of what stays: any
	// object may own them.
	unread, outside map[bundle.ID]error
	unknown         map[types.UID]Unreadable // as Owners.Unknown
	// dependents are the UIDs of members that are to go, too, by the UID of each object that owns them: one
	// may stay by then.
	dependents map[types.UID]map[bundle.ID]types.UID
	released   sets.Set[bundle.ID]     // what was left to its controller, and is no member any more
	going      map[types.UID]bundle.ID // what is to be deleted
	// Moved says of members why a move between inventories keeps them.
	Moved map[bundle.ID]Verdict
}

// Owners are what owns live objects, and what owns that: members, objects of the bundle, and others.
type Owners struct {
	Of      map[types.UID][]types.UID // the UIDs of an object's owners by its own
	Unknown map[types.UID]Unreadable  // owners that cannot be read
}

// Unreadable is an object that cannot be read, and why.
type Unreadable struct {
	ID  bundle.ID
	Err error
}

// Verdict is what may be done with an object that would be deleted.
type Verdict struct {
	// Action is Pruned, Detached or Skipped.
	Action Action
	Reason string
	// Kept: a skipped deletion that leaves the run incomplete.
	Kept bool
	// Shared: the object is in the bundle under another group as well.
	Shared bool
	// GiveBack: the member is given back to the inventory that it came from.
	GiveBack bool
	// Restore is what a detached object is set back to.
	Restore *Was
}

// newGuard is the guard of a plan whose applies are planned.
func newGuard(in *Input, p *Plan) *Guard {
	g := &Guard{
		Of: new(*in.Inventory), Options: in.Options,
		Absent: bundle.SetOf(in.Absent, func(a *bundle.Absent) bundle.ID { return a.ID }), Same: map[types.UID]bundle.ID{},
		Namespaces: map[string]string{}, Kinds: map[schema.GroupKind]string{},
		above: map[types.UID][]types.UID{}, unread: map[bundle.ID]error{}, outside: map[bundle.ID]error{}, unknown: map[types.UID]Unreadable{}, released: sets.New[bundle.ID](),
	}
	g.Know(in.Owners, nil)
	for _, s := range p.Steps {
		if s.Live != nil {
			if uid := s.Live.GetUID(); uid != "" {
				g.Same[uid] = s.ID
			}
			g.Keep(s.ID, s.Live)
		}
	}
	for id, live := range in.Live {
		if live != nil && (in.Chosen != nil || in.Invalid.Has(id)) { // it has no step, and stays
			g.Keep(id, live)
		}
	}
	for id := range sets.KeySet(in.Inventory.Members).Difference(bundle.IDs(in.Graph.Objects)) {
		if in.Live[id] == nil && in.Unknown[id] != nil {
			g.unread[id] = in.Unknown[id]
		}
	}
	for _, o := range in.Graph.Objects {
		g.Namespaces[o.ID.Namespace] = bundle.Name(o.ID)
		g.Kinds[o.ID.GroupKind] = bundle.Name(o.ID)
	}
	g.Moved = in.moved()
	return g
}

// moved keeps members whose move to another inventory was interrupted, and members
// that came from another one of which this bundle knows nothing yet. A rollback goes on
// with giving back what another one began to give back.
func (in *Input) moved() map[bundle.ID]Verdict {
	known := bundle.SetOf(in.Graph.Objects, func(o *bundle.Object) string { return in.Inventory.Origins[o.ID].BroughtFrom })
	moved := map[bundle.ID]Verdict{}
	for id, status := range in.Inventory.Members {
		origin, live := in.Inventory.Origins[id], in.Live[id]
		from := origin.BroughtFrom
		another := from == inventory.ToGiveBack && live != nil && in.Inventory.OriginOf(id, live).BroughtFrom != from
		switch {
		case in.Options.Undo && origin.How == inventory.Moved && (from == inventory.ToGiveBack || from == "" && status.MovingTo != ""):
		case status.MovingTo != "":
			moved[id] = Verdict{Action: Skipped, Kept: true, Reason: fmt.Sprintf("its move to inventory %s was interrupted: repeat that command first; %s ends the move of this object",
				status.MovingTo, in.Options.Commands.Split(in.Inventory.Namespace+"/"+in.Inventory.Name, status.MovingTo, id.GroupKind, id.Namespace, id.Name))}
		case from == "" || another || in.Options.Destroy || from != inventory.ToGiveBack && known.Has(from):
		case from == inventory.FromNone:
			moved[id] = Verdict{Action: Skipped, Reason: "it was adopted, and the bundle contains none of the adopted objects yet"}
		case from == inventory.ToGiveBack:
			moved[id] = Verdict{Action: Skipped, Reason: fmt.Sprintf("a rollback was to give it back to inventory %s, and did not: %s does",
				origin.From, in.Options.Commands.Split(in.Inventory.Namespace+"/"+in.Inventory.Name, origin.Home(), id.GroupKind, id.Namespace, id.Name))}
		default:
			moved[id] = Verdict{Action: Skipped, Reason: "it came from inventory " + from + ", and the bundle contains no object from there yet"}
		}
	}
	return moved
}

// Know tells the guard of owners, as they are now, and of objects of the plan that cannot be read any more.
func (g *Guard) Know(owners Owners, unread map[bundle.ID]error) {
	g.owns.Lock()
	defer g.owns.Unlock()
	maps.Copy(g.above, owners.Of)
	maps.Copy(g.unknown, owners.Unknown)
	maps.Copy(g.outside, unread)
}

// Keep tells the guard of an object that stays: what owns it has to stay, too. Its owners are
// those of now, also after the plan.
func (g *Guard) Keep(id bundle.ID, live metav1.Object) {
	owners := g.ownersOf(live)
	g.owns.Lock()
	defer g.owns.Unlock()
	for _, owner := range owners {
		if g.keeps == nil {
			g.keeps = map[types.UID]bundle.ID{}
		}
		g.keeps[owner] = id
		if u, unknown := g.unknown[owner]; unknown {
			g.outside[u.ID] = u.Err
		}
	}
}

// ownersOf are the UIDs of an object's owners, and of theirs: the garbage collector deletes it with any of them.
func (g *Guard) ownersOf(live metav1.Object) []types.UID {
	g.owns.Lock()
	defer g.owns.Unlock()
	owners := bundle.Each(live.GetOwnerReferences(), func(ref metav1.OwnerReference) types.UID { return ref.UID })
	for i := 0; i < len(owners); i++ {
		owners = append(owners, bundle.Where(g.above[owners[i]], func(uid types.UID) bool { return !slices.Contains(owners, uid) })...)
	}
	return owners
}

// keepOwners keeps what owns an object that stays, and says whether there is more of it. What is
// left to its controller goes with it. What would be detached stays a member beside an owner that
// stays: else no later run, in which the owner goes, would know of it. A rollback releases what it
// has to release, beside an owner that the bundle has.
func (g *Guard) keepOwners(steps []*Step) (kept bool) {
	stay := maps.Clone(g.Same) // the members
	for _, s := range steps {
		if s.Action == Skipped && s.Live != nil {
			stay[s.Live.GetUID()] = s.ID
		}
	}
	for _, s := range steps {
		if s.Action == Pruned || s.Live == nil || s.Shared {
			continue
		}
		ours := g.isOurs(s.Live)
		if g.Leaves(s) {
			continue
		}
		g.Keep(s.ID, s.Live)
		for _, owner := range g.ownersOf(s.Live) {
			_, wanted := g.Same[owner]
			if by, found := stay[owner]; found && s.Action == Detached && (!ours || !wanted) {
				s.Action, s.Reason, kept = Skipped, fmt.Sprintf("%s; it stays a member, as %s owns it", s.Reason, bundle.Name(by)), true
			}
		}
	}
	for _, s := range steps {
		if s.Action != Pruned {
			continue
		}
		if why := g.pruneDependent(s.Live); why != "" {
			s.Action, s.Kept, s.Reason, kept = Skipped, true, why, true
		}
	}
	return kept
}

// noteDependents notes dependents.
func (g *Guard) noteDependents(steps []*Step) {
	g.dependents, g.going = map[types.UID]map[bundle.ID]types.UID{}, map[types.UID]bundle.ID{}
	for _, s := range steps {
		if s.Action == Pruned {
			g.going[s.Live.GetUID()] = s.ID
		}
		if s.Action == Pruned || g.Leaves(s) {
			g.See(s, s.Live)
		}
	}
}

// See tells the guard of the object of a step, as it is now.
func (g *Guard) See(s *Step, live *unstructured.Unstructured) {
	if s.Action != Pruned && !g.Leaves(s) {
		g.Keep(s.ID, live)
		return
	}
	owners := g.ownersOf(live)
	g.owns.Lock()
	defer g.owns.Unlock()
	if g.released.Has(s.ID) {
		return
	}
	for _, owner := range owners {
		if g.dependents[owner] == nil {
			g.dependents[owner] = map[bundle.ID]types.UID{}
		}
		g.dependents[owner][s.ID] = live.GetUID()
	}
}

// DependentsOf are the UIDs of the members that are to go, too, and are owned by an object.
func (g *Guard) DependentsOf(owner types.UID) map[bundle.ID]types.UID {
	g.owns.Lock()
	defer g.owns.Unlock()
	return maps.Clone(g.dependents[owner])
}

// Release tells the guard that what a step leaves to its controller is no member any more.
func (g *Guard) Release(s *Step) {
	if !g.Leaves(s) {
		return
	}
	g.owns.Lock()
	defer g.owns.Unlock()
	g.released.Insert(s.ID)
	for _, dependents := range g.dependents {
		delete(dependents, s.ID)
	}
}

// OwnedBy is a member that owns what is not to be deleted after all, so that this has to stay a member, too,
// as in keepOwners: else a later run would delete both; "" if there is none.
func (g *Guard) OwnedBy(live *unstructured.Unstructured) string {
	if g.IsLeft(live) {
		return ""
	}
	for _, owner := range g.ownersOf(live) {
		if id, going := g.going[owner]; going {
			return bundle.Name(id)
		}
		if id, wanted := g.Same[owner]; wanted && !g.isOurs(live) {
			return bundle.Name(id)
		}
	}
	return ""
}

// isOurs says whether an object carries the ownership metadata, and nobody keeps it.
func (g *Guard) isOurs(live *unstructured.Unstructured) bool {
	return Owned(live, g.Of.ID) && bundle.KeptBy(live) == ""
}

// IsLeft says whether an object is left to its controller, and goes with that.
func (g *Guard) IsLeft(live *unstructured.Unstructured) bool {
	return metav1.GetControllerOf(live) != nil && g.isOurs(live)
}

// Leaves says whether a step lets go of its object because that is left to its controller.
func (g *Guard) Leaves(s *Step) bool {
	return s.Action == Detached && s.Live != nil && !s.Shared && g.IsLeft(s.Live)
}

// noteCollected says of what is left to its controller that it goes, where that does.
func noteCollected(steps []*Step) {
	pruned := map[types.UID]*Step{}
	for _, s := range steps {
		if s.Action == Pruned {
			pruned[s.Live.GetUID()] = s
		}
	}
	for _, s := range steps {
		if s.Action != Detached || s.Live == nil {
			continue
		}
		if controller := metav1.GetControllerOf(s.Live); controller != nil && pruned[controller.UID] != nil {
			s.Reason += ", which is pruned: the garbage collector deletes it with that"
		}
	}
}

// dependent is why an object may not be deleted together with its dependents: one of them
// stays. "" if none is known.
func (g *Guard) dependent(live *unstructured.Unstructured) string {
	g.owns.Lock()
	defer g.owns.Unlock()
	id, found := g.keeps[live.GetUID()]
	if found && live.GetUID() != "" {
		return collected(id)
	}
	return mayOwn(live, g.unread)
}

// mayOwn is why an object may not be deleted that may own one that cannot be read; "" if there is none.
func mayOwn(live *unstructured.Unstructured, unread map[bundle.ID]error) string {
	if holds(live.GroupVersionKind().GroupKind()) { // its contents are looked at, and it owns nothing
		return ""
	}
	for _, id := range bundle.SortedIDs(unread) {
		if namespace := live.GetNamespace(); namespace == "" || namespace == id.Namespace {
			return fmt.Sprintf("the garbage collector would delete %s with it, if it owns that, which cannot be read (%v): see to that first", bundle.Name(id), unread[id])
		}
	}
	return ""
}

// pruneDependent is dependent for a deletion that --cascade decides about; a recreation has a word
// of its own about its dependents, and may be what has them read again.
func (g *Guard) pruneDependent(live *unstructured.Unstructured) string {
	g.owns.Lock()
	outside := maps.Clone(g.outside)
	g.owns.Unlock()
	why := cmp.Or(g.dependent(live), mayOwn(live, outside))
	if why == "" || g.Options.Orphans {
		return ""
	}
	return why + orOrphan
}

const orOrphan = ", or use " + remedy.Cascade + "=orphan"

// collected is why an object stays that owns one that does.
func collected(id bundle.ID) string {
	return fmt.Sprintf("the garbage collector would delete %s with it, which stays, and which it owns, perhaps through others: take the owner out of its ownerReferences first", bundle.Name(id))
}

// Holds says whether the guard has to know what an object holds.
func (g *Guard) Holds(id bundle.ID) bool {
	return bundle.HoldsObjects(id.GroupKind) && !g.Options.NoPrune && !g.Options.ForceNamespaces
}

// Decide is every reason not to delete an object.
func (g *Guard) Decide(id bundle.ID, live *unstructured.Unstructured, holds bundle.Contents) Verdict {
	owner, part := live.GetAnnotations()[inventory.OwningInventory], inventory.PartOfInventory(live)
	asked := g.Absent.Has(id)
	keptBy := bundle.KeptBy(live)
	same, twice := g.Same[live.GetUID()]
	controller := metav1.GetControllerOf(live)
	defined, _ := bundle.DefinitionOf(live)
	kept, moved := g.Moved[id]
	_, member := g.Of.Members[id]
	origin, dependent := g.Of.OriginOf(id, live), g.pruneDependent(live)
	switch {
	case g.Options.NoPrune:
		return Verdict{Action: Skipped, Reason: cmp.Or(g.Options.NoPruneReason, remedy.NoPrune)}
	case twice:
		return Verdict{Action: Detached, Shared: true, Reason: "it is the same object as " + bundle.Name(same)}
	case part != "":
		return Verdict{Action: Detached, Reason: notAMember(part)}
	case owner != g.Of.ID && owner != "":
		return Verdict{Action: Detached, Reason: fmt.Sprintf("it belongs to inventory %q", owner)}
	case owner == "" && (!asked || g.Options.Undo && member):
		return Verdict{Action: Detached, Reason: "its annotation " + inventory.OwningInventory + " was removed: it no longer belongs to this inventory"}
	case controller != nil && !asked:
		return Verdict{Action: Detached, Reason: fmt.Sprintf("it is controlled by %s %s", controller.Kind, controller.Name)}
	case moved && (kept.Kept || !asked):
		return kept
	case keptBy != "":
		return Verdict{Action: Detached, Reason: keptBy}
	case g.Options.Undo && member && origin.How != inventory.Created:
		return g.undo(id, live, origin)
	case g.Options.Undo && asked && !member:
		return Verdict{Action: Skipped, Reason: fmt.Sprintf("the earlier bundle wants it absent, and a rollback deletes only what brine created; %s deletes it", g.Options.Commands.Delete(id.GroupKind, id.Namespace, id.Name))}
	case id.GroupKind == bundle.NamespaceKind && g.Namespaces[id.Name] != "":
		return Verdict{Action: Skipped, Reason: "still in use by " + g.Namespaces[id.Name]}
	case g.Kinds[defined.Kind] != "":
		return Verdict{Action: Skipped, Reason: "still in use by " + g.Kinds[defined.Kind]}
	case id.GroupKind == bundle.NamespaceKind && id.Name == g.Of.Namespace && !g.Options.Destroy:
		return Verdict{Action: Skipped, Reason: "it holds the inventory itself"}
	case g.Holds(id) && len(holds.Unmanaged) > 0:
		return Verdict{Action: Skipped, Kept: true, Reason: "contains objects outside this inventory: " +
			bundle.Some(holds.Unmanaged, 5) + "; delete them first, or use " + remedy.ForceNamespaces}
	case g.Holds(id) && len(holds.Unknown) > 0:
		return Verdict{Action: Skipped, Kept: true, Reason: "may contain objects outside this inventory: cannot read " +
			bundle.Some(holds.Unknown, 3) + "; " + remedy.ForceNamespaces + " deletes it with everything in it"}
	case dependent != "":
		return Verdict{Action: Skipped, Kept: true, Reason: dependent}
	case asked:
		return Verdict{Action: Pruned, Reason: "the bundle wants it absent"}
	case member && origin.Before():
		return Verdict{Action: Pruned, Reason: origin.String()}
	}
	return Verdict{Action: Pruned}
}

// undo is what becomes of a member that brine did not create, where a run is undone.
func (g *Guard) undo(id bundle.ID, live *unstructured.Unstructured, origin inventory.Origin) Verdict {
	switch origin.How {
	case inventory.Adopted, inventory.TakenOver:
		was, fields := g.Options.Before[id], ", its fields stay as they are: what they were is not kept"
		switch {
		case was == nil || was.GetUID() != live.GetUID():
			was = nil
		case was.Kept:
			fields = ", and the fields that brine applied are set back"
		default:
			fields = ", and its fields are set back"
		}
		return Verdict{Action: Detached, Restore: was, Reason: origin.String() + ": it is released" + fields}
	case inventory.Moved:
		return Verdict{Action: Skipped, GiveBack: true, Reason: origin.String() + ", and is given back to it if it is still there"}
	}
	return Verdict{Action: Skipped, Reason: fmt.Sprintf("%s, and a rollback does not delete it: it stays a member; %s deletes it", origin, g.Options.Commands.Delete(id.GroupKind, id.Namespace, id.Name))}
}

// Follows says whether a deletion is kept when one that has to come first is kept, or does not come to be:
// a Namespace, a CRD or an APIService is never deleted before what is
// in it or served by it, nor does what is needed explicitly.
func (s *Step) Follows(on *Step, need Need) bool {
	return s.Action == Pruned && !need.Timing && (!need.Weak || holds(s.ID.GroupKind) || on.Action == Skipped && on.Kept)
}

// holds says whether other objects are in, or served by, one of a kind.
func holds(gk schema.GroupKind) bool { return bundle.HoldsObjects(gk) || gk == bundle.APIServiceKind }

// Follow keeps the step because of a kept one that would have to be deleted first.
// A detached object detaches what it needs: no later run would delete that.
func (s *Step) Follow(on *Step, reason string) {
	s.Action, s.Kept = Skipped, on.Kept
	if on.Action == Detached {
		s.Action = Detached
	}
	s.Reason = fmt.Sprintf("%s is kept and needs it (%s)", bundle.Name(on.ID), reason)
}
