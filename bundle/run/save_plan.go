package run

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/plan"
	"brine/bundle/plan/saved"
	"brine/bundle/preview"
	"brine/bundle/remedy"
	"brine/bundle/report"
	"brine/inventory/store"
)

// Saved plans: what is saved, and whether it is still what would be done.

// PlanPlace is where a plan is saved.
type PlanPlace struct {
	Name     string        // for messages
	Lifetime time.Duration // after which the plan is not carried out any more; 0: no limit
	// Read is what is there, nothing where there is no plan.
	Read  func(context.Context, *store.Inventory) ([]byte, error)
	Write func(context.Context, *store.Inventory, []byte) error
}

func savedPlan(ctx context.Context, s *session, o *Options, in intent, results []preview.Result) (*saved.Plan, error) {
	on, err := s.client.Identify(ctx, o.Inventory.Namespace)
	if err != nil {
		return nil, err
	}
	b := &saved.Plan{
		APIVersion: saved.Version, Kind: "Plan", Created: time.Now().UTC().Truncate(time.Microsecond), Version: o.Version, Cluster: &saved.Cluster{UID: on.UID, CA: on.CA},
		Digest: digestOf(in.bundle, in.inventory.Key), Inventory: saved.MakeInventory(&in.inventory.Inventory), Steps: []saved.Step{},
		Options: decidingOptions(o, s.client),
	}
	b.Options["only"], b.Options["with-needs"] = saved.OnlyText(o.Only), fmt.Sprint(o.WithNeeds)
	b.Options["prune-first"] = joined(o.Planning.PruneFirst)
	// When the old objects go: empty where they wait for all, as of older versions, which know neither.
	b.Options["prune-anyway"], b.Options["wait"] = map[bool]string{true: "true"}[o.PruneAnyway], map[bool]string{true: "applied"}[o.WaitApplied]
	for i, planned := range in.plan.Steps {
		result := results[i]
		step := saved.MakeStep(planned, result.Action, result.Stored, s.record.Secrets.Text)
		step.Claims = result.Claims
		b.Steps = append(b.Steps, step)
	}
	return b, nil
}

// decidingOptions are those that decide what is done, as flags name them.
func decidingOptions(o *Options, c *cluster.Client) map[string]string {
	return map[string]string{
		"inventory-policy":        o.Planning.Policy.String(),
		"no-prune":                fmt.Sprint(o.Planning.NoPrune),
		"force-namespaces":        fmt.Sprint(o.Planning.ForceNamespaces),
		"force-conflicts":         fmt.Sprint(c.Forces()),
		"conflicts":               o.Planning.Conflicts.String(),
		"recreate":                joined(o.Planning.Recreate),
		"migrate-stored-versions": fmt.Sprint(o.Planning.MigrateStoredVersions),
		"take-over-from":          joined(o.Planning.TakeOverFrom),
		"cascade":                 string(o.Cascade),
		"ignore-fields":           saved.RulesText(o.Planning.IgnoreFields),
	}
}

// warnOfOtherOptions warns where a revision was applied with other options than it is
// now: they are the run's and not the bundle's, so none of them is repeated
// without being asked for.
func warnOfOtherOptions(s *session, o *Options) {
	now := decidingOptions(o, s.client)
	for _, name := range slices.Sorted(maps.Keys(o.RevisionOptions)) {
		if was := o.RevisionOptions[name]; was != now[name] {
			s.record.Warn(fmt.Sprintf("the revision was applied with %s=%s, this run has %s=%s", remedy.Flag(name), was, remedy.Flag(name), now[name]))
		}
	}
}

func joined(names []string) string {
	names = slices.Clone(names)
	slices.Sort(names)
	return strings.Join(names, ",")
}

// confirmSavedPlan dry-runs the plan again where a saved one is to be carried out, and ends
// the run before its first write if they differ. That write is the lock, which
// detects what another run changes from then on.
func confirmSavedPlan(ctx context.Context, s *session, o *Options, in intent) error {
	if o.SavedPlan == nil {
		return nil
	}
	found, err := dryRun(ctx, s, o, in)
	if err != nil {
		return err
	}
	now, err := savedPlan(ctx, s, o, in, found.results)
	if err != nil {
		return err
	}
	return compareSavedPlan(o.SavedPlan, now)
}

func compareSavedPlan(was, now *saved.Plan) error {
	drift := was.Drift(now)
	if len(drift) == 0 {
		return nil
	}
	outdated := "the saved plan is out of date, and nothing was changed: make a new one with " + remedy.PlanOut + " (see " + remedy.HelpExpiredPlan + ")"
	return &report.Stop{Code: report.ExitBadBundle, Errors: bundle.Each(append([]string{outdated}, drift...), errors.New)}
}

// savePlan saves the plan of a preview that found nothing wrong, where that is
// asked for.
func savePlan(ctx context.Context, s *session, o *Options, in intent, results []preview.Result) error {
	if o.SavedPlan == nil && o.PlanOut == nil {
		return nil
	}
	now, err := savedPlan(ctx, s, o, in, results)
	if err != nil {
		return err
	}
	if o.SavedPlan != nil {
		if err := compareSavedPlan(o.SavedPlan, now); err != nil {
			return err
		}
	}
	if o.PlanOut == nil {
		return nil
	}
	if len(s.record.Result.Errors) > 0 {
		s.record.Warn("no plan was written, because the preview found errors")
		return nil
	}
	if !now.Cluster.Known() {
		return &report.Stop{Code: report.ExitUnreachable, Errors: []error{errors.New("no plan was written: it could not say which cluster it is for; missing right: get namespaces kube-system")}}
	}
	if unread := plan.Unread(in.plan.Steps); len(unread) > 0 {
		return &report.Stop{Code: report.ExitUnreachable, Errors: append([]error{errors.New("no plan was written: what would be done is not known while objects cannot be read; try again")}, unread...)}
	}
	if key := in.inventory.Key; key != nil && key.Fresh() {
		s.record.Warn("the plan does not cover the values of Secrets: they are compared by keyed hashes, and the first apply makes the key of this inventory")
	}
	if o.PlanOut.Lifetime > 0 {
		now.Expires = now.Created.Add(o.PlanOut.Lifetime)
	}
	s.record.Result.Plan, err = putPlan(ctx, o, in.inventory, now)
	return err
}

// putPlan saves a plan where that is asked for. One that is there and still holds stays, with
// its digest, by which it may have been approved, and its age.
func putPlan(ctx context.Context, o *Options, inv *store.Inventory, now *saved.Plan) (*report.SavedPlan, error) {
	text, err := o.PlanOut.Read(ctx, inv)
	if err != nil {
		return nil, err
	}
	out := &report.SavedPlan{Place: o.PlanOut.Name}
	if there, err := saved.ReadPlan(out.Place, text, o.Version); err == nil {
		out.Kept, out.Was = there.StillHolds(now), saved.DigestText(text)
		if out.Kept {
			now = there
		}
	}
	if !out.Kept {
		if text, err = now.Encode(); err != nil {
			return nil, err
		}
		if err := o.PlanOut.Write(ctx, inv, text); err != nil {
			return nil, fmt.Errorf("write the plan: %w", err)
		}
	}
	out.Digest, out.Created, out.Expires = saved.DigestText(text), now.Created, now.Expires
	return out, nil
}
