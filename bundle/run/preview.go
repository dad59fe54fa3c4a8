package run

import (
	"context"
	"fmt"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/plan"
	"brine/bundle/preview"
	"brine/bundle/ready"
	"brine/bundle/remedy"
	"brine/bundle/report"
)

// What a preview asks of the server, and what stops it.

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
	silent := silently(s, o, in)
	asked, err := askServer(ctx, silent, o, in)
	if err != nil {
		return err
	}
	silent.record.Result.Review = preview.Review(ctx, s.client, in.plan, asked.objects, asked.results)
	return stopDenied(ctx, silent, o, in, asked)
}

// stopDenied is what the rules find in what the server says, or in what an apply would do at most.
func stopDenied(ctx context.Context, s *session, o *Options, in intent, said asked) error {
	if len(o.Deny) == 0 {
		return nil
	}
	most, more := preview.AtMost(in.plan, said.results)
	if more {
		s = silently(s, o, in)
		said.objects = s.record.Start(in.plan)
		preview.Report(s.record, in.plan, said.objects, most)
		s.record.Result.Review = preview.Review(ctx, s.client, in.plan, said.objects, most)
	}
	return o.Deny.Stop(s.record.Result, in.plan, said.objects)
}

// silently is a session that tells nothing.
func silently(s *session, o *Options, in intent) *session {
	record := report.New(o.Header, func(report.Event) {})
	record.Result.DryRun = report.Server
	record.Secrets.Bundle(in.bundle.Objects)
	return &session{client: s.client, record: record}
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
	results := found.results
	if err != nil { // what is planned is not done either
		results = bundle.Each(in.plan.Steps, func(step *plan.Step) preview.Result { return preview.Result{Action: step.Action, Reason: step.Reason} })
	}
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
	p := &plan.Plan{Steps: bundle.Each(b.Objects, func(object *bundle.Object) *plan.Step {
		return &plan.Step{ID: object.ID, GVK: object.GVK, Object: object, Action: plan.Configured}
	})}
	if _, err := preview.MissingRights(ctx, s.client, p, o.Inventory.Namespace, s.record); err != nil {
		return cause
	}
	if err := preview.Stop(s.record.Result.MissingRights, cause); err != nil {
		return err
	}
	return cause
}
