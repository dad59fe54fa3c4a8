package plan

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"brine/bundle"
	"brine/bundle/diff"
	"brine/bundle/order"
	"brine/bundle/remedy"
	"brine/inventory"
)

// What a way back to an earlier bundle would lose, or would not get through.

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
	before, defined := bundle.ByID(b.Earlier.Objects), map[schema.GroupVersionKind]bool{}
	for _, o := range b.Earlier.Objects {
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

// Irreversible says what in the plan could not be undone by applying an earlier bundle:
// what is deleted with its data, and fields that the server does not change back.
func (p *Plan) Irreversible(earlier []*bundle.Object, o Options) []bundle.Problem {
	before := bundle.ByID(earlier)
	var problems []bundle.Problem
	for _, s := range p.Steps {
		problem := bundle.Problem{ID: s.ID}
		if s.Deletes() {
			problem.Message = s.losesData(o)
		} else {
			problem = s.Object.Problem("", "")
			if was := before[s.ID]; was != nil && s.Action != Unchanged {
				problem.Message = s.irreversible(was.Content, o)
			}
		}
		if problem.Message != "" {
			problems = append(problems, problem)
		}
	}
	return problems
}

// losesData says what is lost with an object that is pruned; "" if it can be
// created again.
func (s *Step) losesData(o Options) string {
	if s.Action != Pruned {
		return ""
	}
	switch {
	case s.ID.GroupKind == bundle.PersistentVolumeClaimKind, s.ID.GroupKind == bundle.NamespaceKind:
		return "it would be pruned, and a rollback does not bring back what it contains"
	case s.ID.GroupKind == bundle.CRDKind && o.ForceNamespaces:
		return "it would be pruned with all of its resources, and a rollback does not bring those back that are not in the bundle"
	case ClaimsDie(s.Live):
		return "it would be pruned with its PersistentVolumeClaims (persistentVolumeClaimRetentionPolicy), and a rollback does not bring back their data"
	}
	return ""
}

// irreversible says which change of an object the server would not take back.
func (s *Step) irreversible(was *unstructured.Unstructured, o Options) string {
	now := s.Object.Content
	switch s.ID.GroupKind {
	case bundle.CRDKind:
		if o.Migrates(was, now) {
			return "" // they are rewritten on the way back
		}
		return storedForever(s.Live, now, was)
	case bundle.PersistentVolumeClaimKind:
		old, before := request(was.Object)
		larger, after := request(now.Object)
		if before && after && larger.Cmp(old) > 0 {
			return fmt.Sprintf("its size would grow from %s to %s, and the server does not shrink it again", old.String(), larger.String())
		}
	case bundle.ConfigMapKind, bundle.SecretKind:
		if now.Object["immutable"] == true && !diff.Equal(now, was) && !recreates(was, o) {
			return "it would become immutable with another content, and the earlier bundle does not allow to recreate it"
		}
	}
	return ""
}

// storedForever names a version in which resources of a CRD would be stored, and
// that the earlier CRD does not have.
func storedForever(live, now, was *unstructured.Unstructured) string {
	var stored []string
	if live != nil {
		stored = bundle.Items[string](live.Object, "status", "storedVersions")
	}
	next, _ := bundle.DefinitionOf(now)
	for _, v := range bundle.Where(next.Versions, func(v bundle.DefinedVersion) bool { return v.Storage }) {
		stored = append(stored, v.Name)
	}
	earlier, _ := bundle.DefinitionOf(was)
	for _, name := range stored {
		if !slices.ContainsFunc(earlier.Versions, func(v bundle.DefinedVersion) bool { return v.Name == name }) {
			return fmt.Sprintf("its resources would be stored as %s, which the earlier CRD does not have: that one can be applied only as long as there are none, or with %s, which rewrites them (annotation %s: %s)",
				name, remedy.MigrateStored, bundle.OnStoredVersion, bundle.StoredMigrate)
		}
	}
	return ""
}

// request is the size that a claim, or a template of one, asks for.
func request(claim map[string]any) (resource.Quantity, bool) {
	text := fmt.Sprint(bundle.At[any](claim, "spec", "resources", "requests", "storage")) // a bundle may write a number
	q, err := resource.ParseQuantity(text)
	return q, err == nil
}

// recreates says whether an object may be recreated for an immutable field.
func recreates(u *unstructured.Unstructured, o Options) bool {
	return o.recreation(u, u.GroupVersionKind().GroupKind()) != NoRecreation
}

// RecreatedForGood are the objects that the plan may recreate, and that the earlier
// bundle does not allow to recreate.
func (p *Plan) RecreatedForGood(earlier []*bundle.Object, o Options) map[bundle.ID]bool {
	found, before := map[bundle.ID]bool{}, bundle.ByID(earlier)
	for _, s := range p.Steps {
		if was := before[s.ID]; was != nil && s.Recreate != NoRecreation && !s.Always && s.Live != nil && s.Action == Configured && !recreates(was.Content, o) {
			found[s.ID] = true
		}
	}
	return found
}
