// Package run is the pipeline of a run. The input is a bundle, the output a Result. Each
// stage takes values and returns values: what was read (situation), what will be done
// (intent), how each step ended (apply.Outcome), and what the inventory says of it
// (entry). This file has one page for each mode: the stages it takes, in order.
package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/cluster/answers"
	"brine/bundle/plan"
	"brine/bundle/plan/saved"
	"brine/bundle/preview"
	"brine/bundle/ready"
	"brine/bundle/report"
	"brine/bundle/takeover"
	"brine/bundle/write"
	"brine/inventory"
	"brine/inventory/lock"
	"brine/inventory/store"
)

// Mode is what a run is for. A run with Header.DryRun writes nothing of it.
type Mode int

// The modes.
const (
	Apply    Mode = iota // the cluster matches the bundle
	Rollback             // the same with an earlier bundle: of the rest, what brine created goes
	Destroy              // all members go, and the inventory
	Drift                // the live objects are compared with the bundle, and nothing is written
)

// Options are what a user says about a run.
type Options struct {
	report.Header
	Mode        Mode
	Planning    plan.Options  // Undo and Destroy follow from Mode
	WaitApplied bool          // readiness counts only where an object needs another
	PruneAnyway bool          // prune although something is not ready
	Timeout     time.Duration // of the whole run; 0: none
	FailAfter   time.Duration // how long what is not ready may stay as it is; 0: as long as the run
	Readiness   ready.Table   // rules of kinds
	Deny        report.Deny   // rules that stop the run before its first write
	LockTimeout time.Duration // how long to wait for a live holder of the lock
	SkipInvalid bool          // apply the others where an object is invalid
	Cascade     metav1.DeletionPropagation
	Heartbeat   time.Duration
	Version     string // brine's, for the inventory
	Namespace   string // for namespaced objects that name none
	// HistoryLimit is how many revisions are kept; 0 saves none.
	HistoryLimit int
	Who, JobID   string // for the history
	// Derived: the inventory's name comes from the bundle's file name.
	Derived bool
	Sources []string // as inventory.Content has them
	// Revision is the number of the revision that is applied again. The run keeps
	// it, so that the same rollback can be repeated. RevisionOptions are those that
	// it was applied with, as flags name them.
	Revision        int
	RevisionOptions map[string]string
	Undoes          inventory.Latest // the last runs, when Revision was chosen to undo the last; none: the user named it
	// Only selects the objects of a partial run, WithNeeds adds what these need.
	Only      []string
	WithNeeds bool
	// RollbackOnFailure: if objects fail or are not ready, the last good revision is
	// applied again.
	RollbackOnFailure bool
	// PlanOut is where the plan of a dry run goes that finds nothing wrong.
	PlanOut *PlanPlace
	// SavedPlan is the plan to carry out, and no other.
	SavedPlan *saved.Plan

	automatic bool // the rollback of a run that failed
	givesBack bool // applies to what is given back what its inventory applied last: no apply of its own
}

// Run makes the cluster match the bundle and returns the result, which holds
// every error. Events go to emit, one at a time; the last holds the result.
func Run(ctx context.Context, c *cluster.Client, b *bundle.Bundle, o Options, emit func(report.Event)) *report.Result {
	forward, stop := o.keepRollbackReserve(ctx)
	defer stop()
	s := newSession(forward, c, report.New(o.Header, emit))
	defer func() { s.after.Stop() }()
	s.record.Result.Server, s.record.Result.Commands = c.Server(), c.Commands()
	in, err := run(forward, s, o, b)
	if exit := s.record.Conclude(forward, ExitCode(err), timedOut(forward, err)); in.mayRollBack(exit) {
		in = rollBack(ctx, s, o, in, emit)
	}
	if s.held {
		s.release(ctx, in.inventory != nil && !in.inventory.Exists())
		if code := s.record.Result.ExitCode; report.Succeeded(code) || code == report.ExitRolledBack {
			giveBack(ctx, s, &o, in)
		}
	}
	return s.record.End(c.Requests.Counts())
}

// run takes the stages of the mode. What it was about to do is returned as far as it got.
func run(ctx context.Context, s *session, o Options, b *bundle.Bundle) (in intent, err error) {
	o.Planning.TakeOverFrom = takeover.Qualified(o.Planning.TakeOverFrom, o.Namespace)
	o.Planning.Undo, o.Planning.Destroy, o.Planning.Commands = o.Mode == Rollback, o.Mode == Destroy, s.client.Commands()
	o.Planning.Orphans = o.Cascade == metav1.DeletePropagationOrphan
	switch {
	case o.Mode == Drift:
		in, err = runDrift(ctx, s, &o, b)
	case o.DryRun == report.Server:
		in, err = runPreview(ctx, s, &o, b)
	default:
		in, err = runWriting(ctx, s, &o, b)
	}
	switch lost := s.lost(); {
	case lost != nil:
		err = lost // and not what failed because of it
	case errors.Is(err, errNothingToDestroy):
		s.record.Warn(err.Error())
		s.record.Start(&plan.Plan{})
		err = nil
	case o.DryRun == report.Server && apierrors.IsForbidden(err):
		err = allMissingRights(ctx, s, &o, b, err)
	}
	return in, err
}

// runWriting is an apply, a rollback, and a destroy: the inventory's namespace goes with it.
func runWriting(ctx context.Context, s *session, o *Options, b *bundle.Bundle) (intent, error) {
	in, ctx, err := decide(ctx, s, o, b)
	if err != nil {
		return in, err
	}
	done, err := carryOut(ctx, s, o, in)
	if err != nil {
		return in, err
	}
	end := ending{intent: in, mode: o.Mode, steps: done.steps, content: contentOf(ctx, s, o, in, done.found), namespace: s.namespace}
	end.revision = revisionOf(o, in, end.content, s.record.Result.Objects, time.Now())
	if err := enter(ctx, s, o, in, entryOf(end)); err != nil {
		return in, err
	}
	forgetReleases(ctx, s, o, in, done.steps)
	if o.Mode == Destroy && !in.inventory.Exists() {
		late, cancel := s.after.Records.Of(ctx)
		defer cancel()
		removeNamespace(late, s, o, in.inventory, done.deleted)
	}
	return in, nil
}

// runPreview is the dry run of an apply, a rollback or a destroy. It writes nothing, and
// saves the plan where that is asked for.
func runPreview(ctx context.Context, s *session, o *Options, b *bundle.Bundle) (intent, error) {
	in, _, err := decide(ctx, s, o, b)
	if err != nil {
		return in, err
	}
	asked, err := askServer(ctx, s, o, in)
	if err != nil {
		return in, err
	}
	foreseePruning(ctx, s, o, in, asked.results)
	s.record.Result.Review = preview.Review(ctx, s.client, in.plan, asked.objects, asked.results)
	s.record.Result.Review.Back = previewGoingBack(ctx, s, o, in, asked.results)
	if !asked.readOnly {
		if err := preview.Stop(s.record.Result.MissingRights); err != nil {
			return in, err
		}
	}
	if len(in.plan.Refused) > 0 {
		return in, report.BadBundle(in.plan.Refused...) // and no plan is saved
	}
	if asked.invalid {
		return in, &report.Stop{Code: report.ExitBadBundle} // as an apply would be; the objects have the reasons
	}
	if err := stopDenied(ctx, s, o, in, asked); err != nil {
		return in, err
	}
	return in, savePlan(ctx, s, o, in, asked.results)
}

func runDrift(ctx context.Context, s *session, o *Options, b *bundle.Bundle) (intent, error) {
	in, _, err := decide(ctx, s, o, b)
	if err != nil {
		return in, err
	}
	if _, err := askServer(ctx, s, o, in); err != nil {
		return in, err
	}
	if err := preview.Stop(s.record.Result.MissingRights); err != nil {
		return in, err
	}
	return in, report.BadBundle(in.plan.Refused...)
}

// decide makes a plan that is true: the lock is the first write, and proves that what was
// read still holds. Otherwise it is read again. All that can be known, and refused, before
// the first write is. The context that is returned ends with the lock.
func decide(ctx context.Context, s *session, o *Options, b *bundle.Bundle) (intent, context.Context, error) {
	inv, err := begin(ctx, s, o, b)
	if err != nil {
		return intent{}, ctx, err
	}
	for attempt, races := 1, 0; ; {
		in, held, err := lockPlan(ctx, s, o, b, inv)
		switch {
		case s.lost() != nil:
			return in, held, err
		case errors.Is(err, lock.ErrTaken) && races < 10: // another run was first
			races++
		case errors.Is(err, store.ErrConflict) && attempt < 3: // another client wrote the inventory since it was read
			attempt++
		default:
			return in, held, err
		}
		ctx = held //nolint:fatcontext // with the lock, once it is taken
		if inv, err = readInventory(ctx, s, o, holdsSecrets(o, b)); err != nil {
			return intent{}, ctx, err
		}
	}
}

// lockPlan makes the plan, takes the lock for it, and extends the inventory by what it applies.
// Where nothing has to be written, as by a preview, there is no lock: what the run says was true
// when it was read.
func lockPlan(ctx context.Context, s *session, o *Options, b *bundle.Bundle, inv *store.Inventory) (intent, context.Context, error) {
	in, err := prepare(ctx, s, o, b, inv)
	if err != nil || o.Mode == Drift || o.DryRun != report.None {
		return in, ctx, err
	}
	if err := confirmSavedPlan(ctx, s, o, in); err != nil {
		return in, ctx, err
	}
	if err := askDeny(ctx, s, o, in); err != nil {
		return in, ctx, err
	}
	in.hints = hintsOf(ctx, s, in)
	if o.Mode != Destroy && in.needsNoWrite() {
		return in, ctx, nil
	}
	held, err := s.take(ctx, o, b)
	if err != nil {
		return in, ctx, err
	}
	missed := func(step *plan.Step) bool { return step.ID == inventoryNamespace(o) && step.Live == nil }
	if s.namespace == nil && o.Mode != Destroy && slices.ContainsFunc(in.plan.Steps, missed) { // it is made without the lock
		return in, held, fmt.Errorf("another client made Namespace %s since it was looked for: %w", o.Inventory.Namespace, store.ErrConflict)
	}
	if o.Mode != Destroy {
		if err := enterBeginning(held, in.inventory, beginningOf(o, in)); err != nil {
			return in, held, err
		}
	}
	in.begun = true
	return in, held, nil
}

// timedOut is an error that says so where time ran out.
func timedOut(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); err != nil && errors.Is(cause, report.ErrTimeout) && !errors.Is(err, report.ErrTimeout) {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return err
}

func (o *Options) writing() write.Options {
	return write.Options{Policy: o.Planning.Policy, TakeOverFrom: o.Planning.TakeOverFrom, Conflicts: o.Planning.Conflicts, Cascade: o.Cascade}
}

// ExitCode is what an error that ended a run early stands for.
func ExitCode(err error) int {
	var s *report.Stop
	switch {
	case err == nil:
		return report.ExitOK
	case errors.As(err, &s):
		return s.Code
	case errors.Is(err, store.ErrNoRevision), errors.Is(err, store.ErrSharedID):
		return report.ExitBadBundle
	case errors.Is(err, lock.ErrLocked), errors.Is(err, lock.ErrTaken), errors.Is(err, lock.ErrLost), errors.Is(err, store.ErrConflict), errors.Is(err, store.ErrNotLast):
		return report.ExitLocked
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err), answers.Unreachable(err), answers.Misdirected(err), errors.Is(err, context.DeadlineExceeded), errors.Is(err, report.ErrTimeout):
		return report.ExitUnreachable
	}
	return report.ExitFailed
}

// Refuse is the result of a run that could not begin.
func Refuse(ctx context.Context, o Options, code int, err error, emit func(report.Event)) *report.Result {
	return report.New(o.Header, emit).Finish(ctx, code, err, map[string]int{})
}
