package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"brine/bundle"
	"brine/bundle/order"
	"brine/bundle/plan"
	"brine/inventory"
)

// ErrInterrupted, ErrTerminated are the causes to cancel a run's context with.
var (
	ErrInterrupted = errors.New("SIGINT")
	ErrTerminated  = errors.New("SIGTERM")
)

// Readiness in a Result.
const (
	isReady  = "ready"
	notReady = "not-ready"
	isFailed = "failed"
)

// recorder keeps the result of a run and tells its events. It is the one place
// where values of Secrets are taken out of what is said.
type recorder struct {
	secrets secrets
	result  *Result
	emit    func(Event)
	begin   time.Time
	total   int
	done    int
	warned  map[string]bool
	retried map[string]bool

	detailed bool
	timedOut bool
	mu       sync.Mutex // of emit: reads tell of retries from several goroutines
}

func newRecorder(o Options, emit func(Event)) *recorder {
	return &recorder{
		detailed: o.Detailed,
		result: &Result{
			APIVersion: "brine.dev/v1", Kind: "Result", Command: o.Command,
			Inventory: o.Inventory, DryRun: o.DryRun,
			Objects: []*ObjectResult{}, Errors: []string{}, Warnings: []string{},
		},
		emit: emit, begin: time.Now(), warned: map[string]bool{}, retried: map[string]bool{},
	}
}

func (r *recorder) tell(e Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e.Time = time.Now()
	e.Elapsed = e.Time.Sub(r.begin)
	e.Total, e.Done = r.total, r.done
	r.secrets.event(&e)
	r.emit(e)
}

func (r *recorder) seconds() float64 { return time.Since(r.begin).Round(time.Millisecond).Seconds() }

// stepKey is what a dry run's requests are about, in their contexts.
type stepKey struct{}

// retrying tells, once a reason, that a request outside of the plan is sent
// again: a server that is away would otherwise look like a hang.
func (r *recorder) retrying(ctx context.Context, err error, attempt int) {
	text := err.Error()
	if s, ok := ctx.Value(stepKey{}).(*plan.Step); ok && s.Object != nil {
		text = bundle.Name(s.ID) + ": " + text
	}
	r.mu.Lock()
	told := r.retried[text]
	r.retried[text] = true
	r.mu.Unlock()
	if !told {
		r.tell(Event{Type: Warning, Message: "asking again: " + text, Attempt: attempt})
	}
}

// warn tells each warning once.
func (r *recorder) warn(message string) {
	message = r.secrets.message(message)
	if r.warned[message] {
		return
	}
	r.warned[message] = true
	r.result.Warnings = append(r.result.Warnings, message)
	r.tell(Event{Type: Warning, Message: message})
}

func (r *recorder) fail(message string) { r.result.Errors = append(r.result.Errors, message) }

// start announces the plan. It returns the steps' places in the result, in
// the steps' order.
func (r *recorder) start(p *plan.Plan) []*ObjectResult {
	objects := make([]*ObjectResult, len(p.Steps))
	for i, s := range p.Steps {
		o := &ObjectResult{
			Group: s.ID.GroupKind.Group, Version: s.GVK.Version, Kind: s.ID.GroupKind.Kind,
			Namespace: s.ID.Namespace, Name: s.ID.Name,
			Action: s.Action, Reason: s.Reason, Needs: []Need{},
		}
		if s.Object != nil {
			o.Source = s.Object.Source
		}
		for _, n := range s.Needs {
			on, want := p.Steps[n.Step].ID, n.Want.String()
			if s.Deletes() {
				want = "gone"
			}
			o.Needs = append(o.Needs, Need{Group: on.GroupKind.Group, Kind: on.GroupKind.Kind, Namespace: on.Namespace, Name: on.Name, Want: want, Reason: n.Reason})
		}
		objects[i] = o
	}
	r.result.Objects = append(r.result.Objects, objects...)
	r.total = len(objects)
	started := *r.result
	started.Objects = slices.Clone(objects)
	r.tell(Event{Type: Started, Result: &started})
	return objects
}

// finish sums up.
func (r *recorder) finish(ctx context.Context, err error, requests map[string]int) *Result {
	res := r.result
	if err != nil {
		res.Errors = append(res.Errors, Lines(err)...)
	}
	s := &res.Summary
	counts := map[plan.Action]*int{
		plan.Created: &s.Created, plan.Configured: &s.Configured, plan.Unchanged: &s.Unchanged, plan.Recreated: &s.Recreated,
		plan.Pruned: &s.Pruned, plan.Detached: &s.Detached, plan.Skipped: &s.Skipped, plan.Failed: &s.Failed,
	}
	for _, o := range res.Objects {
		if count, ok := counts[o.Action]; ok {
			*count++
		}
		switch o.Ready {
		case isReady:
			s.Ready++
		case notReady, isFailed:
			s.NotReady++
		}
	}
	s.Requests, s.Seconds = requests, r.seconds()
	code := exitCode(err)
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, ErrTerminated):
		code, res.Interrupted = ExitTerminated, "SIGTERM"
	case errors.Is(cause, ErrInterrupted):
		code, res.Interrupted = ExitInterrupted, "SIGINT"
	case code == ExitOK && (s.Failed > 0 || len(res.Errors) > 0):
		code = ExitFailed
	case code == ExitOK && (s.NotReady > 0 || r.timedOut):
		code = ExitNotReady
	}
	if changed := s.Created + s.Configured + s.Recreated + s.Pruned + s.Detached; code == ExitOK && r.detailed && changed > 0 {
		code = ExitChanges
	}
	res.ExitCode = code
	r.tell(Event{Type: Finished, Result: res})
	return res
}

// statusOf is cli-utils' status for what came of a step.
func statusOf(o *ObjectResult) inventory.Status {
	s := inventory.Status{Strategy: "Apply", Actuation: "Succeeded", Reconcile: "Succeeded"}
	switch o.Action {
	case plan.Failed:
		s.Actuation, s.Reconcile = "Failed", "Skipped"
	case plan.Skipped:
		s.Actuation, s.Reconcile = "Skipped", "Skipped"
	}
	switch o.Ready {
	case notReady:
		s.Reconcile = "Timeout"
	case isFailed:
		s.Reconcile = "Failed"
	}
	return s
}

// blockedBy is the reason of an object that was skipped for another's sake.
func blockedBy(on bundle.ID, want order.Want, why, reason string) string {
	return fmt.Sprintf("needs %s %s (%s), which %s", bundle.Name(on), want, reason, why)
}
