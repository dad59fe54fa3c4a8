package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"brine/bundle"
	"brine/bundle/order"
	"brine/bundle/remedy"
	"brine/inventory"
)

// Deletions come into the plan: candidates, their order, how many.

// Shared is how many members a bundle has. own: they are more than Namespaces and CRDs, which
// several applications may name, or there are no other members.
func Shared(members map[bundle.ID]inventory.Status, objects []*bundle.Object) (n int, own bool) {
	own = true
	for id := range members {
		own = own && bundle.HoldsObjects(id.GroupKind)
	}
	for _, o := range objects {
		if _, ok := members[o.ID]; ok {
			n++
			own = own || !bundle.HoldsObjects(o.ID.GroupKind)
		}
	}
	return n, own
}

// Candidates are the members that the bundle no longer has, sorted: what a
// prune might delete.
func Candidates(members map[bundle.ID]inventory.Status, g *order.Graph, absent []*bundle.Absent) []bundle.ID {
	ids := sets.KeySet(members).Insert(bundle.Each(absent, func(a *bundle.Absent) bundle.ID { return a.ID })...).Difference(bundle.IDs(g.Objects)).UnsortedList()
	slices.SortFunc(ids, bundle.CompareIDs)
	return ids
}

// prune plans deletions, dependents before what they depend on.
func (in *Input) prune(p *Plan) {
	var steps []*Step
	p.Guard = newGuard(in, p)
	candidates := Candidates(in.Inventory.Members, in.Graph, in.Absent)
	served := in.served(candidates)
	for _, id := range candidates {
		if in.Invalid.Has(id) {
			continue
		}
		live := in.Live[id]
		if o := in.Inventory.Origins[id]; in.Options.Undo && o.How == inventory.Moved && o.BroughtFrom == "" && (live == nil || o.Equal(in.Inventory.OriginOf(id, live))) {
			o.BroughtFrom = inventory.ToGiveBack // known before it is done: no run prunes what is not given back yet
			p.Origins[id] = o
		}
		switch err := in.Unknown[id]; {
		case live == nil && err != nil:
			steps = append(steps, &Step{ID: id, GVK: id.GroupKind.WithVersion(served[id.GroupKind.Group]), Action: Skipped, Kept: !in.Options.NoPrune, Unread: err,
				Reason: "it may still exist, but cannot be read: " + err.Error()})
			continue
		case live == nil:
			if _, ok := in.Inventory.Members[id]; ok {
				p.Forget = append(p.Forget, id)
			}
			continue
		}
		if twin, err := in.unknownTwin(id); err != nil {
			steps = append(steps, &Step{ID: id, GVK: live.GroupVersionKind(), Live: live, Action: Skipped, Kept: !in.Options.NoPrune, Unread: err, Reason: fmt.Sprintf(
				"it may be the same object as %s, which cannot be read: %v", bundle.Name(twin), err)})
			continue
		}
		v := p.Guard.Decide(id, live, in.Contents[id])
		steps = append(steps, &Step{ID: id, GVK: live.GroupVersionKind(), Live: live, Action: v.Action, Reason: v.Reason, Kept: v.Kept, Shared: v.Shared, Restore: v.Restore, GiveBack: v.GiveBack})
	}
	in.stillNeeded(p, steps)
	in.backwards(p, steps)
}

// unknownTwin is an object of the bundle that may be the same one under another
// API group, as Ingress was in two, but cannot be read.
func (in *Input) unknownTwin(id bundle.ID) (bundle.ID, error) {
	for unknown, err := range in.Unknown {
		if unknown.GroupKind.Kind == id.GroupKind.Kind && unknown.Namespace == id.Namespace && unknown.Name == id.Name &&
			unknown.GroupKind.Group != id.GroupKind.Group && slices.ContainsFunc(in.Graph.Objects, func(o *bundle.Object) bool { return o.ID == unknown }) {
			return unknown, err
		}
	}
	return bundle.ID{}, nil
}

// served are the versions of the groups that the candidates' APIServices serve:
// those of objects that cannot be read.
func (in *Input) served(candidates []bundle.ID) map[string]string {
	versions := map[string]string{}
	for _, id := range candidates {
		if live := in.Live[id]; live != nil && id.GroupKind == bundle.APIServiceKind {
			version, group, _ := strings.Cut(id.Name, ".")
			versions[group] = version
		}
	}
	return versions
}

// tooMany refuses a plan that deletes more than MaxPrune allows.
func (in *Input) tooMany(p *Plan) []bundle.Problem {
	limit := in.Options.MaxPrune
	if limit == "" || in.Options.Destroy {
		return nil
	}
	count, members := 0, 0
	for _, s := range p.Steps {
		if s.Action == Pruned {
			count++
			if _, member := in.Inventory.Members[s.ID]; member {
				members++
			}
		}
	}
	number, share := strings.CutSuffix(limit, "%")
	most, err := strconv.Atoi(number)
	if err != nil || most < 0 {
		return []bundle.Problem{{Message: fmt.Sprintf("%s: %q is neither a number nor a percentage", remedy.MaxPrune, limit)}}
	}
	if share {
		most = most * len(in.Inventory.Members) / 100
	}
	if count > most {
		what := fmt.Sprintf("%d of %d objects in inventory %s/%s", members, len(in.Inventory.Members), in.Inventory.Namespace, in.Inventory.Name)
		if absent := bundle.Count(count-members, "object") + " that the bundle wants absent"; members == 0 {
			what = absent
		} else if members < count {
			what += ", and " + absent + ","
		}
		p.Refused = append(p.Refused, bundle.Problem{Message: fmt.Sprintf("%s would be pruned, more than %s=%s allows: nothing was changed (see %s)", what, remedy.MaxPrune, limit, remedy.HelpMaxPrune)})
	}
	return nil
}

// otherNamespace refuses a plan that moves objects only because the kubeconfig has another
// namespace than it had: they would be deleted with what they hold, and created in the other one.
func (in *Input) otherNamespace(p *Plan) {
	if in.Options.NamespaceNamed || in.Options.Destroy {
		return
	}
	arrive, moved := map[bundle.ID]*Step{}, 0
	for _, s := range p.Steps {
		if _, member := in.Inventory.Members[s.ID]; s.Object != nil && s.Object.Unplaced && !member {
			arrive[bundle.ID{GroupKind: s.ID.GroupKind, Name: s.ID.Name}] = s
		}
	}
	var from, to *Step
	for _, s := range p.Steps {
		if there := arrive[bundle.ID{GroupKind: s.ID.GroupKind, Name: s.ID.Name}]; there != nil && s.Action == Pruned {
			if moved++; moved == 1 {
				from, to = s, there
			}
		}
	}
	if moved > 0 {
		p.Refused = append(p.Refused, to.Object.Problem("metadata.namespace", fmt.Sprintf(
			"the bundle names none, the kubeconfig has %[1]s, the last apply had %[2]s: %[3]s would be deleted in %[2]s and created in %[1]s; nothing was changed; use %[4]s %[2]s to go on as before, or %[4]s %[1]s to move",
			to.ID.Namespace, from.ID.Namespace, bundle.Count(moved, "object"), remedy.Namespace)))
	}
}

// stillNeeded keeps what an object of the bundle depends on explicitly.
func (in *Input) stillNeeded(p *Plan, steps []*Step) {
	needed := map[bundle.ID]bundle.ID{}
	in.Graph.Outside(func(i int, e order.External) { needed[e.On] = in.Graph.Objects[i].ID })
	for _, s := range steps {
		if by, ok := needed[s.ID]; ok && s.Action == Pruned {
			s.Action, s.Reason = Skipped, "still needed by "+bundle.Name(by)
			p.Warnings = append(p.Warnings, fmt.Sprintf("%s is not in the bundle any more, but %s depends on it: it is kept", bundle.Name(s.ID), bundle.Name(by)))
		}
	}
}

// keepNeeded keeps what a kept object needs, and says whether there is any. Nothing waits for the
// inventory's namespace, which goes last of all.
func (in *Input) keepNeeded(g *order.Graph, steps []*Step) (kept bool) {
	for _, i := range slices.Backward(g.Sorted) {
		for _, e := range g.Dependents[i] {
			if e.Weak && in.isHome(steps[e.From].ID) {
				continue
			}
			if dependent := steps[e.From]; dependent.Action != Pruned && steps[i].Follows(dependent, Need{Weak: e.Weak}) {
				steps[i].Follow(dependent, e.Reason)
				kept = true
			}
		}
	}
	return kept
}

// isHome says whether an object is the inventory's namespace.
func (in *Input) isHome(id bundle.ID) bool {
	return id == bundle.ID{GroupKind: bundle.NamespaceKind, Name: in.Inventory.Namespace}
}

// backwards appends the deletions to the plan in reverse order of need, and
// keeps what a kept object needs.
func (in *Input) backwards(p *Plan, steps []*Step) {
	objects := make([]*bundle.Object, len(steps))
	for i, s := range steps {
		content := s.Live
		if content == nil {
			content = &unstructured.Unstructured{Object: map[string]any{}}
		}
		objects[i] = &bundle.Object{ID: s.ID, GVK: s.GVK, Content: content}
	}
	g, _ := order.Build(objects, order.Options{Live: true})
	for in.keepNeeded(g, steps) || p.Guard.keepOwners(steps) {
		continue // each of them may be for the other to keep more
	}
	noteCollected(steps)
	p.Guard.noteDependents(steps)
	first := len(p.Steps)
	at := make([]int, len(steps))
	for n := range g.Sorted {
		at[g.Sorted[len(g.Sorted)-1-n]] = first + n
	}
	var services []int
	for _, i := range slices.Backward(g.Sorted) {
		s := steps[i]
		for _, e := range g.Dependents[i] {
			if in.isHome(steps[e.From].ID) {
				continue // it goes last of all, with the inventory: nothing that is needed may wait for it
			}
			s.Needs = append(s.Needs, Need{Step: at[e.From], Want: order.Ready, Reason: deletedFirst + e.Reason, Weak: e.Weak})
		}
		if s.ID.GroupKind == bundle.APIServiceKind {
			services = append(services, at[i])
		}
		p.Steps = append(p.Steps, s)
	}
	// What takes the server long to empty is deleted as soon as possible.
	for _, s := range p.Steps[first:] {
		if bundle.HoldsObjects(s.ID.GroupKind) {
			s.Priority = len(steps)
		}
	}
	// Namespaces hang on deletion while an APIService without a backend stands:
	// the namespace controller cannot know what is in them.
	for i, s := range p.Steps[first:] {
		if s.ID.GroupKind != bundle.NamespaceKind {
			continue
		}
		if s.ID.Name == in.Inventory.Namespace {
			named := bundle.SetOf(s.Needs, func(need Need) int { return need.Step })
			for other := range p.Steps[first:] {
				if other != i && !named.Has(first+other) {
					s.Needs = append(s.Needs, Need{Step: first + other, Want: order.Ready, Reason: deletedFirst + "the namespace holds the inventory", Timing: true})
				}
			}
			continue
		}
		for _, service := range services {
			if p.waits(service, first+i) {
				continue // it has to stand as long as the namespace
			}
			s.Needs = append(s.Needs, Need{Step: service, Want: order.Ready, Reason: deletedFirst + "namespaces hang while an APIService is not available", Weak: true, Timing: true})
		}
	}
	p.orderOwners(first)
}

// orderOwners has what is detached leave the inventory after what owns it: where that stays a member, a later
// run may delete it, and the garbage collector the other. What is pruned, or left to its controller, is asked for
// before what owns it: it may stay, and its owner with it. That does not wait until it is gone: it may wait for
// its owner with a finalizer.
func (p *Plan) orderOwners(first int) {
	at := map[types.UID]int{}
	for i, s := range p.Steps[first:] {
		if (s.Action == Detached || s.Action == Pruned) && s.Live != nil { // pruned: with --cascade=orphan
			at[s.Live.GetUID()] = first + i
		}
	}
	for i, s := range p.Steps[first:] {
		goes := s.Action == Pruned || p.Guard.Leaves(s)
		if s.Live == nil || !goes && s.Action != Detached {
			continue
		}
		for _, owner := range p.Guard.ownersOf(s.Live) {
			on, found := at[owner]
			switch {
			case !found || on == first+i:
			case !goes && !p.waits(on, first+i):
				s.Needs = append(s.Needs, Need{Step: on, Want: order.Ready, Reason: deletedFirst + "it owns this", Owner: true})
			case goes && p.Steps[on].Action == Pruned && !p.Guard.Options.Orphans && !p.waits(first+i, on) && !p.waits(on, first+i):
				p.Steps[on].Needs = append(p.Steps[on].Needs, Need{Step: first + i, Want: order.Applied, Reason: deletedFirst + "this owns it", Weak: true, Timing: true})
			}
		}
	}
}

// waits says whether a step needs another one, or itself, by whatever way.
func (p *Plan) waits(step, on int) bool {
	seen := sets.New[int]()
	var search func(int) bool
	search = func(at int) bool {
		return slices.ContainsFunc(p.Steps[at].Needs, func(need Need) bool {
			if need.Step == on {
				return true
			}
			been := seen.Has(need.Step)
			seen.Insert(need.Step)
			return !been && search(need.Step)
		})
	}
	return search(step)
}
