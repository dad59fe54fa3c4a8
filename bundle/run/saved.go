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

// saved is the plan, as it is saved, with the results of its dry run.
func (r *run) saved(in *plan.SavedCluster, p *plan.Plan, results []preview.Result) *plan.Saved {
	b := &plan.Saved{
		APIVersion: plan.SavedVersion, Kind: "Plan", Created: time.Now().UTC().Truncate(time.Second), Version: r.Version, Cluster: in,
		Digest: r.digest(), Inventory: plan.SaveInventory(&r.inv.Inventory), Steps: []plan.SavedStep{},
		Options: r.deciding(),
	}
	b.Options["only"], b.Options["with-needs"] = plan.OnlyText(r.Only), fmt.Sprint(r.WithNeeds)
	b.Options["prune-first"] = joined(r.Planning.PruneFirst)
	for i, s := range p.Steps {
		result := results[i]
		if result.Hidden {
			result.Stored = nil
		}
		step := plan.SaveStep(s, result.Action, result.Stored, r.record.Secrets.Text)
		step.Claims = result.Claims
		b.Steps = append(b.Steps, step)
	}
	return b
}

// deciding are the options that decide what is done, as flags name them.
func (r *run) deciding() map[string]string {
	return map[string]string{
		"inventory-policy":        r.Planning.Policy.String(),
		"no-prune":                fmt.Sprint(r.Planning.NoPrune && r.Planning.NoPruneReason == ""),
		"force-namespaces":        fmt.Sprint(r.Planning.ForceNamespaces),
		"force-conflicts":         fmt.Sprint(r.client.Forces()),
		"conflicts":               r.Planning.Conflicts.String(),
		"recreate":                joined(r.Planning.Recreate),
		"migrate-stored-versions": fmt.Sprint(r.Planning.MigrateStoredVersions),
		"take-over-from":          joined(r.Planning.TakeOverFrom),
		"cascade":                 string(r.Cascade),
		"ignore-fields":           plan.RulesText(r.Planning.IgnoreFields),
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

// confirm dry-runs the plan again where a saved one is to be carried out, and ends
// the run before its first write if they differ. That write is the lock, which
// detects what another run changes from then on.
func (r *run) confirm(ctx context.Context, p *plan.Plan) error {
	if r.SavedPlan == nil {
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
	return r.checkDrift(in, p, results)
}

func (r *run) checkDrift(in *plan.SavedCluster, p *plan.Plan, results []preview.Result) error {
	drift := r.SavedPlan.Drift(r.saved(in, p, results))
	if len(drift) == 0 {
		return nil
	}
	s := &report.Stop{Code: report.ExitBadBundle, Errors: []error{errors.New("the saved plan is out of date, and nothing was changed: make a new one with " + remedy.PlanOut)}}
	for _, d := range drift {
		s.Errors = append(s.Errors, errors.New(d))
	}
	return s
}

// savePlan saves the plan of a preview that found nothing wrong, where that is
// asked for.
func (r *run) savePlan(ctx context.Context, p *plan.Plan, results []preview.Result) error {
	if r.SavedPlan == nil && r.PlanOut == nil {
		return nil
	}
	in, err := r.thisCluster(ctx)
	if err != nil {
		return err
	}
	if r.SavedPlan != nil {
		if err := r.checkDrift(in, p, results); err != nil {
			return err
		}
	}
	if r.PlanOut == nil {
		return nil
	}
	if len(r.record.Result.Errors) > 0 {
		r.record.Warn("no plan was written, because the preview found errors")
		return nil
	}
	if !in.Known() {
		return &report.Stop{Code: report.ExitUnreachable, Errors: []error{errors.New("no plan was written: it could not say which cluster it is for; missing right: get namespaces kube-system")}}
	}
	if r.key != nil && r.key.Fresh() {
		r.record.Warn("the plan does not cover the values of Secrets: they are compared by keyed hashes, and the first apply makes the key of this inventory")
	}
	if err := r.PlanOut(r.saved(in, p, results)); err != nil {
		return fmt.Errorf("write the plan: %w", err)
	}
	return nil
}
