package run

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"brine/bundle"
	"brine/bundle/plan"
	"brine/bundle/preview"
	"brine/bundle/redact"
	"brine/bundle/remedy"
	"brine/bundle/report"
	"brine/bundle/review"
	"brine/inventory"
)

// keptBack is the share of the time that is kept for a rollback.
const keptBack = 3

// wayBack is what a run that fails is rolled back with.
type wayBack struct {
	command context.Context //nolint:containedctx // the whole command's: the apply itself has less time
	locked  context.Context //nolint:containedctx // the same, with the lock
	until   time.Time       // the end of the apply; zero is none
	content *inventory.Content
	before  map[bundle.ID]*plan.Was // what the run adopts, as it is
	number  int                     // of the revision; 0 if there is nothing to go back to
}

// keepTime is the context of the apply: it ends early enough for a rollback.
func (b *wayBack) keepTime(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	b.command = ctx
	if deadline, ok := ctx.Deadline(); ok {
		b.until = deadline.Add(-timeout / keptBack)
	}
	return b.limit(ctx)
}

// limit ends a context with the apply.
func (b *wayBack) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	if b.until.IsZero() {
		return context.WithCancel(ctx)
	}
	cause := fmt.Errorf("%w: the rest of %s is kept for the rollback", report.ErrTimeout, remedy.Timeout)
	return context.WithDeadlineCause(ctx, b.until, cause)
}

// planWayBack finds the revision that a failed run goes back to, and refuses the
// plan if there is none, or if the plan does what no rollback can undo.
func (r *run) planWayBack(ctx context.Context, p *plan.Plan) error {
	if p.ChangesNothing() {
		return nil // nothing to be undone
	}
	refuse := func(problems ...bundle.Problem) {
		for _, problem := range problems {
			problem.Message = fmt.Sprintf("%s: %s", remedy.RollbackOnFailure, problem.Message)
			p.Refused = append(p.Refused, problem)
		}
	}
	history, err := r.inv.History(ctx)
	if err != nil {
		return err
	}
	good, ok := inventory.LastGood(history)
	switch {
	case !ok:
		refuse(bundle.Problem{Message: fmt.Sprintf("inventory %s/%s has no revision that was applied without an error: there is nothing to go back to. Leave the flag out for the first apply; %s", r.inv.Namespace, r.inv.Name, inventory.NoTarget(history, 0))})
		return nil
	case good.Digest == r.digest() || good.Digest == r.bundle.Digest:
		r.record.Warn(fmt.Sprintf("%s has no effect: the bundle is that of revision %d, the last good one", remedy.RollbackOnFailure, good.Number))
		return nil
	}
	content, err := r.inv.LoadRevision(ctx, good.Number)
	if err != nil {
		return err
	}
	refuse(p.WayBack(content.Bundle.Objects, r.Planning)...)
	oneWay := p.RecreatesOneWay(content.Bundle.Objects, r.Planning)
	if len(oneWay) > 0 {
		results, _, err := r.dryRun(ctx, p) // only the server knows which fields are immutable
		if err != nil {
			return err
		}
		for i, s := range p.Steps {
			if oneWay[s.ID] && results[i].Action == plan.Recreated {
				refuse(s.Object.Problem("", fmt.Sprintf("it would be recreated, and revision %d does not allow to recreate it: annotate it there, or use %s=%s", good.Number, remedy.Recreate, s.ID.GroupKind.Kind)))
			}
		}
	}
	if r.back != nil {
		r.back.number, r.back.content, r.back.before = good.Number, content, map[bundle.ID]*plan.Was{}
		for id, live := range p.Adopts() {
			r.back.before[id] = &plan.Was{Unstructured: live.DeepCopy()}
		}
	}
	return nil
}

// lookBack says what going back to the last good revision would lose or meet, once
// the plan was carried out; nil where it changes nothing, or nothing can be undone.
func (r *run) lookBack(ctx context.Context, p *plan.Plan, results []preview.Result) *review.WayBack {
	changes := slices.ContainsFunc(results, func(one preview.Result) bool { return one.Action != plan.Unchanged && one.Action != plan.Skipped })
	if !changes || r.Planning.Destroy || r.chosen != nil || r.inv.Last().Number == 0 || r.Command == inventory.Rollback {
		return nil
	}
	unknown := func(number int, err error) *review.WayBack {
		back := review.NewWayBack(number, nil)
		back.Unknown = err.Error()
		return back
	}
	history, err := r.inv.History(ctx)
	if err != nil {
		return unknown(0, err)
	}
	good, ok := inventory.LastGood(history)
	if !ok || good.Digest == r.digest() || good.Digest == r.bundle.Digest {
		return nil
	}
	content, err := r.inv.LoadRevision(ctx, good.Number)
	if err != nil {
		return unknown(good.Number, err)
	}
	_, failed := r.client.Listable()
	b := plan.Back{Inventory: &r.inv.Inventory, Earlier: content.Bundle, Options: r.Planning, Served: func(gvk schema.GroupVersionKind) bool {
		_, err := r.client.Resource(gvk)
		return err == nil || failed[gvk.GroupVersion()] != nil
	}}
	if r.HistoryLimit > 0 { // the run's revision would keep what it adopts
		b.Options.Before = map[bundle.ID]*plan.Was{}
		for id, live := range p.Adopts() {
			if !redact.Holds(live) {
				b.Options.Before[id] = &plan.Was{Unstructured: live, Kept: true}
			}
		}
	}
	for _, one := range results {
		b.Stored, b.Actions = append(b.Stored, one.Stored), append(b.Actions, one.Action)
	}
	return review.NewWayBack(good.Number, p.Losses(b))
}

// mayGoBack says whether a run with an exit code is rolled back.
func (r *run) mayGoBack(exit int) bool {
	return r.back != nil && r.back.number > 0 && r.began && (exit == report.ExitFailed || exit == report.ExitNotReady)
}

// goBack applies the last good revision again, under the same lock. The result
// holds the outcome of both.
func (r *run) goBack(o Options, emit func(report.Event)) {
	ctx, to := r.back.command, r.back
	result := r.record.Result
	r.record.Warn(fmt.Sprintf("the run failed with exit code %d: rolling back to revision %d", result.ExitCode, to.number))
	o.Command, o.Detailed, o.Derived, o.RollbackOnFailure = inventory.Rollback, false, false, false
	o.Revision, o.RevisionOptions, o.Sources = to.number, to.content.Options, to.content.Sources
	o.Namespace = cmp.Or(to.content.Namespace, o.Namespace)
	o.Planning.Before = to.before
	o.SavedPlan, o.PlanOut, o.Planning.MaxPrune, o.Planning.PruneFirst, o.Deny = nil, nil, "", nil, nil // all that the failed run created goes
	back := &run{Options: o, client: r.client, bundle: to.content.Bundle, after: newShutdown(ctx), lock: r.lock, held: to.locked, origins: r.origins}
	back.record = report.New(o.Header, func(e report.Event) {
		if _, over := e.Payload.(report.Finished); !over {
			emit(e)
		}
	})
	back.record.Begin = r.record.Begin
	back.record.Secrets.Bundle(r.bundle.Objects)
	sent := r.client.Requests.Counts()
	r.client.OnRetry(back.record.Retrying)
	r.client.OnSecret(back.record.Secrets.Read)
	err := back.run(ctx)
	requests := r.client.Requests.Counts()
	for verb, n := range sent {
		requests[verb] -= n
	}
	result.Rollback = back.record.Finish(ctx, ExitCode(err), timedOut(ctx, err), requests)
	r.inv, r.after, r.returns = back.inv, back.after, back.returns // the lock is released as after that run
	switch came := result.Rollback; {
	case came.Interrupted != "":
		result.ExitCode, result.Interrupted = came.ExitCode, came.Interrupted
	case came.ExitCode == report.ExitOK:
		result.ExitCode = report.ExitRolledBack
		r.record.Fail(fmt.Sprintf("rolled back to revision %d", to.number))
	default:
		result.ExitCode = report.ExitFailed
		r.record.Fail(fmt.Sprintf("the rollback to revision %d failed: %s", to.number, failures(came)))
	}
}

// failures are the errors of a result, or what is not ready.
func failures(r *report.Result) string {
	lines := r.Errors
	for _, o := range r.Objects {
		if o.Ready == report.StateNotReady || o.Ready == report.StateFailed {
			lines = append(lines, o.About("is not ready: "+o.Reason))
		}
	}
	if len(lines) == 0 {
		return fmt.Sprintf("exit code %d", r.ExitCode)
	}
	return strings.Join(lines, "; ")
}
