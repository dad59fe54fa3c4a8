package simulator

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/plan"
	"brine/bundle/plan/saved"
	"brine/bundle/report"
	"brine/bundle/run"
	"brine/inventory"
	"brine/inventory/admin"
	"brine/scripts/simulator/apiserver"
)

// The commands about inventories: split, merge, rename, adopt and repair.

var administrative = []string{"split", "merge", "rename", "adopt", "repair"}

func (s step) isAdministrative() bool { return slices.Contains(administrative, s.command) }

// administration is a command about inventories, and often the same once more, undisturbed.
func administration(r *rand.Rand, last step) []step {
	s := step{command: administrative[r.IntN(len(administrative))], inventory: "shop", into: "other", patience: last.patience, text: last.text}
	if r.IntN(3) == 0 {
		s.inventory, s.into = s.into, s.inventory
	}
	switch s.command {
	case "split":
		s.names = [][]string{{"ConfigMap/*/*"}, {"ConfigMap/*/a", "Secret/*/*"}, {"*/*/*"}, {"Namespace/*", "Deployment.apps/*/*"}}[r.IntN(4)]
	case "adopt":
		s.names = [][]string{{"ConfigMap/app/a"}, {"ConfigMap/app/b", "ConfigMap/app/c"}}[r.IntN(2)]
		s.found = r.IntN(2) == 0
		s.owners = [][]string{nil, {stranger}, {inventory.DefaultID(home, s.inventory)}}[r.IntN(3)]
	case "repair":
		s.into = s.inventory
		s.damaged = true
	}
	if s.command == "repair" || r.IntN(2) == 0 {
		again := s
		again.calm, again.found, again.damaged = true, false, false
		return []step{s, again}
	}
	return []step{s}
}

// administer does what the command line does with a command about inventories.
func (d *done) administer(ctx context.Context, c *cluster.Client) {
	named := func(name string) report.Inventory { return report.Inventory{Namespace: home, Name: name} }
	quiet := func(string) {}
	defer func() {
		text, _ := json.Marshal([]any{d.move, d.repair, fmt.Sprint(d.err)})
		d.printed += string(text)
	}()
	if d.command == "repair" {
		d.repair, d.err = admin.RepairInventory(ctx, c, admin.RepairOptions{Inventory: named(d.inventory), Version: "simulated", AllKinds: d.allKinds(), LockTimeout: d.patience, Report: quiet})
		if d.exit = run.ExitCode(d.err); d.err == nil {
			d.exit = d.repair.ExitCode
		}
		return
	}
	m := admin.MoveOptions{
		From: []report.Inventory{named(d.inventory)}, To: named(d.into), Remove: d.command == "merge" || d.command == "rename", Rename: d.command == "rename",
		Version: "simulated", LockTimeout: d.patience, Report: quiet,
	}
	chosen, err := admin.ParseSelector(d.names)
	switch d.err = err; {
	case err != nil:
	case d.command == "adopt":
		m.From = nil
		a := admin.AdoptOptions{MoveOptions: m, Owners: d.owners}
		if slices.Contains(d.owners, inventory.DefaultID(home, d.inventory)) {
			a.From, a.Owners = []report.Inventory{named(d.inventory)}, nil
		}
		if a.Objects, d.err = chosen.Named(ctx, c); d.err == nil {
			d.move, d.err = admin.Adopt(ctx, c, a)
		}
	default:
		if len(d.names) > 0 {
			m.Select = chosen.Chooses
		}
		d.move, d.err = admin.MoveMembers(ctx, c, m)
	}
	if d.exit = run.ExitCode(d.err); d.err == nil {
		d.exit = d.move.ExitCode
	}
}

// allKinds says whether a repair is told to search all kinds.
func (d *done) allKinds() bool { return d.calm || d.behind }

// somebodyDamages is a person who deletes an inventory's own ConfigMap, or all of it but the
// lock.
func (w *World) somebodyDamages(name string) {
	whole := w.rand.IntN(2) == 0
	for _, p := range w.server.Places() {
		if k := w.server.KindAt(p); p.Namespace == home && p.Resource == "configmaps" && (p.Name == name || whole && strings.HasPrefix(p.Name, name+"-")) {
			w.note("%s deletes configmaps %s/%s", person, home, p.Name)
			_, _ = w.server.Delete(person, k, p, metav1.DeleteOptions{}, false)
		}
	}
}

// administrationInvariants are those of the commands about inventories.
var administrationInvariants = []invariant{
	{"1 nothing that is not ours is deleted or changed", (*oracle).movesOnly},
	{"3 whatever carries our mark is in our inventory", (*oracle).administeredSuperset},
	{"3 a copy is no member", (*oracle).noCopies},
	{"6 the result is true", (*oracle).moveIsTrue},
	{"7 convergence", (*oracle).repeatedEnds},
	{"11 one writer", (*oracle).oneWriter},
	{"12 every run ends in its time", (*oracle).endsInTime},
	{"13 no secret", (*oracle).noSecret},
}

// movesOnly: of what members are, only the owner changes, and nothing is deleted.
func (o *oracle) movesOnly() (wrong []string) {
	from, to := inventory.DefaultID(home, o.d.inventory), inventory.DefaultID(home, o.d.into)
	for _, w := range o.own() {
		if o.bookkeeping(w) {
			continue
		}
		was := owner(w.Before)
		switch {
		case w.After == nil || w.Before == nil || w.After.GetDeletionTimestamp() != nil && w.Before.GetDeletionTimestamp() == nil:
			wrong = append(wrong, "created or deleted: "+w.String())
		case o.d.command == "repair":
			wrong = append(wrong, "changed: "+w.String())
		case owner(w.After) != to:
			wrong = append(wrong, fmt.Sprintf("given to %q: %s", owner(w.After), w))
		case was != to && (o.d.command != "adopt" && was != from || o.d.command == "adopt" && was != "" && !slices.Contains(o.d.owners, was)):
			wrong = append(wrong, fmt.Sprintf("changed an object of %q: %s", was, w))
		}
		defaulted := w.Kind.Kind == "Widget" && w.Before != nil && w.After != nil && covers(content(w.After), content(w.Before)) // by a new schema
		if w.Before != nil && w.After != nil && !defaulted && !apiserver.Same(content(o.admitted(w.Before)), content(w.After)) {
			wrong = append(wrong, "more than its owner changed: "+w.String())
		}
	}
	return wrong
}

// admitted is what webhooks make of an object that is written as it is.
func (o *oracle) admitted(u *unstructured.Unstructured) *unstructured.Unstructured {
	if o.server.Admit == nil {
		return u
	}
	u = u.DeepCopy()
	k, _ := o.server.Find(func(k apiserver.Kind) bool { return k.Group == u.GroupVersionKind().Group && k.Kind == u.GetKind() })
	_ = o.server.Admit(o.d.actor, k, u, u)
	return u
}

// content is all of an object but its metadata.
func content(u *unstructured.Unstructured) map[string]any {
	all := map[string]any{}
	for key, value := range u.Object {
		if key != "metadata" && key != "apiVersion" { // it is stored in the version that its CRD says by now
			all[key] = value
		}
	}
	return all
}

// listed are the members of an inventory as it is stored now.
func (o *oracle) listed(name string) map[bundle.ID]bool {
	at := map[string]*unstructured.Unstructured{}
	for p, u := range o.server.Objects {
		if p.Resource == "configmaps" && p.Namespace == home {
			at[p.Name] = u
		}
	}
	return members(at, name)
}

// moveIsTrue: with exit code 0 what moved is the target's, and no one else's. A repair has
// found all.
func (o *oracle) moveIsTrue() (wrong []string) {
	if !o.alone || o.d.exit != report.ExitOK {
		return nil
	}
	target, source := o.listed(o.d.into), o.listed(o.d.inventory)
	if o.d.command == "repair" {
		lost := o.lost(o.d.inventory)
		for p, u := range o.server.Objects {
			id := bundle.ID{GroupKind: o.server.KindAt(p).GroupKind(), Namespace: p.Namespace, Name: p.Name}
			elsewhere := len(o.d.around.denied) > 0 && !slices.ContainsFunc(slices.Collect(maps.Keys(target)), func(member bundle.ID) bool { return member.Namespace == id.Namespace })
			if elsewhere { // who may not list a kind everywhere searches the namespaces that the inventory says
				continue
			}
			if !isRestored(id) && owner(u) == o.id() && ours(u, o.d.inventory) && !target[id] && !lost[id] && !o.toldApart(id) {
				wrong = append(wrong, "repaired, and not a member: "+bundle.Name(id))
			}
		}
		return wrong
	}
	for _, moved := range o.d.move.Moved {
		id := moved.ID()
		switch live := o.server.Get(id.GroupKind, id.Namespace, id.Name); {
		case live != nil && owner(live) != inventory.DefaultID(home, o.d.into):
			wrong = append(wrong, fmt.Sprintf("moved, and of %q: %s", owner(live), bundle.Name(id)))
		case !target[id]:
			wrong = append(wrong, "moved, and not a member: "+bundle.Name(id))
		case o.d.command != "adopt" && source[id]:
			wrong = append(wrong, "moved, and still a member: "+bundle.Name(id))
		}
	}
	for _, removed := range o.d.move.Removed {
		if o.server.Get(bundle.ConfigMapKind, removed.Namespace, removed.Name) != nil {
			wrong = append(wrong, "removed, and there: inventory "+removed.Name)
		}
	}
	return wrong
}

// toldApart says whether a repair said of an object that it only looks like a member.
func (o *oracle) toldApart(id bundle.ID) bool {
	return o.d.repair != nil && slices.ContainsFunc(o.d.repair.NotAdded, func(not admin.Object) bool {
		return not.ID() == id && (strings.HasPrefix(not.Reason, "it is controlled by ") || strings.HasSuffix(not.Reason, "it may be a copy of one"))
	})
}

// administeredSuperset: a repair that says that kinds could not be searched knows of no members
// there.
func (o *oracle) administeredSuperset() []string {
	if o.d.repair != nil && (o.hidden || len(o.d.repair.NotSearched) > 0) {
		return nil
	}
	return o.superset()
}

// repeatedEnds: undisturbed, a command about inventories ends with exit code 0, or refuses
// (3), or says what it could not move (1).
func (o *oracle) repeatedEnds() []string {
	said := o.d.move != nil && len(o.d.move.NotMoved) > 0
	if !o.alone || o.behind || o.d.exit == report.ExitOK || o.d.exit == report.ExitBadBundle || len(o.d.around.denied) > 0 || len(o.d.around.hooks) > 0 && o.d.exit == report.ExitFailed || said && o.d.exit == report.ExitFailed {
		return nil
	}
	missing := o.server.Get(bundle.ConfigMapKind, home, o.d.into) == nil || o.server.Get(bundle.ConfigMapKind, home, o.d.inventory) == nil
	if o.d.command != "repair" && missing && strings.Contains(fmt.Sprint(o.d.err), "the inventory is damaged") { // its repair had no right to create it
		return nil
	}
	return []string{fmt.Sprintf("exit code %d: %v", o.d.exit, o.d.err)}
}

// called is how the table of what was covered calls the command.
func (s step) called() string {
	switch {
	case s.secret && s.command == "apply":
		return "apply with a plan in a Secret"
	case s.secret:
		return "preview into a Secret"
	case s.plan != nil:
		return "apply with a saved plan"
	}
	return s.command
}

func (s step) arguments() string {
	if !s.isAdministrative() || s.command == "repair" {
		return ""
	}
	return fmt.Sprintf(", into %s: %s %s", s.into, strings.Join(s.names, " "), strings.Join(s.owners, " "))
}

// savedPlan is a plan of a preview, to be carried out later.
type savedPlan struct {
	of   step
	plan *saved.Plan
	at   int // of the server's log

	digest string
	behind bool // an API server was that may have been asked
}

// asWas says whether a step has the bundle and the options of a plan, and what is around it is as it was when the plan
// was made. An API server that is behind does not know of the resources of a new CRD.
func (o *oracle) asWas(p *savedPlan) bool {
	return !o.behind && !p.behind && o.d.text == p.of.text && o.d.policy == p.of.policy && o.d.force == p.of.force && reflect.DeepEqual(o.d.options, p.of.options) && slices.Equal(o.d.around.denied, p.of.around.denied) && slices.Equal(o.d.around.hooks, p.of.around.hooks)
}

// planned makes a step carry out a saved plan.
func (p *savedPlan) planned(calm bool) step {
	s := p.of
	s.command, s.saves, s.plan, s.calm = "apply", false, p, calm
	return s
}

// asPlanned: a saved plan is carried out as it is, or refused without a write.
func (o *oracle) asPlanned() (wrong []string) {
	p := o.d.plan
	if p == nil || o.d.command != "apply" {
		return nil
	}
	expired := strings.Contains(strings.Join(o.d.result.Errors, " "), "the saved plan is out of date")
	planned := map[bundle.ID]plan.Action{}
	for _, s := range p.plan.Steps {
		planned[s.ID()] = s.Action
	}
	if o.alone && !expired {
		wrong = o.moved(p.plan)
	}
	for _, w := range o.own() {
		action, ok := planned[bundle.ID{GroupKind: w.Kind, Namespace: w.Namespace, Name: w.Name}]
		switch {
		case expired && (makesHome(w) || w.Kind.Kind == "Lease" && !o.alone): // it waited for the other one
		case expired:
			wrong = append(wrong, "the plan was refused, and written: "+w.String())
		case o.bookkeeping(w) || o.goesBack() || o.isRelease(w) || isRewritten(w): // what the options of the plan ask for
		case !ok && makesHome(w): // where the bundle does not have it, a warning of the preview says that it is made
		case !ok || action == plan.Skipped:
			wrong = append(wrong, fmt.Sprintf("not planned (%s): %s", action, w))
		case w.Verb == "delete" && action != plan.Pruned && action != plan.Recreated:
			wrong = append(wrong, fmt.Sprintf("planned was %s: %s", action, w))
		case action == plan.Unchanged && o.alone:
			wrong = append(wrong, fmt.Sprintf("planned was %s: %s", action, w))
		}
	}
	if !o.alone {
		return wrong
	}
	touched := false
	for _, w := range o.server.Log[p.at:o.d.to] {
		touched = touched || w.Kind.Kind != "Lease" && w.Actor != "system" && w.Actor != o.d.actor && !isPlan(w) || o.ends(w, planned)
	}
	if late := !p.plan.Expires.IsZero() && o.d.ended.After(p.plan.Expires); expired && !touched && !late && o.asWas(p) {
		wrong = append(wrong, "nothing has changed since the plan was made, and it was refused: "+strings.Join(o.d.result.Errors, "; "))
	}
	for id, action := range planned {
		if told := slices.ContainsFunc(o.d.result.Objects, func(r *report.ObjectResult) bool { return r.ID() == id }); !told && o.d.result.ExitCode == report.ExitOK && o.server.Get(id.GroupKind, id.Namespace, id.Name) != nil {
			wrong = append(wrong, fmt.Sprintf("nothing is said of %s, planned was %q", bundle.Name(id), action))
		}
	}
	for _, object := range o.d.result.Objects {
		action := planned[object.ID()]
		expired := action == plan.Recreated && object.Action == plan.Created && object.Kind == "Job" // it was removed by its TTL
		if o.d.result.ExitCode == report.ExitOK && object.Action != action && object.Action != plan.Awaited && !expired {
			wrong = append(wrong, fmt.Sprintf("%s is %q, planned was %q", bundle.Name(object.ID()), object.Action, action))
		}
	}
	return wrong
}

// ends says whether what controllers removed, since a plan was made, changes what is done with others.
func (o *oracle) ends(w *apiserver.Write, planned map[bundle.ID]plan.Action) bool {
	if w.Actor != "system" || w.After != nil {
		return false
	}
	switch planned[bundle.ID{GroupKind: w.Kind, Namespace: w.Namespace, Name: w.Name}] {
	case plan.Configured: // a Job that was adopted expired, and would run again; or its owner went
		return w.Verb == "expire" || w.Verb == "collect"
	case plan.Recreated: // it expired while the run asked what would become of it
		return w.Verb == "expire" && w.Seq > o.d.from
	case plan.Skipped, plan.Detached: // what holds it was kept with it
		return true
	case "": // what the plan creates has no namespace any more
		return bundle.HoldsObjects(w.Kind)
	}
	return w.Kind == bundle.CRDKind && w.Seq > o.d.from // its resources could not be listed any more
}
