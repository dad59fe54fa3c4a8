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
	"brine/bundle/remedy"
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
	var losses []bundle.Problem
	add := func(problems ...bundle.Problem) {
		for _, problem := range problems {
			if !slices.ContainsFunc(losses, func(l bundle.Problem) bool { return l.ID == problem.ID && l.Message == problem.Message }) {
				losses = append(losses, problem)
			}
		}
	}
	add(p.Irreversible(b.Earlier.Objects, b.Options)...)
	before, defined := map[bundle.ID]*bundle.Object{}, map[schema.GroupVersionKind]bool{}
	for _, o := range b.Earlier.Objects {
		before[o.ID] = o
		d, _ := bundle.DefinitionOf(o.Content)
		for _, v := range d.Versions {
			defined[d.Kind.WithVersion(v.Name)] = v.Served
		}
	}
	for _, o := range b.Earlier.Objects {
		if !defined[o.GVK] && !b.Served(o.GVK) {
			add(bundle.Problem{ID: o.ID, Message: fmt.Sprintf("this server does not serve %s: it cannot be applied as it was", o.GVK.GroupVersion())})
		}
	}
	goes := map[bundle.ID]bool{}
	for i, s := range p.Steps {
		switch was := before[s.ID]; {
		case !s.Deletes() && was == nil:
			goes[s.ID] = true
		case was == nil || b.Actions[i] != Recreated || s.Always:
		case recreates(was.Content, b.Options):
			add(bundle.Problem{ID: s.ID, Message: "it is deleted and created again, and once more on the way back"})
		default:
			add(bundle.Problem{ID: s.ID, Message: fmt.Sprintf("the server does not take the field back for which it is deleted and created again: annotation %s: %s allows that on the way back, too",
				bundle.OnImmutable, bundle.Recreate)})
		}
	}
	back, problems := b.plan(p)
	add(problems...)
	if back == nil {
		return losses
	}
	add(back.Refused...)
	for _, s := range back.Steps {
		if text := s.loss(); goes[s.ID] && text != "" {
			add(bundle.Problem{ID: s.ID, Message: text})
		}
	}
	return losses
}

// plan plans the earlier bundle against what the steps leave behind.
func (b Back) plan(p *Plan) (*Plan, []bundle.Problem) {
	graph, problems := order.Build(b.Earlier.Objects, order.Options{})
	if len(problems) > 0 {
		return nil, problems
	}
	inv := *b.Inventory
	inv.Members, inv.Origins, inv.Fingerprints = map[bundle.ID]inventory.Status{}, maps.Clone(inv.Origins), nil
	maps.Copy(inv.Origins, p.Origins)
	in := Input{Graph: graph, Absent: b.Earlier.Absent, Inventory: &inv, Live: map[bundle.ID]*unstructured.Unstructured{}, Options: b.Options}
	in.Options.Undo, in.Options.MaxPrune, in.Options.TakeOverFrom, in.Options.Policy = true, "", nil, AdoptAll
	for i, s := range p.Steps {
		live := s.Live
		switch action := b.Actions[i]; {
		case action == Pruned:
			continue
		case b.Stored[i] != nil:
			live = b.Stored[i]
		case action == Created:
			live = s.Object.Content // the server could not be asked about it
		}
		if live == nil || s.ID.Name == "" {
			continue
		}
		if s.Member || slices.Contains([]Action{Created, Configured, Recreated, Unchanged}, b.Actions[i]) {
			inv.Members[s.ID] = inventory.Status{}
			if !Owned(live, inv.ID) || b.Actions[i] == Created {
				live = live.DeepCopy()
				inv.SetOwner(live)
			}
		}
		if b.Actions[i] == Created {
			live.SetUID(types.UID("created/" + s.ID.String()))
			inv.Origins[s.ID] = inventory.Origin{How: inventory.Created}.Of(live.GetUID())
		}
		in.Live[s.ID] = live
	}
	return Build(in)
}

// loss is what is lost with a member that the way back does not keep, or why it stays;
// "" if nothing is.
func (s *Step) loss() string {
	switch {
	case s.Action != Pruned:
		return s.Reason
	case s.ID.GroupKind == bundle.PersistentVolumeClaimKind:
		return "it is new: going back deletes it, with the data that it has by then"
	case s.ID.GroupKind == bundle.CRDKind:
		return "it is new: going back deletes it with the resources that are in the inventory, and keeps it if there are others by then"
	case bundle.HoldsObjects(s.ID.GroupKind):
		return "it is new: going back deletes it, and keeps it if objects outside the inventory are in it by then"
	case s.ID.GroupKind.Kind == "ValidatingAdmissionPolicy" && s.ID.GroupKind.Group == "admissionregistration.k8s.io":
		return fmt.Sprintf("it is new: if it denies the earlier objects, going back needs %s=%s/%s", remedy.PruneFirst, s.ID.GroupKind.Kind, s.ID.Name)
	case ClaimsDie(s.Live):
		return "it is new: going back deletes it, and its claims with their data (persistentVolumeClaimRetentionPolicy)"
	}
	return ""
}
