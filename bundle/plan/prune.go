package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"brine/bundle"
	"brine/bundle/order"
	"brine/inventory"
)

var (
	namespaceKind  = schema.GroupKind{Kind: "Namespace"}
	crdKind        = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
	apiServiceKind = schema.GroupKind{Group: "apiregistration.k8s.io", Kind: "APIService"}
)

// Candidates are the members that the bundle no longer has, sorted: what a
// prune might delete.
func Candidates(members map[bundle.ID]inventory.Status, g *order.Graph, absent []*bundle.Absent) []bundle.ID {
	wanted := map[bundle.ID]bool{}
	for _, o := range g.Objects {
		wanted[o.ID] = true
	}
	var ids []bundle.ID
	for id := range members {
		if !wanted[id] {
			ids = append(ids, id)
		}
	}
	for _, a := range absent {
		if _, ok := members[a.ID]; !ok && !wanted[a.ID] {
			ids = append(ids, a.ID)
		}
	}
	slices.SortFunc(ids, func(a, b bundle.ID) int { return strings.Compare(a.String(), b.String()) })
	return ids
}

// prune plans deletions, dependents before what they depend on.
func (in *Input) prune(p *Plan) {
	var steps []*Step
	absent := map[bundle.ID]*bundle.Absent{}
	for _, a := range in.Absent {
		absent[a.ID] = a
	}
	kept := in.uids(p)
	in.inUse, in.kindInUse = map[string]string{}, map[schema.GroupKind]string{}
	for _, o := range in.Graph.Objects {
		in.inUse[o.ID.Namespace] = bundle.Name(o.ID)
		in.kindInUse[o.ID.GroupKind] = bundle.Name(o.ID)
	}
	for _, id := range Candidates(in.Inventory.Members, in.Graph, in.Absent) {
		if in.Invalid[id] {
			continue
		}
		live := in.Live[id]
		switch err := in.Unsure[id]; {
		case live == nil && err != nil:
			steps = append(steps, &Step{ID: id, GVK: id.GroupKind.WithVersion(""), Action: Skipped, Stays: true,
				Reason: "whether it is still there cannot be known: " + err.Error()})
			continue
		case live == nil:
			if _, ok := in.Inventory.Members[id]; ok {
				p.Forget = append(p.Forget, id)
			}
			continue
		}
		s := &Step{ID: id, GVK: live.GroupVersionKind(), Live: live, Action: Pruned}
		in.guard(s, absent[id] != nil, kept)
		steps = append(steps, s)
	}
	in.stillNeeded(p, steps)
	in.backwards(p, steps)
}

// uids are those of the objects that the bundle has: the same object may be
// served under two API groups, and must not be deleted under the old one.
func (in *Input) uids(p *Plan) map[types.UID]bundle.ID {
	uids := map[types.UID]bundle.ID{}
	for _, s := range p.Steps {
		if s.Live != nil {
			uids[s.Live.GetUID()] = s.ID
		}
	}
	return uids
}

// guard is every reason not to delete an object.
func (in *Input) guard(s *Step, asked bool, kept map[types.UID]bundle.ID) {
	owner := s.Live.GetAnnotations()[inventory.OwningInventory]
	reason, keep := keeps(s.Live)
	same, twice := kept[s.Live.GetUID()]
	controller := metav1.GetControllerOf(s.Live)
	switch {
	case in.Options.NoPrune:
		s.Action, s.Reason = Skipped, cmp.Or(in.Options.NoPruneReason, "--no-prune")
	case keep:
		s.Action, s.Reason = Detached, reason
	case twice:
		s.Action, s.Shared, s.Reason = Detached, true, "it is the same object as "+bundle.Name(same)
	case owner != in.Inventory.ID && owner != "":
		s.Action, s.Reason = Detached, fmt.Sprintf("it belongs to inventory %q", owner)
	case owner == "" && !asked:
		s.Action, s.Reason = Detached, "its annotation "+inventory.OwningInventory+" is gone: it is no longer ours to delete"
	case controller != nil && !asked:
		s.Action, s.Reason = Detached, fmt.Sprintf("it is controlled by %s %s", controller.Kind, controller.Name)
	case s.ID.GroupKind == namespaceKind && in.inUse[s.ID.Name] != "":
		s.Action, s.Reason = Skipped, "still in use by "+in.inUse[s.ID.Name]
	case s.ID.GroupKind == crdKind && in.kindInUse[DefinedKind(s.Live)] != "":
		s.Action, s.Reason = Skipped, "still in use by "+in.kindInUse[DefinedKind(s.Live)]
	case s.ID.GroupKind == namespaceKind && s.ID.Name == in.Inventory.Namespace && !in.Options.Destroy:
		s.Action, s.Reason = Skipped, "it holds the inventory itself"
	case len(in.Foreign[s.ID]) > 0 && !in.Options.ForceNamespaces:
		s.Action, s.Stays = Skipped, true
		s.Reason = "with it would go what is not ours: " + some(in.Foreign[s.ID], 5) + "; remove that first, or use --force-namespaces"
	case asked:
		s.Reason = "the bundle wants it absent"
	}
}

// DefinedKind is the kind that a CustomResourceDefinition defines.
func DefinedKind(crd *unstructured.Unstructured) schema.GroupKind {
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
	return schema.GroupKind{Group: group, Kind: kind}
}

func some(names []string, n int) string {
	if len(names) <= n {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:n], ", "), len(names)-n)
}

// tooMany refuses a plan that deletes more than MaxPrune allows.
func (in *Input) tooMany(p *Plan) []bundle.Problem {
	limit := in.Options.MaxPrune
	if limit == "" || in.Options.Destroy {
		return nil
	}
	count := 0
	for _, s := range p.Steps {
		if s.Action == Pruned {
			count++
		}
	}
	number, share := strings.CutSuffix(limit, "%")
	most, err := strconv.Atoi(number)
	if err != nil || most < 0 {
		return []bundle.Problem{{Message: fmt.Sprintf("--max-prune: %q is neither a number nor a percentage", limit)}}
	}
	if share {
		most = most * len(in.Inventory.Members) / 100
	}
	if count > most {
		p.Refused = append(p.Refused, bundle.Problem{Message: fmt.Sprintf(
			"%d of %d objects in inventory %s/%s would be pruned, more than --max-prune=%s allows: nothing was changed",
			count, len(in.Inventory.Members), in.Inventory.Namespace, in.Inventory.Name, limit)})
	}
	return nil
}

// stillNeeded keeps what an object of the bundle depends on explicitly.
func (in *Input) stillNeeded(p *Plan, steps []*Step) {
	needed := map[bundle.ID]bundle.ID{}
	for i, ids := range in.Graph.External {
		for _, id := range ids {
			needed[id] = in.Graph.Objects[i].ID
		}
	}
	for _, s := range steps {
		if by, ok := needed[s.ID]; ok && s.Action == Pruned {
			s.Action, s.Reason = Skipped, "still needed by "+bundle.Name(by)
			p.Warnings = append(p.Warnings, fmt.Sprintf("%s is not in the bundle any more, but %s depends on it: it stays", bundle.Name(s.ID), bundle.Name(by)))
		}
	}
}

// backwards appends the deletions to the plan in reverse order of need, and
// keeps what something that stays needs.
func (in *Input) backwards(p *Plan, steps []*Step) {
	objects := make([]*bundle.Object, len(steps))
	for i, s := range steps {
		content := s.Live
		if content == nil {
			content = &unstructured.Unstructured{Object: map[string]any{}}
		}
		objects[i] = &bundle.Object{ID: s.ID, GVK: s.GVK, Content: content}
	}
	g, _ := order.Build(objects, order.Options{Live: true, External: func(bundle.ID) bool { return true }})
	first := len(p.Steps)
	at := make([]int, len(steps))
	for n := range g.Sorted {
		at[g.Sorted[len(g.Sorted)-1-n]] = first + n
	}
	var services []int
	for _, i := range slices.Backward(g.Sorted) {
		s := steps[i]
		for _, e := range g.Dependents[i] {
			dependent := steps[e.From]
			s.Needs = append(s.Needs, Need{Step: at[e.From], Want: order.Ready, Reason: "goes before: " + e.Reason, Weak: e.Weak})
			if s.Action == Pruned && dependent.Action != Pruned && (!e.Weak || s.ID.GroupKind == namespaceKind || s.ID.GroupKind == crdKind) {
				s.Action, s.Stays = Skipped, dependent.Stays
				if dependent.Action == Detached {
					s.Action = Detached // nobody will ever delete it for us
				}
				s.Reason = fmt.Sprintf("%s stays and needs it (%s)", bundle.Name(dependent.ID), e.Reason)
			}
		}
		if s.ID.GroupKind == apiServiceKind {
			services = append(services, at[i])
		}
		p.Steps = append(p.Steps, s)
	}
	// What takes the server long to empty goes as soon as it may.
	for _, s := range p.Steps[first:] {
		if s.ID.GroupKind == namespaceKind || s.ID.GroupKind == crdKind {
			s.Priority = len(steps)
		}
	}
	// Namespaces hang on deletion while an APIService without a backend stands:
	// the namespace controller cannot know what is in them.
	for _, s := range p.Steps[first:] {
		if s.ID.GroupKind != namespaceKind {
			continue
		}
		if s.ID.Name == in.Inventory.Namespace {
			named := map[int]bool{}
			for _, need := range s.Needs {
				named[need.Step] = true
			}
			for i := range p.Steps[first:] {
				if p.Steps[first+i] != s && !named[first+i] {
					s.Needs = append(s.Needs, Need{Step: first + i, Want: order.Ready, Reason: "goes before: the namespace holds the inventory"})
				}
			}
			continue
		}
		for _, service := range services {
			s.Needs = append(s.Needs, Need{Step: service, Want: order.Ready, Reason: "goes before: namespaces hang while an APIService is not available", Weak: true})
		}
	}
}
