// Package apply carries out a plan: it sends each object as soon as what it needs
// is there, waits until it is ready, and deletes at the end. The input is a plan,
// the output one Outcome for each of its steps. Package write sends the requests.
package apply

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/order"
	"brine/bundle/plan"
	"brine/bundle/ready"
	"brine/bundle/report"
	"brine/bundle/write"
	"brine/inventory"
)

// Input is what carrying out a plan needs.
type Input struct {
	Client *cluster.Client
	Plan   *plan.Plan
	Writer *write.Writer
	Record *report.Recorder
	Rules  map[bundle.ID]*ready.Rules
	Hints  ready.Hints
	// Selector selects the members by their label, as "key=value".
	Selector string
	// WaitApplied: readiness counts only where a dependency requires it.
	WaitApplied bool
	// PruneAnyway: prune although something is not ready.
	PruneAnyway bool
	// FailAfter ends the waiting for what is not ready and has not changed for so long,
	// unless its rules say otherwise; 0 does not.
	FailAfter time.Duration
	Heartbeat time.Duration // progress interval; 0 is none
}

// Outcome is how a step ended.
type Outcome struct {
	*plan.Step
	Result *report.ObjectResult
	// Done: the object is ready, or gone.
	Done bool
	// Refused: the server refused it for good, so that what the bundle says was not written;
	// Uncertain: an attempt before that may still have been stored.
	Refused, Uncertain bool
	// PutBack: it was pruned first, and pruning did not follow.
	PutBack bool
	// SeenCompleted: a Job is complete, and its TTL removes it.
	SeenCompleted bool
	// Latest is the object as last seen on the cluster; nil once it is Done.
	Latest *unstructured.Unstructured
	// UID is that of the object that was stored; "" if none was.
	UID types.UID
	// Fingerprint is of what is stored, where HasFingerprint.
	Fingerprint    inventory.Fingerprint
	HasFingerprint bool
}

// scheduler carries out a plan. One goroutine (loop) owns all state; appliers, watches and
// timers only send it what it has to do. Waiting never holds an applier.
type scheduler struct {
	Input
	nodes      []*node
	byID       map[bundle.ID]*node
	byStep     map[*plan.Step]*node
	dependents [][]dependent // node -> the edges that need it
	queue      queue
	pruning    bool             // applies are through: deletions may begin
	prunes     bool             // and nothing keeps all of them
	counts     [2][lost + 1]int // nodes by state: applies, deletions
	messages   chan func()
	work       chan *node // for the appliers; it never blocks
	appliers   int
	watches    *cluster.Watches
	jobs       []func(context.Context)              // requests that loop begins when a message was dealt with
	over       <-chan struct{}                      // closed when no answer is waited for any more
	reported   time.Time                            // when anything was last reported
	ended      error                                // why no new writes are sent
	scopes     map[string]string                    // kind -> the namespace to watch
	lastSeen   map[schema.GroupKind]time.Time       // when a watch of the kind last saw anything
	unwatched  map[string]bool                      // kind and namespace of watches that cannot be had
	polling    map[schema.GroupVersionResource]bool // kinds of which some are polled
	said       ready.SaidBy                         // what custom kinds say of themselves
}

// requestGrace is how long requests under way may take when the run is
// interrupted, or its time has run out.
const requestGrace = report.Grace * 4 / 10

// Run carries out the plan. It returns the outcome of each step, of each object outside
// the bundle that was waited for, and why the run ended early, if it did: ctx's cause.
func Run(ctx context.Context, in Input) (steps, outside []Outcome, ended error) {
	requests, cancel := context.WithCancel(cluster.WithEnd(context.WithoutCancel(ctx), ctx))
	defer cancel()
	e := &scheduler{
		Input: in, byID: map[bundle.ID]*node{}, byStep: map[*plan.Step]*node{}, dependents: make([][]dependent, len(in.Plan.Steps)+len(in.Plan.Outside)),
		messages: make(chan func(), 1024), over: requests.Done(), reported: time.Now(),
		lastSeen: map[schema.GroupKind]time.Time{}, unwatched: map[string]bool{}, polling: map[schema.GroupVersionResource]bool{},
		said: whatIsSaid(in.Plan),
	}
	e.work = make(chan *node, cap(e.dependents))
	e.watches = in.Client.Watches(in.Selector, func(m any) { e.send(func() { e.noticed(m) }) })
	in.Writer.Retrying = func(s *plan.Step, err error) { e.send(func() { e.retried(e.byStep[s], err, 1) }) }
	in.Writer.Waiting = func(s *plan.Step, what string) { e.send(func() { e.byStep[s].reason = what }) }
	in.Client.OnRetry(func(ctx context.Context, err error, attempt int) {
		if n, ok := ctx.Value(nodeKey{}).(*node); ok {
			e.send(func() { e.retried(n, err, attempt) })
		}
	})
	wasReady := in.dropReady()
	results := slices.Concat(in.Record.Start(in.Plan), in.Record.Result.Outside)
	for i, step := range slices.Concat(in.Plan.Steps, in.Plan.Outside) {
		was, isReady := wasReady[step]
		n := &node{Outcome: Outcome{Step: step, Result: results[i]}, index: i, wasReady: isReady, ready: was, needs: len(step.Needs) + len(step.Awaits), rules: in.Rules[step.ID]}
		if step.ID.Name == "" && step.Object != nil {
			n.rules = n.rules.For(step.Object)
		}
		e.nodes = append(e.nodes, n)
		e.byStep[step] = n
		e.counts[kindOf(n)][blocked]++
		if step.ID.Name != "" {
			e.byID[step.ID] = n
		}
	}
	for _, n := range e.nodes {
		for need, on := range e.needs(n) {
			e.dependents[on.index] = append(e.dependents[on.index], dependent{node: n, need: need})
		}
	}
	e.loop(ctx, requests, cancel)
	outcomes := make([]Outcome, len(e.nodes))
	for i, n := range e.nodes {
		n.Done = n.state == finished
		n.PutBack = n.First && !e.prunes && n.Result.ActedAt > 0 && (n.Result.Action == plan.Pruned || n.Uncertain)
		outcomes[i] = n.Outcome
	}
	own := len(in.Plan.Steps)
	return outcomes[:own:own], outcomes[own:], e.ended
}

// needs are the needs of a node, and the nodes that they are of.
func (e *scheduler) needs(n *node) iter.Seq2[plan.Need, *node] {
	return func(yield func(plan.Need, *node) bool) {
		for _, need := range n.Needs {
			if !yield(need, e.nodes[need.Step]) {
				return
			}
		}
		for _, need := range n.Awaits {
			if !yield(need, e.outside()[need.Step]) {
				return
			}
		}
	}
}

// outside are the nodes of objects outside the bundle: the last ones.
func (e *scheduler) outside() []*node { return e.nodes[len(e.Plan.Steps):] }

type nodeKey struct{}

// loop runs until every node is settled. What it begins has the context of requests, which
// lives a little longer than the run.
func (e *scheduler) loop(ctx, requests context.Context, cancel context.CancelFunc) {
	for _, n := range e.nodes {
		if n.state == blocked {
			e.consider(n)
		}
	}
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	interrupted, grace := ctx.Done(), false
	for e.advance(requests) {
		select {
		case do := <-e.messages:
			do()
		case <-tick.C:
			e.clock()
		case <-interrupted:
			interrupted = nil
			e.halt(context.Cause(ctx))
		}
		if e.ended != nil && !grace {
			// What the server has not answered by then, it will not.
			grace = true
			time.AfterFunc(requestGrace, cancel)
		}
	}
	cancel()
	close(e.work)
	e.watches.Stop()
}

// advance starts what may go; false when all is settled.
func (e *scheduler) advance(requests context.Context) bool {
	for _, begin := range e.jobs {
		begin(requests)
	}
	e.jobs = nil
	for e.acting() < e.Client.Concurrency() && e.queue.Len() > 0 && e.ended == nil {
		n, ok := heap.Pop(&e.queue).(*node)
		if !ok || n.state != queued {
			continue
		}
		e.set(n, acting)
		n.Result.StartedAt = e.Record.Seconds()
		e.Record.Emit(report.Acting{Object: n.Result})
		if e.acting() > e.appliers {
			e.appliers++
			go e.apply(requests) // ends with e.work
		}
		e.work <- n
	}
	open, hanging := e.count()
	if open > 0 {
		return true
	}
	if hanging > 0 {
		e.giveUp() // only failed ones, and those that need them, are left
		return e.advance(requests)
	}
	if !e.pruning && e.ended == nil {
		e.startPruning()
		return e.advance(requests)
	}
	return false
}

// apply is an applier: it sends one object after the other. (A goroutine for each object
// would grow its stack each time.)
func (e *scheduler) apply(requests context.Context) {
	for n := range e.work {
		o := e.Writer.Do(context.WithValue(requests, nodeKey{}, n), n.Step)
		e.messages <- func() { e.acted(n, o) }
	}
}

// consider queues a node whose needs are met, or settles one that has nothing
// to be done.
func (e *scheduler) consider(n *node) {
	switch {
	case n.Blocked != "":
		e.lose(n, plan.Failed, n.Blocked)
		e.Record.Fail(n.Result.About(n.Blocked))
	case n.Action == plan.Skipped:
		if n.Kept {
			e.Record.Fail(n.Result.About("not deleted: " + n.Reason))
		}
		e.lose(n, plan.Skipped, n.Reason)
	case n.Action == plan.Unchanged, n.Action == plan.Awaited:
		e.settleUnchanged(n)
	case n.needs > 0, kindOf(n) == 1 && !e.pruning:
	default:
		n.Result.QueuedAt = e.Record.Seconds()
		e.set(n, queued)
		heap.Push(&e.queue, n)
	}
}

// meet marks a need as met for the nodes that need n applied, or ready.
func (e *scheduler) meet(n *node, want order.Want) {
	for _, d := range e.dependents[n.index] {
		if d.need.Want != want {
			continue
		}
		if d.node.needs--; d.node.state == blocked && d.node.needs == 0 {
			d.node.Result.After = after(n, d.need)
			e.consider(d.node)
		}
	}
}

// halt stops all that has not been sent.
func (e *scheduler) halt(cause error) {
	e.ended = cause
	if errors.Is(cause, report.ErrTimeout) {
		e.settleAll(cause.Error())
		return
	}
	e.settleAll("interrupted: " + cause.Error())
}

// settleAll ends the waiting and skips what was not begun.
func (e *scheduler) settleAll(reason string) {
	for _, n := range slices.Concat(e.outside(), e.nodes) { // what is needed, first
		switch n.state {
		case blocked, queued:
			if n.Action == plan.Unchanged || n.Deletes() {
				continue
			}
			e.lose(n, plan.Skipped, reason)
		case waiting, failing:
			e.settleNotReady(n, report.StateNotReady, reason+": "+n.reason)
		}
	}
	if kept := e.pruningHeld(); kept != "" && !e.pruning && errors.Is(e.ended, report.ErrTimeout) {
		e.skipDeletions(kept)
	}
	for _, n := range e.nodes {
		if n.Deletes() && (n.state == blocked || n.state == queued) {
			e.lose(n, plan.Skipped, reason)
		}
	}
}

// AllApplied is an error that names an object which is not applied; nil: all are.
func AllApplied(outcomes []Outcome) error {
	for i := range outcomes {
		if a := outcomes[i].Result.Action; a == plan.Failed || a == plan.Skipped && !outcomes[i].Deletes() {
			return fmt.Errorf("%s was %s", bundle.Name(outcomes[i].ID), a)
		}
	}
	return nil
}
