package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"brine/bundle/plan"
)

// bind writes down the plan that the verdicts are of.
func (r *run) bind(verdicts []verdict) *plan.Bound {
	b := &plan.Bound{
		APIVersion: "brine.dev/v1", Kind: "Plan", Created: time.Now().UTC().Truncate(time.Second), Version: r.Version,
		Digest: r.bundle.Digest, Inventory: plan.BindInventory(r.inv), Steps: []plan.BoundStep{},
		Options: map[string]string{
			"inventory-policy": r.Plan.Policy.String(),
			"no-prune":         fmt.Sprint(r.Plan.NoPrune),
			"force-namespaces": fmt.Sprint(r.Plan.ForceNamespaces),
			"force-conflicts":  fmt.Sprint(r.client.Forces()),
			"recreate":         joined(r.Plan.Recreate),
			"take-over-from":   joined(r.Plan.TakeOverFrom),
			"cascade":          string(r.Cascade),
		},
	}
	for i, s := range r.plan.Steps {
		v := verdicts[i]
		if v.hidden {
			v.stored = nil
		}
		b.Steps = append(b.Steps, plan.BindStep(s, v.action, v.stored))
	}
	return b
}

func joined(names []string) string {
	names = slices.Clone(names)
	slices.Sort(names)
	return strings.Join(names, ",")
}

// confirm makes the plan that was bound anew, with the lock held, and ends the
// run before its first write if it is not the same.
func (r *run) confirm(ctx context.Context) error {
	if r.Bound == nil {
		return nil
	}
	verdicts, err := r.verdicts(ctx)
	if err != nil {
		return err
	}
	return r.unmoved(verdicts)
}

func (r *run) unmoved(verdicts []verdict) error {
	moved := r.Bound.Moved(r.bind(verdicts))
	if len(moved) == 0 {
		return nil
	}
	s := &stop{code: ExitBadBundle, errors: []error{errors.New("the plan holds no longer, and nothing was changed: make a new one with --plan-out")}}
	for _, m := range moved {
		s.errors = append(s.errors, errors.New(m))
	}
	return s
}

// handOut gives the plan of a preview that found nothing wrong to who asked for
// it.
func (r *run) handOut(verdicts []verdict) error {
	if r.Bound != nil {
		if err := r.unmoved(verdicts); err != nil {
			return err
		}
	}
	if r.PlanOut == nil {
		return nil
	}
	if len(r.record.result.Errors) > 0 {
		r.record.warn("no plan was written: it would fail")
		return nil
	}
	if err := r.PlanOut(r.bind(verdicts)); err != nil {
		return fmt.Errorf("write the plan: %w", err)
	}
	return nil
}
