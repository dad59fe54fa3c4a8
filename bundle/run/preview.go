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

// preview reports what the server says about the plan, and saves the plan where
// that is asked for.
func (r *run) preview(ctx context.Context, t target, p *plan.Plan) error {
	objects := r.record.Start(p)
	r.previewOutside(ctx, t, p)
	results, readOnly, err := r.dryRun(ctx, p)
	if err != nil {
		return err
	}
	preview.Report(r.record, p, objects, results)
	if r.Wanted == "" {
		r.foreseePruning(ctx, t, p, results)
		r.record.Result.Review = preview.Review(ctx, r.client, p, objects, results)
		r.record.Result.Review.Back = r.lookBack(ctx, p, results)
	}
	if !readOnly || r.Wanted != "" {
		if err := preview.Stop(r.record.Result.MissingRights); err != nil {
			return err
		}
	}
	if len(p.Refused) > 0 {
		return report.BadBundle(p.Refused...) // and no plan is saved
	}
	if err := r.Deny.Stop(r.record.Result, p, objects); err != nil {
		return err
	}
	return r.savePlan(ctx, p, results)
}

// askDeny has the server say what an apply would do, where there are rules over that.
func (r *run) askDeny(ctx context.Context, p *plan.Plan) error {
	if len(r.Deny) == 0 {
		return nil
	}
	record := r.record
	defer func() { r.record = record }()
	r.record = report.New(r.Header, func(report.Event) {})
	r.record.Result.DryRun = report.Server
	r.record.Secrets.Bundle(r.bundle.Objects)
	objects := r.record.Start(p)
	results, _, err := r.dryRun(ctx, p)
	if err != nil {
		return err
	}
	preview.Report(r.record, p, objects, results)
	r.record.Result.Review = preview.Review(ctx, r.client, p, objects, results)
	return r.Deny.Stop(r.record.Result, p, objects)
}

// dryRun asks the server about every step. readOnly: the user may write nothing
// at all.
func (r *run) dryRun(ctx context.Context, p *plan.Plan) (results []preview.Result, readOnly bool, err error) {
	results, denied, err := preview.Run(ctx, preview.Input{
		Client: r.client, Plan: p, Inventory: r.inv, Record: r.record, Options: r.writing(), Namespace: r.Namespace, CRDs: r.definitions(),
		Drift: r.Wanted != "",
	})
	if denied && err == nil {
		readOnly, err = preview.MissingRights(ctx, r.client, p, r.Inventory.Namespace, r.record)
	}
	return results, readOnly, err
}

// foreseePruning says what would hold up the deletions that the preview shows, and whether
// the inventory's namespace would go with the inventory.
func (r *run) foreseePruning(ctx context.Context, t target, p *plan.Plan, results []preview.Result) {
	deleted, pruned, destroyed := &cluster.Deleted{}, 0, r.Planning.Destroy
	for i, s := range p.Steps {
		if results[i].Action == plan.Pruned {
			deleted.Add(s.Live)
			pruned++
		}
		destroyed = destroyed && s.ID != r.ownNamespace() && (results[i].Action == plan.Pruned || results[i].Action == plan.Detached)
	}
	switch {
	case destroyed:
		r.removeNamespace(ctx, deleted)
		return
	case pruned == 0, r.WaitApplied, r.PruneAnyway:
		return
	}
	outcomes, hints := make([]plan.Outcome, len(results)), r.hints(ctx, p)
	for i, s := range p.Steps {
		if outcomes[i].Action = results[i].Action; results[i].Action == plan.Unchanged && t.isLate(s, hints) {
			outcomes[i].NotReady = ready.Of(s.Live, t.rules[s.ID], hints).Reason
		}
	}
	if kept := p.KeepsAll(outcomes, true); kept != "" {
		r.record.Warn(fmt.Sprintf("%s would be pruned once all is ready: %s. %s prunes nevertheless", bundle.Count(pruned, "object"), kept, remedy.PruneAnyway))
	}
}

// refuse reports a plan that is not carried out, with all that the server has against it,
// as its preview does.
func (r *run) refuse(ctx context.Context, p *plan.Plan) error {
	objects := r.record.Start(p)
	results, _, err := r.dryRun(ctx, p)
	if err != nil {
		return report.BadBundle(p.Refused...)
	}
	for i := range results {
		if action := results[i].Action; results[i].Err == nil && action != plan.Unchanged && action != plan.Skipped {
			results[i] = preview.Result{Action: plan.Skipped, Reason: fmt.Sprintf("it would be %s, but nothing is written", action)}
		}
	}
	preview.Report(r.record, p, objects, results)
	return report.BadBundle(p.Refused...)
}

// unreadable is the error of a dry run that may not read what is there: all
// rights that are missing, not only the first.
func (r *run) unreadable(ctx context.Context, cause error) error {
	p := &plan.Plan{}
	for _, o := range r.bundle.Objects {
		p.Steps = append(p.Steps, &plan.Step{ID: o.ID, GVK: o.GVK, Object: o, Action: plan.Configured})
	}
	if _, err := preview.MissingRights(ctx, r.client, p, r.Inventory.Namespace, r.record); err != nil {
		return cause
	}
	if err := preview.Stop(r.record.Result.MissingRights, cause); err != nil {
		return err
	}
	return cause
}
