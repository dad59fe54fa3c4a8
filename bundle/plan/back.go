package plan

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"brine/bundle"
	"brine/bundle/order"
	"brine/inventory"
)

// Back is the way back to an earlier bundle, once a plan was carried out.
type Back struct {
	Inventory *inventory.Inventory // as it is before the plan
	Earlier   *bundle.Bundle
	// Stored are the objects of the steps as they would be then, nil where there would be
	// none, or that is not known; Actions what becomes of the steps.
	Stored  []*unstructured.Unstructured
	Actions []Action
	Options Options
	// Served says whether the server serves a version of a kind.
	Served func(schema.GroupVersionKind) bool
}

// Losses says what going back would lose or meet, object by object: the earlier bundle
// is planned as a rollback against the objects as they would be by then.
func (p *Plan) Losses(b Back) []bundle.Problem {
	losses := p.WayBack(b.Earlier.Objects, b.Options)
	before := map[bundle.ID]*bundle.Object{}
	defined := map[schema.GroupVersionKind]bool{}
	for _, o := range b.Earlier.Objects {
		before[o.ID] = o
		d, _ := bundle.DefinitionOf(o.Content)
		for _, v := range d.Versions {
			defined[d.Kind.WithVersion(v.Name)] = v.Served
		}
	}
	for i, s := range p.Steps {
		switch was := before[s.ID]; {
		case was == nil || b.Actions[i] != Recreated || s.Always:
		case recreates(was.Content, b.Options):
			losses = append(losses, bundle.Problem{ID: s.ID, Message: "it is deleted and created again, and once more on the way back"})
		default:
			losses = append(losses, bundle.Problem{ID: s.ID, Message: fmt.Sprintf("the server does not take the field back for which it is deleted and created again: annotation %s: %s allows that on the way back, too",
				bundle.OnImmutable, bundle.Recreate)})
		}
	}
	for _, o := range b.Earlier.Objects {
		if !defined[o.GVK] && !b.Served(o.GVK) {
			losses = append(losses, bundle.Problem{ID: o.ID, Message: fmt.Sprintf("this server does not serve %s: it cannot be applied as it was", o.GVK.GroupVersion())})
		}
	}
	back, problems := b.plan(p)
	losses = append(losses, problems...)
	if back == nil {
		return sideBySide(losses)
	}
	losses = append(losses, back.Refused...)
	wanted := map[bundle.ID]bool{}
	for _, s := range p.Steps {
		wanted[s.ID] = !s.Deletes()
	}
	for _, s := range back.Steps {
		if text := s.goes(); s.Deletes() && wanted[s.ID] && text != "" {
			losses = append(losses, bundle.Problem{ID: s.ID, Message: text})
		}
	}
	return sideBySide(losses)
}

// plan plans the earlier bundle against what the steps leave behind.
func (b Back) plan(p *Plan) (*Plan, []bundle.Problem) {
	graph, problems := order.Build(b.Earlier.Objects, order.Options{})
	if len(problems) > 0 {
		return nil, problems
	}
	inv := *b.Inventory
	inv.Members, inv.Origins, inv.Fingerprints = maps.Clone(inv.Members), maps.Clone(inv.Origins), nil
	if inv.Members == nil {
		inv.Members = map[bundle.ID]inventory.Status{}
	}
	maps.Copy(inv.Origins, p.Origins)
	in := Input{Graph: graph, Absent: b.Earlier.Absent, Inventory: &inv, Live: map[bundle.ID]*unstructured.Unstructured{}, Options: b.Options}
	in.Options.Undo, in.Options.MaxPrune, in.Options.TakeOverFrom = true, "", nil
	in.Options.Policy = AdoptAll
	for i, s := range p.Steps {
		live := b.Stored[i]
		if live == nil && s.Live != nil && b.Actions[i] != Pruned {
			live = s.Live
		}
		if live == nil && !s.Deletes() && s.Object != nil && b.Actions[i] == Created {
			live = s.Object.Content // the server could not be asked about it
		}
		if live == nil || b.Actions[i] == Pruned {
			delete(inv.Members, s.ID)
			continue
		}
		in.Live[s.ID] = live
		if s.Deletes() || s.ID.Name == "" || b.Actions[i] == Failed || b.Actions[i] == Skipped {
			continue
		}
		live = live.DeepCopy()
		inv.SetOwner(live)
		if b.Actions[i] == Created {
			live.SetUID(types.UID("created/" + s.ID.String()))
			inv.Origins[s.ID] = inventory.Origin{How: inventory.Created}.Of(live.GetUID())
		}
		in.Live[s.ID], inv.Members[s.ID] = live, inventory.Status{}
	}
	return Build(in)
}

// goes says what is lost with a member that the way back does not keep, or why it stays;
// "" if nothing is.
func (s *Step) goes() string {
	if s.Action != Pruned {
		return s.Reason
	}
	switch {
	case s.ID.GroupKind == bundle.PersistentVolumeClaimKind:
		return "it is new: going back deletes it, with the data that it has by then"
	case bundle.HoldsObjects(s.ID.GroupKind):
		return "it is new: going back deletes it, but keeps it if it contains objects outside the inventory by then"
	case ClaimsDie(s.Live):
		return "it is new: going back deletes it, and its claims with their data (persistentVolumeClaimRetentionPolicy)"
	}
	return ""
}

// sideBySide puts problems about the same object side by side, in the order of the
// first ones, and leaves out those that are said twice.
func sideBySide(problems []bundle.Problem) []bundle.Problem {
	at := map[bundle.ID]int{}
	for i, p := range problems {
		if _, known := at[p.ID]; !known {
			at[p.ID] = i
		}
	}
	slices.SortStableFunc(problems, func(a, b bundle.Problem) int { return at[a.ID] - at[b.ID] })
	return slices.CompactFunc(problems, func(a, b bundle.Problem) bool { return a.ID == b.ID && a.Message == b.Message })
}
