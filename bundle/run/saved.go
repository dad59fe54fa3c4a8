package run

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"brine/bundle/plan"
	"brine/bundle/preview"
	"brine/bundle/remedy"
	"brine/bundle/report"
)

// thisCluster reads which cluster this is.
func (r *run) thisCluster(ctx context.Context) (*plan.SavedCluster, error) {
	id, err := r.client.Identify(ctx, r.Inventory.Namespace)
	if err != nil {
		return nil, err
	}
	return &plan.SavedCluster{UID: id.UID, CA: id.CA}, nil
}

// bind is the plan, as it is saved, with the results of its dry run.
func (r *run) bind(in *plan.SavedCluster, p *plan.Plan, results []preview.Result) *plan.Saved {
	b := &plan.Saved{
		APIVersion: "brine.dev/v1", Kind: "Plan", Created: time.Now().UTC().Truncate(time.Second), Version: r.Version, Cluster: in,
		Digest: r.digest(), Inventory: plan.SaveInventory(&r.inv.Inventory), Steps: []plan.SavedStep{},
		Options: r.deciding(),
	}
	for i, s := range p.Steps {
		result := results[i]
		if result.Hidden {
			result.Stored = nil
		}
		b.Steps = append(b.Steps, plan.SaveStep(s, result.Action, result.Stored, r.record.Secrets.Text))
	}
	return b
}

// deciding are the options that decide what is done, as flags name them.
func (r *run) deciding() map[string]string {
	return map[string]string{
		"inventory-policy": r.Planning.Policy.String(),
		"no-prune":         fmt.Sprint(r.Planning.NoPrune && r.Planning.NoPruneReason == ""),
		"force-namespaces": fmt.Sprint(r.Planning.ForceNamespaces),
		"force-conflicts":  fmt.Sprint(r.client.Forces()),
		"recreate":         joined(r.Planning.Recreate),
		"take-over-from":   joined(r.Planning.TakeOverFrom),
		"cascade":          string(r.Cascade),
	}
}

// otherOptions warns where a revision was applied with other options than it is
// now: they are the run's and not the bundle's, so none of them is repeated
// without being asked for.
func (r *run) otherOptions() {
	now := r.deciding()
	for _, name := range slices.Sorted(maps.Keys(r.RevisionOptions)) {
		if was := r.RevisionOptions[name]; was != now[name] {
			r.record.Warn(fmt.Sprintf("the revision was applied with %s=%s, this run has %s=%s", remedy.Flag(name), was, remedy.Flag(name), now[name]))
		}
	}
}

func joined(names []string) string {
	names = slices.Clone(names)
	slices.Sort(names)
	return strings.Join(names, ",")
}

// confirm makes the plan that was bound anew, and ends the run before its first
// write, which is the lock, if it is not the same. What another run changes from
// here on, the lock finds out.
func (r *run) confirm(ctx context.Context, p *plan.Plan) error {
	if r.Bound == nil {
		return nil
	}
	in, err := r.thisCluster(ctx)
	if err != nil {
		return err
	}
	results, _, err := r.dryRun(ctx, p)
	if err != nil {
		return err
	}
	return r.unmoved(in, p, results)
}

func (r *run) unmoved(in *plan.SavedCluster, p *plan.Plan, results []preview.Result) error {
	moved := r.Bound.Drift(r.bind(in, p, results))
	if len(moved) == 0 {
		return nil
	}
	s := &report.Stop{Code: report.ExitBadBundle, Errors: []error{errors.New("the saved plan is out of date, and nothing was changed: make a new one with " + remedy.PlanOut)}}
	for _, m := range moved {
		s.Errors = append(s.Errors, errors.New(m))
	}
	return s
}

// savePlan saves the plan of a preview that found nothing wrong, where that is
// asked for.
func (r *run) savePlan(ctx context.Context, p *plan.Plan, results []preview.Result) error {
	if r.Bound == nil && r.PlanOut == nil {
		return nil
	}
	in, err := r.thisCluster(ctx)
	if err != nil {
		return err
	}
	if r.Bound != nil {
		if err := r.unmoved(in, p, results); err != nil {
			return err
		}
	}
	if r.PlanOut == nil {
		return nil
	}
	if len(r.record.Result.Errors) > 0 {
		r.record.Warn("no plan was written: it would fail")
		return nil
	}
	if !in.Known() {
		return &report.Stop{Code: report.ExitUnreachable, Errors: []error{errors.New("no plan was written: it could not say which cluster it is for; missing right: get namespaces kube-system")}}
	}
	if r.key != nil && r.key.Fresh() {
		r.record.Warn("the plan does not cover the values of Secrets: they are compared by keyed hashes, and the first apply makes the key of this inventory")
	}
	if err := r.PlanOut(r.bind(in, p, results)); err != nil {
		return fmt.Errorf("write the plan: %w", err)
	}
	return nil
}
