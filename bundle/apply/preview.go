package apply

import (
	"context"

	"golang.org/x/sync/errgroup"

	"brine/bundle/cluster"
	"brine/bundle/diff"
	"brine/bundle/plan"
)

// preview asks the server what the plan would do, and changes nothing: no
// object, not the inventory, not the lock.
func (r *run) preview(ctx context.Context) error {
	results := r.record.start(r.plan)
	e := &execution{run: r, work: ctx}
	outcomes := make([]outcome, len(r.plan.Steps))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(r.Parallel)
	for i, step := range r.plan.Steps {
		n := &node{Step: step, index: i, result: results[i]}
		if n.Blocked != "" || n.Deletes() || n.Action == plan.Unchanged {
			outcomes[i] = outcome{node: n, action: step.Action}
			continue
		}
		group.Go(func() error {
			outcomes[i] = e.dryRun(ctx, n)
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for _, o := range outcomes {
		n := o.node
		n.result.Action = o.action
		if o.err != nil {
			n.result.Error = o.err.Error()
			n.result.Reason = o.err.Error()
			r.record.fail(e.about(n, o.err.Error()))
		} else if !n.Deletes() && o.stored != nil {
			d := diff.Objects(n.Live, o.stored, diff.Options{})
			n.result.Diff, n.result.Changes, n.result.Verified = d.Unified, d.Changes, "server"
		}
		r.record.done++
		r.record.tell(Event{Type: Acted, Object: n.result, Reason: n.result.Reason, Error: n.result.Error})
	}
	return nil
}

func (e *execution) dryRun(ctx context.Context, n *node) outcome {
	resource, err := e.client.Resource(n.GVK)
	if err != nil {
		return outcome{node: n, action: plan.Failed, err: err}
	}
	n.resource = resource
	stored, warnings, err := e.client.Apply(ctx, resource, n.ID, n.Body, cluster.Write{DryRun: true})
	switch {
	case isImmutable(err) && n.Recreate && n.Live != nil:
		return outcome{node: n, action: plan.Recreated}
	case err != nil:
		return outcome{node: n, action: plan.Failed, err: e.explain(n, err), warnings: warnings}
	}
	action := n.Action
	if n.Live != nil && !plan.Changed(n.Live, stored) {
		action = plan.Unchanged
	}
	return outcome{node: n, action: action, stored: stored, warnings: warnings}
}
