package run

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"brine/bundle"
	"brine/bundle/check"
	"brine/bundle/cluster"
	"brine/bundle/fields"
	"brine/bundle/plan"
	"brine/bundle/preview"
	"brine/bundle/ready"
	"brine/bundle/remedy"
	"brine/bundle/report"
	"brine/inventory"
	"brine/inventory/store"
)

// Runs that write nothing: a preview, a drift, a dry run without a server.

// asked is what the server says of a plan.
type asked struct {
	objects  []*report.ObjectResult
	results  []preview.Result
	readOnly bool // the user may write nothing at all
	invalid  bool // an apply would be refused for what objects say
}

func askServer(ctx context.Context, s *session, o *Options, in intent) (asked, error) {
	objects := s.record.Start(in.plan)
	previewOutside(ctx, s, in)
	found, err := dryRun(ctx, s, o, in)
	if err != nil {
		return asked{}, err
	}
	found.objects = objects
	preview.Report(s.record, in.plan, objects, found.results)
	return found, nil
}

func dryRun(ctx context.Context, s *session, o *Options, in intent) (asked, error) {
	results, denied, err := preview.Run(ctx, o.previewing(s, in))
	found := asked{results: results}
	if denied && err == nil {
		found.readOnly, err = preview.MissingRights(ctx, s.client, in.plan, o.Inventory.Namespace, s.record)
	}
	if err == nil {
		found.invalid, err = preview.ExplainInvalid(ctx, o.previewing(s, in), results)
	}
	return found, err
}

func (o *Options) previewing(s *session, in intent) preview.Input {
	return preview.Input{
		Client: s.client, Plan: in.plan, Inventory: in.inventory, Record: s.record, Options: o.writing(), Namespace: o.Namespace, CRDs: in.definitions,
		Rollback: o.Mode == Rollback, Drift: o.Mode == Drift,
	}
}

// askDeny has the server say what an apply would do, where there are rules over that.
func askDeny(ctx context.Context, s *session, o *Options, in intent) error {
	if len(o.Deny) == 0 {
		return nil
	}
	silent := &session{client: s.client, record: report.New(o.Header, func(report.Event) {})}
	silent.record.Result.DryRun = report.Server
	silent.record.Secrets.Bundle(in.bundle.Objects)
	asked, err := askServer(ctx, silent, o, in)
	if err != nil {
		return err
	}
	silent.record.Result.Review = preview.Review(ctx, s.client, in.plan, asked.objects, asked.results)
	return o.Deny.Stop(silent.record.Result, in.plan, asked.objects)
}

// foreseePruning says what would hold up the deletions that the preview shows, and whether
// the inventory's namespace would go with the inventory.
func foreseePruning(ctx context.Context, s *session, o *Options, in intent, results []preview.Result) {
	deleted, pruned, destroyed := &cluster.Deleted{}, 0, o.Mode == Destroy
	for i, step := range in.plan.Steps {
		if results[i].Action == plan.Pruned {
			deleted.Add(step.Live)
			pruned++
		}
		destroyed = destroyed && step.ID != inventoryNamespace(o) && (results[i].Action == plan.Pruned || results[i].Action == plan.Detached)
	}
	switch {
	case destroyed:
		removeNamespace(ctx, s, o, in.inventory, deleted)
		return
	case pruned == 0, o.WaitApplied, o.PruneAnyway:
		return
	}
	outcomes, hints := make([]plan.Outcome, len(results)), hintsOf(ctx, s, in)
	for i, step := range in.plan.Steps {
		if outcomes[i].Action = results[i].Action; results[i].Action == plan.Unchanged && in.isLate(step, hints) {
			outcomes[i].NotReady = ready.Of(step.Live, in.rules[step.ID], hints).Reason
		}
	}
	if kept := in.plan.HoldsPruning(outcomes, true); kept != "" {
		s.record.Warn(fmt.Sprintf("%s would be pruned once all is ready: %s. %s prunes nevertheless", bundle.Count(pruned, "object"), kept, remedy.PruneAnyway))
	}
}

// refusePlan reports a plan that is not carried out, with all that the server has against
// it, as its preview does.
func refusePlan(ctx context.Context, s *session, o *Options, in intent) error {
	objects := s.record.Start(in.plan)
	found, err := dryRun(ctx, s, o, in)
	if err != nil {
		return report.BadBundle(in.plan.Refused...)
	}
	results := found.results
	for i := range results {
		if action := results[i].Action; results[i].Err == nil && action != plan.Unchanged && action != plan.Skipped {
			results[i] = preview.Result{Action: plan.Skipped, Reason: fmt.Sprintf("it would be %s, but nothing is written", action)}
		}
	}
	preview.Report(s.record, in.plan, objects, results)
	return report.BadBundle(in.plan.Refused...)
}

// allMissingRights is the error of a dry run that may not read what is there: all
// rights that are missing, not only the first.
func allMissingRights(ctx context.Context, s *session, o *Options, b *bundle.Bundle, cause error) error {
	p := &plan.Plan{}
	for _, object := range b.Objects {
		p.Steps = append(p.Steps, &plan.Step{ID: object.ID, GVK: object.GVK, Object: object, Action: plan.Configured})
	}
	if _, err := preview.MissingRights(ctx, s.client, p, o.Inventory.Namespace, s.record); err != nil {
		return cause
	}
	if err := preview.Stop(s.record.Result.MissingRights, cause); err != nil {
		return err
	}
	return cause
}

// DriftFrom makes the options of a run those of a drift: the live objects are
// compared with a bundle, or, where that is nil, with a revision, whose bundle it
// returns: number, or, where that is 0, the last one of which all was applied. The
// fields that the run of this revision left to others are left out. Nothing is written.
func DriftFrom(ctx context.Context, inv *store.Inventory, b *bundle.Bundle, number int, o *Options) (*bundle.Bundle, error) {
	history, err := inv.History(ctx)
	if err != nil {
		return nil, err
	}
	content := &inventory.Content{}
	found, ok := inventory.LastApplied(history)
	if number > 0 {
		found, ok = inventory.Revision{Number: number, Result: "applied"}, true
	}
	switch {
	case ok:
		if content, err = inv.LoadRevision(ctx, found.Number); err != nil {
			return nil, err
		}
	case b == nil:
		return nil, &report.Stop{Code: report.ExitBadBundle, Errors: []error{fmt.Errorf(
			"inventory %s/%s has no revision that was applied without an error: %s; %s NUMBER compares with it, and -f with a bundle", inv.Namespace, inv.Name, inventory.NoTarget(history, 0), remedy.Revision)}}
	}
	if b == nil {
		b, o.Wanted = content.Bundle, fmt.Sprintf("revision %d", found.Number)
		o.Namespace = cmp.Or(content.Namespace, o.Namespace)
		if last := inv.Last(); last.Number > found.Number && number == 0 {
			b.Warnings = append(b.Warnings, bundle.Problem{Message: fmt.Sprintf("revision %d, the last one, is %s: the cluster is compared with revision %d, the last one that was applied", last.Number, last.Result, found.Number)})
		}
	}
	o.Mode, o.DryRun, o.Detailed = Drift, report.Server, true
	p := &o.Planning
	p.Policy, p.AllowEmpty, p.ForceNamespaces = plan.AdoptAll, true, true // a difference is reported, whatever an apply may do about it
	p.NoPrune = content.Options["no-prune"] == "true"
	p.Conflicts, err = compared(content.Options["conflicts"])
	if err == nil && p.IgnoreFields == nil && content.Options["ignore-fields"] != "" {
		err = json.Unmarshal([]byte(content.Options["ignore-fields"]), &p.IgnoreFields)
	}
	if err != nil {
		return nil, fmt.Errorf("read the options of revision %d: %w", found.Number, err)
	}
	return b, nil
}

// compared are rules about conflicts that leave to others what a run left to them.
// Any other conflict is a difference, with the value that the bundle wants.
func compared(rules string) (fields.ConflictRules, error) {
	parsed, err := fields.ParseConflictRules(strings.FieldsFunc(rules, func(r rune) bool { return r == ',' }))
	if err != nil {
		return nil, err
	}
	for i := range parsed {
		if parsed[i].Do == fields.Fail {
			parsed[i].Do = fields.Take
		}
	}
	return append(parsed, fields.ConflictRule{Manager: "*", Do: fields.Take}), nil
}

// Offline is Run without a server: what apply would do on a cluster that has
// nothing yet, as far as it can be known without asking one.
func Offline(ctx context.Context, b *bundle.Bundle, o Options, kubernetesVersion string, emit func(report.Event)) *report.Result {
	record := report.New(o.Header, emit)
	err := offline(ctx, record, b, &o, kubernetesVersion)
	return record.Finish(ctx, ExitCode(err), err, map[string]int{})
}

func offline(ctx context.Context, record *report.Recorder, b *bundle.Bundle, o *Options, kubernetesVersion string) error {
	if o.Mode == Destroy {
		return &report.Stop{Code: report.ExitBadBundle, Errors: []error{errors.New(remedy.DryRun + "=client cannot preview a destroy, because only the cluster knows the members of the inventory: use " + remedy.DryRun + "=server")}}
	}
	reportInvalid(record, b.Invalid)
	c, err := checkOffline(record, b, o, kubernetesVersion)
	record.Secrets.Bundle(b.Objects)
	if err != nil {
		return err
	}
	for _, w := range b.Warnings {
		record.Warn(w.Error())
	}
	for _, notice := range c.Graph.Notices {
		record.Warn(notice.Error())
	}
	if len(c.Problems) > 0 {
		return report.BadBundle(c.Problems...)
	}
	inv := inventory.Empty(o.Inventory.Namespace, o.Inventory.Name, o.Inventory.ID)
	record.Result.Inventory.ID = inv.ID
	if holdsSecrets(o, b) {
		inv.Key = inventory.NewKey(inv.Namespace, inv.Name)
	}
	keyDigests(record, o, b, inv.Key, nil)
	options := o.planning(b)
	options.Policy = plan.AdoptIfNoInventory
	p, problems := plan.Build(plan.Input{Graph: c.Graph, Absent: b.Absent, Inventory: inv, Options: options})
	if len(problems) > 0 {
		return report.BadBundle(problems...)
	}
	objects := c.Preview(ctx, record, p, kubernetesVersion)
	if err := o.Deny.Stop(record.Result, p, objects); err != nil {
		return err
	}
	if len(c.Faults) > 0 && !o.SkipInvalid {
		return &report.Stop{Code: report.ExitBadBundle}
	}
	return nil
}

// checkOffline checks the bundle, again without the invalid objects until there are none
// where SkipInvalid says so: who depends on them is next.
func checkOffline(record *report.Recorder, b *bundle.Bundle, o *Options, kubernetesVersion string) (*check.Findings, error) {
	for {
		c, err := check.Bundle(b, o.Namespace, kubernetesVersion, o.Readiness)
		if err != nil {
			return nil, &report.Stop{Code: report.ExitBadBundle, Errors: []error{err}}
		}
		c.Problems = append(c.Problems, inventory.Reserved(o.Inventory.Namespace, o.Inventory.Name, b)...)
		invalid := c.Problems
		if len(invalid) == 0 { // as apply does before it writes; other faults are for the server to find
			invalid = slices.DeleteFunc(slices.Clone(c.Faults), func(p bundle.Problem) bool { return !c.CRDs.Sound(p.ID.GroupKind) })
		}
		if !o.SkipInvalid || len(invalid) == 0 {
			return c, nil
		}
		if err := skipInvalid(record, o, b, invalid); err != nil {
			return nil, err
		}
	}
}
