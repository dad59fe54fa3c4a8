package simulator

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"brine/bundle"
	"brine/bundle/report"
	"brine/scripts/simulator/apiserver"
)

// Flags by which a user lets brine do more, or less, than it would: --prune-first, --allow-empty,
// --deny, --with-needs, --verify full, --fail-after.

// gate is what denies writes of ConfigMap d while it is there.
var gate = bundle.ID{GroupKind: schema.GroupKind{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"}, Name: "gate"}

const (
	gateText = "---\napiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {name: gate, labels: {team: a}}\n" +
		"webhooks: [{name: gate.example.com, sideEffects: None, admissionReviewVersions: [v1], clientConfig: {url: 'https://gate.example.com'}}]\n"
	gated = "gate configmaps d" // a webhook, while there is the gate
	// denyText is a rule against every deletion.
	denyText = "nothing goes: self.objects.filter(o, o.action == 'pruned')\n"
)

// denials is that rule, read once.
var denials = sync.OnceValue(func() report.Deny {
	deny, err := report.ReadDeny("deny.yaml", []byte(denyText))
	if err != nil {
		panic(err)
	}
	return deny
})

// haveGates: bundles have a gate, or prune it first.
func haveGates(*rand.Rand) func(*rand.Rand, *scene) {
	return func(r *rand.Rand, one *scene) {
		s := &one.step
		if s.around.hooks = append(s.around.hooks, gated); s.isAdministrative() || s.secret || s.carriesOut {
			return
		}
		switch r.IntN(4) {
		case 0, 1:
			s.text += gateText
		case 2:
			s.options.pruneFirst = []string{gate.GroupKind.Kind + "/" + gate.Name}
		}
	}
}

// haveFailures: every second apply has --rollback-on-failure, and an object that fails.
func haveFailures(*rand.Rand) func(*rand.Rand, *scene) {
	return func(r *rand.Rand, one *scene) {
		s := &one.step
		if s.command != "apply" || s.secret || s.carriesOut || r.IntN(2) == 0 {
			return
		}
		switch s.onFailure, s.only = true, nil; r.IntN(4) {
		case 0:
			s.text, s.options.skipInvalid = s.text+"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: Not_A_Name, namespace: app}\n", true
		case 1, 2:
			s.around.hooks = append(s.around.hooks, "refuse-update configmaps "+[]string{"a", "b", "c", "d"}[r.IntN(4)])
		case 3:
			s.text = strings.ReplaceAll(s.text, "image: good", "image: broken")
		}
	}
}

// haveFlags: steps have the others.
func haveFlags(*rand.Rand) func(*rand.Rand, *scene) {
	return func(r *rand.Rand, one *scene) {
		s := &one.step
		if s.isAdministrative() || s.secret || s.carriesOut {
			return
		}
		switch r.IntN(6) {
		case 0:
			s.options.verify = true
		case 1:
			if s.command == "apply" && len(s.only) == 0 {
				s.text, s.options.empty, s.options.skipInvalid = "", r.IntN(2) == 0, false
			}
		case 2:
			s.options.withNeeds = len(s.only) > 0
		case 3:
			if s.options.deny = s.command == "apply"; s.options.deny && !s.calm && one.mood.name == undisturbed {
				one.mood = mood{name: aimed + string(dryRuns), faults: []fault{forbidden}, rate: 0.2, aim: dryRuns} // the apply is not refused
			}
		case 4:
			s.options.impatient = true
		}
	}
}

// flagsHold: what is pruned first goes before anything is written, and is there again where the run
// ends before it prunes; nothing goes that a rule denies, or because a bundle is empty; a partial
// run writes what it chose, and what that needs.
func (o *oracle) flagsHold() (wrong []string) {
	s := o.d.options
	if o.d.result == nil || o.d.result.Rollback != nil || o.d.bundle == nil || o.d.command == "rollback" && len(s.pruneFirst) == 0 {
		return nil
	}
	var opened, closed *apiserver.Write
	wrote, pruned := false, false
	for _, w := range o.own() {
		isGate, deletes := w.Kind == gate.GroupKind, w.Verb == "delete"
		switch {
		case o.bookkeeping(w) || makesHome(w):
			continue
		case isGate && deletes && len(s.pruneFirst) > 0:
			if opened = w; wrote {
				wrong = append(wrong, "others were written before it was pruned first: "+w.String())
			}
		case isGate && opened != nil:
			closed = w
		default:
			wrote, pruned = wrote || !deletes, pruned || deletes && !o.recreates(w)
		}
		wanted := slices.ContainsFunc(o.d.bundle.Objects, func(object *bundle.Object) bool {
			return object.ID == bundle.ID{GroupKind: w.Kind, Namespace: w.Namespace, Name: w.Name}
		})
		switch {
		case deletes && !wanted && s.deny && o.d.command == "apply":
			wrong = append(wrong, "it goes, though a rule denies it: "+w.String())
		case deletes && o.d.command == "apply" && o.d.text == "" && !s.empty && len(s.absent) == 0 && o.d.around.part.Name == "" && o.d.plan == nil:
			wrong = append(wrong, "it goes, because the bundle is empty: "+w.String())
		case o.d.only != nil && o.d.command == "apply" && w.Kind != bundle.ConfigMapKind && (!s.withNeeds || w.Kind != bundle.NamespaceKind):
			wrong = append(wrong, "it was not chosen: "+w.String())
		}
	}
	switch exit := o.d.result.ExitCode; {
	case opened == nil || !o.alone:
	case closed != nil:
		if !reflect.DeepEqual(closed.After.Object["webhooks"], opened.Before.Object["webhooks"]) || !reflect.DeepEqual(closed.After.GetLabels(), opened.Before.GetLabels()) || owner(closed.After) != owner(opened.Before) || !o.listed(o.d.inventory)[gate] {
			wrong = append(wrong, "it is not what it was before it was pruned first: "+closed.String())
		}
	case !pruned && !s.pruneAnyway && o.d.result.Summary.Failed+o.d.result.Summary.NotReady > 0 && !o.prunes():
		wrong = append(wrong, fmt.Sprintf("it is not put back, with exit code %d: %s", exit, opened))
	}
	return wrong
}

// prunes says whether the run began to prune the others: a refusal is an answer to that, too.
func (o *oracle) prunes() bool {
	return slices.ContainsFunc(o.d.result.Objects, func(other *report.ObjectResult) bool {
		return other.ID() != gate && (other.Action == "pruned" || other.Action == "failed" && !slices.ContainsFunc(o.d.bundle.Objects, func(object *bundle.Object) bool { return object.ID == other.ID() }))
	})
}

// isOpen says whether nothing denies what the gate denies.
func (w *World) isOpen() bool { return w.server.Get(gate.GroupKind, "", gate.Name) == nil }

// hasGates says whether the server of a history knows gates: those of before did not.
func hasGates(seed uint64) bool {
	return seed >= firstFlagged || slices.Contains([]string{"gates", "flags"}, *dimension)
}
