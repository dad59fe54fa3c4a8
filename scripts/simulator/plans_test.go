package simulator

import (
	"context"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/plan"
	"brine/bundle/plan/saved"
	"brine/bundle/run"
	"brine/inventory"
	"brine/inventory/store"
	"brine/scripts/simulator/apiserver"
)

// Plans in the Secret beside the inventory: previews save them there, and applies of whoever
// has the bundle carry them out.

// previewsInSecret are a preview, often once more, of the same or of another bundle, and an
// apply of its plan: now or later, of whatever is there or of what was approved.
func previewsInSecret(r *rand.Rand, first step) []step {
	if r.IntN(2) == 0 {
		first.lifetime = time.Minute
	}
	if r.IntN(2) == 0 { // it refuses nothing
		first.policy, first.force, first.calm = plan.AdoptAll, true, true
	}
	all := []step{first}
	switch r.IntN(4) {
	case 0, 1:
		again := first
		again.calm = r.IntN(2) == 0
		all = append(all, again)
	case 2: // somebody else's, after the approval
		other := first
		other.text, other.calm = manifests(r, first.inventory), true
		all = append(all, other)
	}
	applies := first
	applies.command, applies.saves, applies.calm, applies.approved = "apply", false, r.IntN(2) == 0, r.IntN(2) == 0
	applies.later = []time.Duration{0, 0, 2 * time.Minute}[r.IntN(3)]
	if r.IntN(4) == 0 {
		applies.text = all[len(all)-1].text
	}
	return append(all, applies)
}

// isPlan says whether a write is of a Secret with a plan.
func isPlan(w *apiserver.Write) bool {
	return w.Kind == bundle.SecretKind && w.Namespace == home && strings.HasSuffix(w.Name, "-brine-plan")
}

// planInSecret does what the command line does with --plan-out=secret and --plan=secret.
func (d *done) planInSecret(ctx context.Context, c *cluster.Client, o *run.Options) error {
	place := store.PlanPlace(home, d.inventory)
	if d.saves {
		lifetime := d.lifetime
		if lifetime == 0 {
			lifetime = 24 * time.Hour
		}
		o.PlanOut = &run.PlanPlace{
			Name: place, Lifetime: lifetime,
			Read:  func(ctx context.Context, inv *store.Inventory) ([]byte, error) { return inv.ReadPlan(ctx) },
			Write: func(ctx context.Context, inv *store.Inventory, text []byte) error { return inv.WritePlan(ctx, text) },
		}
		return nil
	}
	text, err := store.ReadPlan(ctx, c, home, d.inventory)
	switch {
	case err != nil:
		return err
	case text == nil:
		return fmt.Errorf("there is no saved plan: %s is not there", place)
	}
	if err := saved.CheckApproved(place, text, d.digest); err != nil {
		return err
	}
	if o.SavedPlan, err = saved.ReadPlan(place, text, "simulated"); err == nil && len(o.Only) == 0 {
		o.Only, o.WithNeeds = o.SavedPlan.Only()
	}
	return err
}

// textIn is the text of the plan in a Secret; nothing where there is none.
func textIn(u *unstructured.Unstructured) []byte {
	if u == nil {
		return nil
	}
	packed, _, _ := unstructured.NestedString(u.Object, "data", "plan.json.zst")
	raw, _ := base64.StdEncoding.DecodeString(packed)
	text, _ := inventory.Decompress(raw)
	return text
}

// planIn is the plan that the Secret of an inventory has.
func (w *World) planIn(name string) *savedPlan {
	live := w.server.Get(bundle.SecretKind, home, inventory.PlanName(name))
	there, err := saved.ReadPlan(name, textIn(live), "simulated")
	known := w.inSecret[name]
	if err != nil || known == nil {
		return nil
	}
	return &savedPlan{of: known.of, plan: there, at: known.at, digest: saved.DigestText(textIn(live)), behind: known.behind}
}

// notePlan notes what a step has saved in the Secret, and told.
func (w *World) notePlan(d *done) {
	for _, entry := range w.server.Log[d.from:d.to] {
		if isPlan(entry) && entry.Actor == d.actor && entry.After != nil {
			w.inSecret[d.inventory] = &savedPlan{of: d.step, at: d.from, behind: d.behind}
		}
	}
	if d.secret && d.saves && d.result != nil && d.result.Plan != nil {
		w.approved[d.inventory] = d.result.Plan.Digest
	}
}

// asApproved: a plan that is too old, or is not the approved one, is not carried out.
func (o *oracle) asApproved() (wrong []string) {
	p := o.d.plan
	if o.d.command != "apply" || p == nil {
		return nil
	}
	why := ""
	switch {
	case o.d.digest != "" && o.d.digest != p.digest:
		why = "it is not the approved one"
	case !p.plan.Expires.IsZero() && o.d.began.After(p.plan.Expires):
		why = "it is too old"
	case p.plan.Inventory.Name != o.d.inventory:
		why = "it is that of another inventory"
	}
	for _, w := range o.own() {
		if why != "" {
			wrong = append(wrong, why+": "+w.String())
		}
	}
	return wrong
}

// planStays: only a preview with --plan-out writes the Secret, a destroy deletes it. A plan that
// still holds stays as it is. No plan has the value of a Secret.
func (o *oracle) planStays() (wrong []string) {
	for _, w := range o.own() {
		if !isPlan(w) {
			continue
		}
		p := o.d.plan
		holds := func() bool {
			for _, other := range o.server.Log[p.at:o.d.from] {
				if other.Kind.Kind != "Lease" && other.Actor != "system" && !isPlan(other) {
					return false
				}
			}
			return p.of.lifetime == o.d.lifetime && o.asWas(p) && o.d.began.Before(p.plan.Expires)
		}
		switch {
		case strings.Contains(string(textIn(w.After)), canary):
			wrong = append(wrong, "it has the value of a Secret: "+w.String())
		case w.After == nil && !o.d.secret:
		case !o.d.saves || !o.d.secret:
			wrong = append(wrong, "written by "+o.d.command+": "+w.String())
		case o.alone && p != nil && holds() && w.Before != nil:
			wrong = append(wrong, "it still held: "+w.String())
		}
	}
	return wrong
}

// somebodyMoves is a person who changes some of what a plan is about, before it is carried out.
func (w *World) somebodyMoves(p *saved.Plan) {
	for _, step := range p.Steps {
		k, ok := w.server.Find(func(k apiserver.Kind) bool { return k.GroupKind() == step.ID().GroupKind })
		if !ok || !k.Namespaced || w.rand.IntN(4) > 0 || !w.happens() {
			continue
		}
		at := apiserver.At(k, step.Namespace, step.Name)
		live := w.server.Objects[at]
		if live == nil {
			if k.Kind != "ConfigMap" { // others have other fields
				continue
			}
			u := bundle.V1(step.ID(), map[string]any{"data": map[string]any{"value": "theirs"}})
			if _, err := w.server.Create(person, k, u, false); err == nil {
				w.note("%s creates %s %s/%s", person, k.Plural, step.Namespace, step.Name)
			}
			continue
		}
		switch w.rand.IntN(3) {
		case 0:
			w.somebodyActsOn(at)
		case 1: // as it was, with its marks
			w.note("%s restores %s %s/%s", person, k.Plural, step.Namespace, step.Name)
			u := live.DeepCopy()
			u.SetResourceVersion("")
			if _, err := w.server.Delete(person, k, at, metav1.DeleteOptions{}, false); err == nil {
				_, _ = w.server.Create(person, k, u, false)
			}
		default:
			w.note("%s edits %s %s/%s", person, k.Plural, step.Namespace, step.Name)
			w.edit(k, live, func(u *unstructured.Unstructured) {
				switch k.Kind {
				case "ConfigMap":
					_ = unstructured.SetNestedField(u.Object, "theirs", "data", "value")
				case "Secret":
					_ = unstructured.SetNestedField(u.Object, "dGhlaXJz", "data", "password")
				case "Deployment":
					_ = unstructured.SetNestedField(u.Object, int64(3), "spec", "replicas")
				case "Widget":
					_ = unstructured.SetNestedField(u.Object, int64(5), "spec", "size")
				}
			})
		}
	}
}

// moved are writes of objects that are other ones than the plan was made for, or that change what
// has changed since.
func (o *oracle) moved(p *saved.Plan) (wrong []string) {
	steps, versions := bundle.By(p.Steps, func(s saved.Step) bundle.ID { return s.ID() }), map[string]*unstructured.Unstructured{}
	for _, w := range o.server.Log[:o.d.from] {
		if w.After != nil {
			versions[w.After.GetResourceVersion()] = w.After
		}
	}
	for _, w := range o.own() {
		id := bundle.ID{GroupKind: w.Kind, Namespace: w.Namespace, Name: w.Name}
		step, ok := steps[id]
		delete(steps, id) // only its first write: the next one may be of what the run created
		if !ok || o.goesBack() || o.bookkeeping(w) {
			continue
		}
		was := versions[step.ResourceVersion]
		switch {
		case w.Before == nil && step.UID != "" && w.Kind != bundle.JobKind: // Jobs expire
			wrong = append(wrong, "it was there when the plan was made: "+w.String())
		case w.Before == nil:
		case string(w.Before.GetUID()) != step.UID && w.Before.GetDeletionTimestamp() == nil:
			wrong = append(wrong, "it is another object than the plan's: "+w.String())
		case was != nil && w.After != nil && undoes(content(was), content(w.Before), content(w.After)):
			wrong = append(wrong, "it changes what has changed since the plan was made: "+w.String())
		}
	}
	return wrong
}

// undoes says whether a write changes a value that was another one before.
func undoes(was, before, after any) bool {
	there, isMap := before.(map[string]any)
	will, stays := after.(map[string]any)
	if !isMap || !stays {
		return !apiserver.Same(before, after) && !apiserver.Same(was, before)
	}
	had, _ := was.(map[string]any)
	for key := range there {
		if undoes(had[key], there[key], will[key]) {
			return true
		}
	}
	return false
}
