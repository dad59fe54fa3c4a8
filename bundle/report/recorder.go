package report

import (
	"context"
	"crypto/rand"
	"slices"
	"sync"
	"time"

	"brine/bundle"
	"brine/bundle/plan"
)

// The Recorder makes events and the Result of what a run finds.

// The readiness of an object, as ObjectResult.Ready has it.
const (
	StateReady    = "ready"
	StateNotReady = "not-ready"
	StateFailed   = "failed"
	StateGone     = "gone" // of a status only: the member is not on the cluster
)

// Header names a run in its Result.
type Header struct {
	Command   string // apply, preview, destroy, …
	Inventory Inventory
	DryRun    DryRun
	// Detailed: the exit code is ExitChanges where there are changes.
	Detailed bool
	// Wanted is what the live objects are compared with, where that is all that is
	// done: drift.
	Wanted string
}

// Recorder makes the events and the Result of a run. It is the one place where
// the values of Secrets are masked in what users see. Emit and Retrying may be
// called from several goroutines, everything else from one.
type Recorder struct {
	Secrets Secrets
	Result  *Result
	Begin   time.Time
	// Run is that of the events; a rollback has that of the run that failed.
	Run string

	emit     func(Event)
	total    int
	done     int
	warned   map[string]bool
	retried  map[string]bool
	detailed bool
	timedOut bool
	mu       sync.Mutex // of emit and retried
}

// New is the recorder of a run that begins now. Every event goes to emit, one at
// a time.
func New(h Header, emit func(Event)) *Recorder {
	return &Recorder{
		Result: &Result{
			APIVersion: "brine.dev/v1", Kind: "Result", Command: h.Command, Inventory: h.Inventory, DryRun: h.DryRun, Wanted: h.Wanted,
			Objects: []*ObjectResult{}, Errors: []string{}, Warnings: []string{},
		},
		Begin: time.Now(), Run: rand.Text()[:16], emit: emit, detailed: h.Detailed, warned: map[string]bool{}, retried: map[string]bool{},
	}
}

// Emit emits an event that happens now.
func (r *Recorder) Emit(p Payload) { r.send(r.Secrets.payload(p)) }

func (r *Recorder) send(p Payload) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	r.emit(Event{Time: now, Elapsed: now.Sub(r.Begin), Total: r.total, Done: r.done, Preview: r.Result.DryRun != None, Run: r.Run, Payload: p})
}

// Seconds is the time since the run began.
func (r *Recorder) Seconds() float64 { return time.Since(r.Begin).Round(time.Millisecond).Seconds() }

// Settled counts one more object with which nothing more happens.
func (r *Recorder) Settled() { r.done++ }

// TimedOut notes that time ran out: the run is not ready at best.
func (r *Recorder) TimedOut() { r.timedOut = true }

type stepKey struct{}

// WithStep is a context for the requests about one step: a warning that they are
// retried names its object.
func WithStep(ctx context.Context, s *plan.Step) context.Context {
	return context.WithValue(ctx, stepKey{}, s)
}

// Retrying warns, once for each reason, that a request is sent again. A server
// that does not answer would otherwise look like a hang.
func (r *Recorder) Retrying(ctx context.Context, err error, attempt int) {
	text := err.Error()
	if s, ok := ctx.Value(stepKey{}).(*plan.Step); ok && s.Object != nil {
		text = bundle.Name(s.ID) + ": " + text
	}
	r.mu.Lock()
	reported := r.retried[text]
	r.retried[text] = true
	r.mu.Unlock()
	if !reported {
		r.Emit(Warning{Message: "retrying: " + text, Attempt: attempt})
	}
}

// Warn reports each warning once.
func (r *Recorder) Warn(message string) {
	message = r.Secrets.message(message)
	if r.warned[message] {
		return
	}
	r.warned[message] = true
	r.Result.Warnings = append(r.Result.Warnings, message)
	r.Emit(Warning{Message: message})
}

// Fail adds an error to the result.
func (r *Recorder) Fail(message string) { r.Result.Errors = append(r.Result.Errors, message) }

// Start announces the plan. It returns the results of its steps, in their order.
func (r *Recorder) Start(p *plan.Plan) []*ObjectResult {
	of := func(s *plan.Step) *ObjectResult { return resultOf(s, p) }
	objects := bundle.Each(p.Steps, of)
	r.Result.Objects = append(r.Result.Objects, objects...)
	r.Result.Outside = append(r.Result.Outside, bundle.Each(p.Outside, of)...)
	r.total = len(objects)
	started := *r.Result
	started.Objects = slices.Clone(objects)
	r.Emit(Started{Result: &started})
	return objects
}

func resultOf(s *plan.Step, p *plan.Plan) *ObjectResult {
	o := &ObjectResult{
		Group: s.ID.GroupKind.Group, Version: s.GVK.Version, Kind: s.ID.GroupKind.Kind,
		Namespace: s.ID.Namespace, Name: s.ID.Name,
		Action: s.Action, Reason: s.Reason, Needs: []Need{},
	}
	if s.Object != nil {
		o.Source = s.Object.Source
	}
	add := func(on bundle.ID, n plan.Need) {
		o.Needs = append(o.Needs, Need{Reference: bundle.ReferTo(on), Want: n.WantOf(s), Reason: n.Reason})
	}
	for _, n := range s.Needs {
		add(p.Steps[n.Step].ID, n)
	}
	for _, n := range s.Awaits {
		add(p.Outside[n.Step].ID, n)
	}
	return o
}

// Finish concludes a run and ends it.
func (r *Recorder) Finish(ctx context.Context, code int, err error, requests map[string]int) *Result {
	r.Conclude(ctx, code, err)
	return r.End(requests)
}

// End emits the whole result of a run that is concluded. requests are the API
// requests sent, by verb.
func (r *Recorder) End(requests map[string]int) *Result {
	r.Result.Summary.Requests, r.Result.Summary.Seconds = requests, r.Seconds()
	r.Result = r.Secrets.Result(r.Result)
	r.send(Finished{Result: r.Result})
	return r.Result
}

// Conclude counts the objects, sets the exit code and returns it. code is what err,
// which ended the run early, stands for.
func (r *Recorder) Conclude(ctx context.Context, code int, err error) int {
	res := r.Result
	if err != nil {
		res.Errors = append(res.Errors, Lines(err)...)
	}
	s := &res.Summary
	counts := map[plan.Action]*int{
		plan.Created: &s.Created, plan.Configured: &s.Configured, plan.Unchanged: &s.Unchanged, plan.Recreated: &s.Recreated,
		plan.Pruned: &s.Pruned, plan.Detached: &s.Detached, plan.Skipped: &s.Skipped, plan.Failed: &s.Failed,
	}
	all := slices.Concat(res.Objects, res.Outside)
	for _, o := range all {
		if count, ok := counts[o.Action]; ok {
			*count++
		}
		switch {
		case o.Ready == StateReady && o.Action == plan.Awaited: // it is none of ours
		case o.Ready == StateReady:
			s.Ready++
		case o.Action == plan.Awaited && res.DryRun != None:
		case o.Ready == StateNotReady, o.Ready == StateFailed:
			s.NotReady++
		}
	}
	if res.DryRun == None {
		res.CriticalPath = criticalPath(all)
	}
	res.ExitCode = r.exitCode(ctx, code)
	r.explain(code, err)
	return res.ExitCode
}
