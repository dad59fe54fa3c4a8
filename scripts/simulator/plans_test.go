package simulator

import (
	"context"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/plan"
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
	if err := plan.CheckApproved(place, text, d.digest); err != nil {
		return err
	}
	if o.SavedPlan, err = plan.ReadSaved(place, text, "simulated"); err == nil && len(o.Only) == 0 {
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
	saved, err := plan.ReadSaved(name, textIn(live), "simulated")
	known := w.inSecret[name]
	if err != nil || known == nil {
		return nil
	}
	return &savedPlan{of: known.of, plan: saved, at: known.at, digest: plan.DigestSaved(textIn(live))}
}

// notePlan notes what a step has saved in the Secret, and told.
func (w *World) notePlan(d *done) {
	for _, entry := range w.server.Log[d.from:d.to] {
		if isPlan(entry) && entry.Actor == d.actor && entry.After != nil {
			w.inSecret[d.inventory] = &savedPlan{of: d.step, at: d.from}
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
			return p.of.text == o.d.text && p.of.lifetime == o.d.lifetime && p.of.policy == o.d.policy && o.d.began.Before(p.plan.Expires)
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
