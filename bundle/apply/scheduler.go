// Package apply carries out a plan: it sends each object as soon as what it needs
// is there, waits until it is ready, and deletes at the end. The input is a plan,
// the output one Outcome for each of its steps. Package write sends the requests.
package apply

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

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
	Heartbeat   time.Duration // progress interval; 0 is none
}

// Outcome is what came of a step.
type Outcome struct {
	*plan.Step
	Result *report.ObjectResult
	// Done: the object is ready, or gone.
	Done bool
	// Refused: the server refused it for good, so that nothing was written;
	// Uncertain: an attempt before that may have been stored all the same.
	Refused, Uncertain bool
	// Latest is the object as last seen on the cluster; nil once it is Done.
	Latest *unstructured.Unstructured
	// Fingerprint is of what is stored, where HasFingerprint.
	Fingerprint    inventory.Fingerprint
	HasFingerprint bool
}

// state of a node. From settled on nothing more happens to it, unless a
// failed one recovers.
type state int

const (
	blocked  state = iota // something it needs is not there yet
	queued                // may go, waits for an applier
	acting                // its request is under way
	waiting               // the server has it; not ready (or gone) yet
	failing               // its status says failed; it may recover while others go on
	finished              // ready, gone, or whatever else was to be had
	lost                  // failed, skipped or timed out: who needs it is skipped
)

// node is a step being carried out.
type node struct {
	Outcome
	index int
	state state
	needs int // unmet needs

	resource cluster.Resource
	rules    *ready.Rules
	applied  bool // needs that want it applied are met
	stored   *unstructured.Unstructured
	since    time.Time // when waiting began
	reason   string    // the last one reported
	watched  bool      // a watch has seen it since
	probing  bool      // a CRD whose versions are being asked for
	polled   bool      // no watch can be had
	checked  time.Time // when it was last seen, or asked for
}

// dependent is an edge, seen from the node that is needed.
type dependent struct {
	node *node
	need plan.Need
}

// scheduler carries out a plan. One goroutine (loop) owns all state; appliers and
// watches only send it messages. Waiting never holds an applier.
type scheduler struct {
	Input
	nodes      []*node
	byID       map[bundle.ID]*node
	byStep     map[*plan.Step]*node
	dependents [][]dependent // node -> the edges that need it
	queue      queue
	pruning    bool             // applies are through: deletions may begin
	counts     [2][lost + 1]int // nodes by state: applies, deletions
	messages   chan any
	watches    *cluster.Watches
	requests   context.Context                      //nolint:containedctx // of requests: lives a little longer than the run
	reported   time.Time                            // when anything was last reported
	ended      error                                // why no new writes are sent
	scopes     map[string]string                    // kind -> the namespace to watch
	lastSeen   map[schema.GroupKind]time.Time       // when a watch of the kind last saw anything
	unwatched  map[string]bool                      // kind and namespace of watches that cannot be had
	polling    map[schema.GroupVersionResource]bool // kinds of which some are polled
}

// written is what an applier sends when it is through.
type written struct {
	node *node
	write.Outcome
}

// served is the answer to a CRD's probe.
type served struct {
	node *node
	err  error
}

// polledObject is the answer about an object that was polled.
type polledObject struct {
	node *node
	live *unstructured.Unstructured
	err  error
}

// retried: a request about an object is sent again.
type retried struct {
	node    *node
	err     error
	attempt int
}

// requestGrace is how long requests under way may take when the run is
// interrupted, or its time has run out.
const requestGrace = 4 * time.Second

// Run carries out the plan. It returns what came of each step, and why the run
// ended early, if it did: ctx's cause.
func Run(ctx context.Context, in Input) ([]Outcome, error) {
	requests, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	e := &scheduler{
		Input: in, byID: map[bundle.ID]*node{}, byStep: map[*plan.Step]*node{}, dependents: make([][]dependent, len(in.Plan.Steps)),
		messages: make(chan any, 1024), requests: requests, reported: time.Now(),
		lastSeen: map[schema.GroupKind]time.Time{}, unwatched: map[string]bool{}, polling: map[schema.GroupVersionResource]bool{},
	}
	e.watches = in.Client.Watches(in.Selector, e.send)
	in.Writer.Retrying = func(s *plan.Step, err error) { e.send(retried{node: e.byStep[s], err: err, attempt: 1}) }
	in.Client.OnRetry(func(ctx context.Context, err error, attempt int) {
		if n, ok := ctx.Value(nodeKey{}).(*node); ok {
			e.send(retried{node: n, err: err, attempt: attempt})
		}
	})
	results := in.Record.Start(in.Plan)
	for i, step := range in.Plan.Steps {
		n := &node{Outcome: Outcome{Step: step, Result: results[i]}, index: i, needs: len(step.Needs), rules: in.Rules[step.ID]}
		e.nodes = append(e.nodes, n)
		e.byStep[step] = n
		e.counts[kindOf(n)][blocked]++
		if step.ID.Name != "" {
			e.byID[step.ID] = n
		}
		for _, need := range step.Needs {
			e.dependents[need.Step] = append(e.dependents[need.Step], dependent{node: n, need: need})
		}
	}
	e.loop(ctx, cancel)
	outcomes := make([]Outcome, len(e.nodes))
	for i, n := range e.nodes {
		n.Done = n.state == finished
		outcomes[i] = n.Outcome
	}
	return outcomes, e.ended
}

type nodeKey struct{}

// loop runs until every node is settled.
func (e *scheduler) loop(ctx context.Context, cancel context.CancelFunc) {
	for _, n := range e.nodes {
		if n.state == blocked {
			e.consider(n)
		}
	}
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	interrupted, grace := ctx.Done(), false
	for e.advance() { //nolint:contextcheck // requests have a context that lives a little longer
		select {
		case m := <-e.messages:
			e.receive(m)
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
	e.watches.Stop()
}

// advance starts what may go; false when all is settled.
func (e *scheduler) advance() bool {
	for e.acting() < e.Client.Concurrency() && e.queue.Len() > 0 && e.ended == nil {
		n, ok := heap.Pop(&e.queue).(*node)
		if !ok || n.state != queued {
			continue
		}
		e.set(n, acting)
		n.Result.StartedAt = e.Record.Seconds()
		e.Record.Emit(report.Event{Type: report.Acting, Object: n.Result})
		go func() {
			o := e.Writer.Do(context.WithValue(e.requests, nodeKey{}, n), n.Step)
			e.messages <- written{n, o}
		}()
	}
	open, hanging := e.count()
	if open > 0 {
		return true
	}
	if hanging > 0 {
		e.giveUp() // only failed ones, and those that need them, are left
		return e.advance()
	}
	if !e.pruning && e.ended == nil {
		e.startPruning()
		return e.advance()
	}
	return false
}

// kindOf is 1 for deletions, 0 for applies.
func kindOf(n *node) int {
	if n.Deletes() {
		return 1
	}
	return 0
}

// set moves a node to another state. Counting as it goes keeps every step of
// the loop cheap, however many objects there are.
func (e *scheduler) set(n *node, s state) {
	e.counts[kindOf(n)][n.state]--
	e.counts[kindOf(n)][s]++
	n.state = s
}

func (e *scheduler) acting() int { return e.counts[0][acting] + e.counts[1][acting] }

// count tells how many nodes something is still going on with, and how many
// hang on a failed one.
func (e *scheduler) count() (open, hanging int) {
	open = e.acting()
	for kind, by := range e.counts {
		if kind == 1 && !e.pruning {
			continue
		}
		open += by[queued] + by[waiting]
		hanging += by[failing] + by[blocked]
	}
	if e.WaitApplied && open > 0 && open == e.counts[0][waiting] {
		for _, n := range e.nodes {
			if n.state == waiting && e.idle(n) {
				open--
			}
		}
	}
	return open, hanging
}

// idle: with --wait=applied an object is waited for only where another needs
// it ready.
func (e *scheduler) idle(n *node) bool {
	if !e.WaitApplied || n.Deletes() {
		return false
	}
	for _, d := range e.dependents[n.index] {
		if d.node.state == blocked && !d.node.Deletes() && d.need.Want == order.Ready {
			return false
		}
	}
	return true
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
	case n.Action == plan.Unchanged:
		e.settleUnchanged(n)
	case n.needs > 0, n.Deletes() && !e.pruning:
	default:
		e.set(n, queued)
		heap.Push(&e.queue, n)
	}
}

// meet tells those who need n that it is applied, or ready.
func (e *scheduler) meet(n *node, want order.Want) {
	for _, d := range e.dependents[n.index] {
		if d.need.Want != want {
			continue
		}
		if d.node.needs--; d.node.state == blocked && d.node.needs == 0 {
			e.consider(d.node)
		}
	}
}

// lose settles a node that came to nothing, and skips who needs it.
func (e *scheduler) lose(n *node, action plan.Action, reason string) {
	if n.state == lost {
		return
	}
	wasApplied := n.applied
	e.end(n, action, reason)
	e.skipDependents(n, wasApplied)
}

// end settles a node that came to nothing.
func (e *scheduler) end(n *node, action plan.Action, reason string) {
	toldFailed := n.state == failing && n.reason == reason
	e.set(n, lost)
	if action != "" {
		n.Result.Action = action
	}
	n.Result.Reason = reason
	e.Record.Settled()
	if action != "" {
		e.Record.Emit(report.Event{Type: report.Acted, Object: n.Result, Reason: reason, Error: n.Result.Error})
	} else if !toldFailed {
		e.Record.Emit(report.Event{Type: report.NotReady, Object: n.Result, Reason: reason})
	}
}

func (e *scheduler) skipDependents(n *node, wasApplied bool) {
	for _, edge := range e.dependents[n.index] {
		d, need := edge.node, edge.need
		if d.state != blocked || d.Action == plan.Unchanged || (need.Want == order.Applied && wasApplied) {
			continue
		}
		if e.Plan.Allows(d.Step, need) {
			if d.needs--; d.needs == 0 {
				e.consider(d)
			}
			continue
		}
		e.lose(d, plan.Skipped, e.Plan.Because(d.Step, need, n.outcome()))
	}
}

// outcome is what came of the node, as those see it that need it.
func (n *node) outcome() plan.Outcome {
	o := plan.Outcome{Action: n.Result.Action}
	if n.state == waiting || n.state == failing || n.Result.Ready == report.StateNotReady || n.Result.Ready == report.StateFailed {
		o.NotReady = n.Result.Reason
		if o.NotReady == "" {
			o.NotReady = "no reason is known"
		}
	}
	return o
}

// giveUp settles what hangs on failed objects: they did not recover while the
// others went on.
func (e *scheduler) giveUp() {
	for _, n := range e.nodes {
		if n.state == failing {
			e.settleNotReady(n, report.StateFailed, n.reason)
		}
	}
	for _, n := range e.nodes {
		if n.state == blocked && (!n.Deletes() || e.pruning) {
			reason := "what it needs is not there"
			for _, need := range n.Needs {
				if on := e.nodes[need.Step]; on.state == waiting || on.state == lost {
					reason = e.Plan.Because(n.Step, need, on.outcome())
				}
			}
			e.lose(n, plan.Skipped, reason)
		}
	}
}

// startPruning starts the deletions, unless something keeps all of them.
func (e *scheduler) startPruning() {
	e.pruning = true
	kept := e.keepsAll()
	if kept != "" {
		e.keepAll(kept)
	}
	for _, n := range e.nodes {
		if n.Deletes() && n.state == blocked {
			e.consider(n)
		}
	}
}

// keepsAll is the reason why nothing is pruned yet, or "".
func (e *scheduler) keepsAll() string {
	outcomes := make([]plan.Outcome, len(e.nodes))
	for i, n := range e.nodes {
		outcomes[i] = n.outcome()
	}
	return e.Plan.KeepsAll(outcomes, !e.WaitApplied && !e.PruneAnyway)
}

// keepAll skips every deletion that was not begun, each with the same reason.
func (e *scheduler) keepAll(reason string) {
	for _, n := range e.nodes {
		if n.Deletes() && n.state == blocked && n.Action != plan.Skipped {
			e.end(n, plan.Skipped, reason)
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
	for _, n := range e.nodes {
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
	if kept := e.keepsAll(); kept != "" && !e.pruning && errors.Is(e.ended, report.ErrTimeout) {
		e.keepAll(kept)
	}
	for _, n := range e.nodes {
		if n.Deletes() && (n.state == blocked || n.state == queued) {
			e.lose(n, plan.Skipped, reason)
		}
	}
}

// An object that no watch told of for this long is asked for, a few at a time.
const (
	distrust    = 20 * time.Second
	distrustful = 4
)

// clock watches the time: each object's, and the heartbeat's. The run's is its
// context's.
func (e *scheduler) clock() {
	now := time.Now()
	asked := 0
	for _, n := range e.nodes {
		if n.state != waiting && n.state != failing {
			continue
		}
		// A watch may hang without an error, behind a proxy that lost its server.
		if now.Sub(n.checked) > distrust && now.Sub(e.lastSeen[n.ID.GroupKind]) > distrust && asked < distrustful && !n.polled {
			n.checked = now
			asked++
			e.read(n.resource, []*node{n}, nil)
		}
		if limit := limitOf(n.rules); limit > 0 && now.Sub(n.since) > limit {
			e.settleNotReady(n, report.StateNotReady, fmt.Sprintf("not ready after %s: %s", limit, n.reason))
		}
	}
	if e.Heartbeat > 0 && now.Sub(e.reported) > e.Heartbeat {
		e.reported = now
		if pending := e.pending(); len(pending) > 0 {
			e.Record.Emit(report.Event{Type: report.Heartbeat, Pending: pending})
		}
	}
}

// pending is what is being waited for, longest first.
func (e *scheduler) pending() []report.Pending {
	var pending []report.Pending
	for _, n := range e.nodes {
		switch n.state {
		case waiting, failing:
			pending = append(pending, report.Pending{ID: n.ID, Reason: n.reason, Since: n.since})
		case acting:
			pending = append(pending, report.Pending{ID: n.ID, Reason: "waits for the server's answer", Since: e.Record.Begin.Add(time.Duration(n.Result.StartedAt * float64(time.Second)))})
		}
	}
	slices.SortStableFunc(pending, func(a, b report.Pending) int { return a.Since.Compare(b.Since) })
	return pending
}

// limitOf is an object's own time limit; 0 is none.
func limitOf(rules *ready.Rules) time.Duration {
	if rules == nil || rules.Timeout == nil {
		return 0
	}
	return *rules.Timeout
}
