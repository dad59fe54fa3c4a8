package run

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"brine/bundle"
	"brine/bundle/plan"
	"brine/bundle/preview"
	"brine/bundle/redact"
	"brine/bundle/remedy"
	"brine/bundle/report"
	"brine/bundle/review"
	"brine/bundle/shutdown"
	"brine/inventory"
)

// The rollback of a run that failed: where it goes, what cannot be undone, and the second run.

// rollbackReserve is the share of the time that is kept for a rollback.
const rollbackReserve = 3

// keepRollbackReserve is the context of an apply: where it is rolled back on failure, it
// ends early enough for that.
func (o *Options) keepRollbackReserve(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok || !o.RollbackOnFailure || o.DryRun != report.None {
		return context.WithCancel(ctx)
	}
	cause := fmt.Errorf("%w: the rest of %s is kept for the rollback", report.ErrTimeout, remedy.Timeout)
	return context.WithDeadlineCause(ctx, deadline.Add(-o.Timeout/rollbackReserve), cause)
}

type rollbackTarget struct {
	number  int // of the revision
	content *inventory.Content
	before  map[bundle.ID]*plan.Was // what the run adopts, as it is
}

// findRollbackTarget finds the revision that a failed run goes back to, nil where nothing
// has to be undone. It refuses the plan if there is none, or if the plan does what no
// rollback can undo.
func findRollbackTarget(ctx context.Context, s *session, o *Options, in intent) (*rollbackTarget, error) {
	p, inv := in.plan, in.inventory
	if p.ChangesNothing() {
		return nil, nil
	}
	refuse := func(problems ...bundle.Problem) {
		for _, problem := range problems {
			problem.Message = fmt.Sprintf("%s: %s", remedy.RollbackOnFailure, problem.Message)
			p.Refused = append(p.Refused, problem)
		}
	}
	past, err := inv.Past(ctx)
	if err != nil {
		return nil, err
	}
	history := past.Standing()
	good, ok := inventory.LastGood(history)
	switch {
	case !ok:
		refuse(bundle.Problem{Message: fmt.Sprintf("inventory %s/%s has no revision that was applied without an error: there is nothing to go back to. Leave the flag out for the first apply; %s", inv.Namespace, inv.Name, inventory.NoTarget(history, 0))})
		return nil, nil
	case in.isOf(good):
		s.record.Warn(fmt.Sprintf("%s has no effect: the bundle is that of revision %d, the last good one", remedy.RollbackOnFailure, good.Number))
		return nil, nil
	}
	content, err := inv.LoadRevision(ctx, good.Number)
	if err != nil {
		return nil, err
	}
	options := o.planning(in.bundle)
	refuse(p.Irreversible(content.Bundle.Objects, options)...)
	if irreversible := p.RecreatedForGood(content.Bundle.Objects, options); len(irreversible) > 0 {
		found, err := dryRun(ctx, s, o, in) // only the server knows which fields are immutable
		if err != nil {
			return nil, err
		}
		for i, step := range p.Steps {
			if irreversible[step.ID] && preview.MayRecreate(step, found.results[i]) {
				refuse(step.Object.Problem("", fmt.Sprintf("it may be recreated, and revision %d does not allow to recreate it: annotate it there, or use %s=%s", good.Number, remedy.Recreate, step.ID.GroupKind.Kind)))
			}
		}
	}
	target := &rollbackTarget{number: good.Number, content: content, before: map[bundle.ID]*plan.Was{}}
	for id, live := range p.Adopts() {
		target.before[id] = &plan.Was{Unstructured: live.DeepCopy()}
	}
	return target, nil
}

// isOf says whether a revision keeps the bundle, also where an older version saved it with a plain digest.
func (in intent) isOf(r inventory.Revision) bool {
	return r.Digest == digestOf(in.bundle, in.inventory.Key) || r.Digest == in.bundle.Digest
}

// previewGoingBack says what going back to the last good revision would lose or meet, once
// the plan was carried out; nil where it changes nothing, or nothing can be undone.
func previewGoingBack(ctx context.Context, s *session, o *Options, in intent, results []preview.Result) *review.GoingBack {
	changes := slices.ContainsFunc(results, func(one preview.Result) bool { return one.Action != plan.Unchanged && one.Action != plan.Skipped })
	if !changes || o.Mode != Apply || in.chosen != nil || in.inventory.Last().Number == 0 {
		return nil
	}
	unknown := func(number int, err error) *review.GoingBack {
		back := review.NewGoingBack(number, nil)
		back.Unknown = err.Error()
		return back
	}
	past, err := in.inventory.Past(ctx)
	if err != nil {
		return unknown(0, err)
	}
	good, ok := inventory.LastGood(past.Standing())
	if !ok || in.isOf(good) {
		return nil
	}
	content, err := in.inventory.LoadRevision(ctx, good.Number)
	if err != nil {
		return unknown(good.Number, err)
	}
	_, failed := s.client.Listable()
	b := plan.Back{Inventory: &in.inventory.Inventory, Earlier: content.Bundle, Options: o.planning(in.bundle), Served: func(gvk schema.GroupVersionKind) bool {
		_, err := s.client.Resource(gvk)
		return err == nil || failed[gvk.GroupVersion()] != nil
	}}
	if o.HistoryLimit > 0 { // the run's revision would keep what it adopts
		b.Options.Before = map[bundle.ID]*plan.Was{}
		for id, live := range in.plan.Adopts() {
			if !redact.Holds(live) {
				b.Options.Before[id] = &plan.Was{Unstructured: live, Kept: true}
			}
		}
	}
	refused := 0
	for _, one := range results {
		b.Stored, b.Actions = append(b.Stored, one.Stored), append(b.Actions, one.Action)
		if one.Action == plan.Failed || one.Action == plan.Skipped {
			refused++
		}
	}
	back := review.NewGoingBack(good.Number, in.plan.Losses(b))
	if refused > 0 {
		back.Unknown = bundle.Count(refused, "object") + " would fail or be skipped"
	}
	return back
}

func (in intent) mayRollBack(exit int) bool {
	return in.begun && in.back != nil && (exit == report.ExitFailed || exit == report.ExitNotReady)
}

// rollBack applies the last good revision again, under the same lock: the same stages with
// another bundle. The result of the session holds the outcome of both. o and failed are of
// the run that failed.
func rollBack(ctx context.Context, s *session, o Options, failed intent, emit func(report.Event)) intent {
	result, to := s.record.Result, failed.back
	s.record.Warn(fmt.Sprintf("the run failed with exit code %d: rolling back to revision %d", result.ExitCode, to.number))
	s.after.Stop()
	s.after = shutdown.New(ctx) // which has more time than the run that failed
	o = o.rollingBack(to)
	record := report.New(o.Header, func(e report.Event) {
		if _, ended := e.Payload.(report.Finished); !ended {
			emit(e)
		}
	})
	record.Begin, record.Run = s.record.Begin, s.record.Run
	record.Secrets.Bundle(failed.bundle.Objects)
	for _, was := range to.before {
		record.Secrets.Read(was.Unstructured)
	}
	sent := s.client.Requests.Counts()
	s.client.OnRetry(record.Retrying)
	s.client.OnSecret(record.Secrets.Read)
	back := &session{client: s.client, record: record, after: s.after, lock: s.lock, held: true}
	in, err := run(s.lock.While(ctx), back, o, to.content.Bundle)
	requests := s.client.Requests.Counts()
	for verb, n := range sent {
		requests[verb] -= n
	}
	result.Rollback = record.Finish(ctx, ExitCode(err), timedOut(ctx, err), requests)
	switch rollback := result.Rollback; {
	case rollback.Interrupted != "":
		result.ExitCode, result.Interrupted = rollback.ExitCode, rollback.Interrupted
	case rollback.ExitCode == report.ExitOK:
		result.ExitCode = report.ExitRolledBack
		s.record.Fail(fmt.Sprintf("rolled back to revision %d", to.number))
	default:
		result.ExitCode = report.ExitFailed
		s.record.Fail(fmt.Sprintf("the rollback to revision %d failed: %s", to.number, failures(rollback)))
	}
	return in
}

// rollingBack are the options of the rollback of a run: all that it created goes.
func (o Options) rollingBack(to *rollbackTarget) Options {
	o.Mode, o.Command, o.Detailed, o.Derived, o.RollbackOnFailure = Rollback, inventory.Rollback, false, false, false
	o.Revision, o.RevisionOptions, o.Sources = to.number, to.content.Options, to.content.Sources
	o.Namespace, o.Planning.NamespaceNamed = cmp.Or(to.content.Namespace, o.Namespace), true
	o.Planning.Before, o.automatic = to.before, true
	o.SavedPlan, o.PlanOut, o.Planning.MaxPrune, o.Planning.PruneFirst, o.Deny = nil, nil, "", nil, nil
	return o
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
