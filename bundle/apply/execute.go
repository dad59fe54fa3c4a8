package apply

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"maps"
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
	"brine/inventory"
)

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
	*plan.Step
	index  int
	state  state
	needs  int // unmet needs
	result *report.ObjectResult

	resource cluster.Resource
	rules    *ready.Rules
	applied  bool // needs that want it applied are met
	stored   *unstructured.Unstructured
	latest   *unstructured.Unstructured // as last seen on the cluster
	print    inventory.Fingerprint      // of what is stored
	printed  bool
	since    time.Time // when waiting began
	reason   string    // the last one told
	seen     bool      // a watch has seen it since
	probing  bool      // a CRD whose versions are being asked for
	polled   bool      // no watch can be had
	checked  time.Time // when it was last seen, or asked for
	why      string    // for those that are skipped because of it
	refused  bool      // the server said no, for good
	doubtful bool      // an attempt before that may have gone through all the same
}

// dependent is an edge, seen from the node that is needed.
type dependent struct {
	node *node
	need plan.Need
}

// execution carries out a plan: one goroutine (loop) owns all state; appliers
// and watches only send it messages. An object goes as soon as what it needs
// is there; waiting never holds an applier.
type execution struct {
	*run
	nodes      []*node
	byID       map[bundle.ID]*node
	dependents [][]dependent // node -> the edges that need it
	queue      queue
	pruning    bool             // applies are through: deletions may go
	counts     [2][lost + 1]int // nodes by state: applies, deletions
	mail       chan any
	watches    *cluster.Watches
	work       context.Context //nolint:containedctx // of requests: lives a little longer than the run
	deadline   time.Time
	quiet      time.Time                      // last time anything was told
	halted     error                          // why no new writes are sent
	scopes     map[string]string              // kind -> the namespace to watch
	heard      map[schema.GroupKind]time.Time // when a watch of the kind last told anything
	unwatched  map[string]bool                // kind and namespace of watches that cannot be had
	stuck      []bundle.ID                    // deletions that did not end
	hints      ready.Hints
	deleted    deletions
	searches   searches
	polling    map[schema.GroupVersionResource]bool // kinds of which some are asked for now and then
	recent     recent                               // what this run changed, for its appliers
}

// outcome is what an applier reports.
type outcome struct {
	node     *node
	action   plan.Action
	stored   *unstructured.Unstructured
	before   *unstructured.Unstructured // the object that was applied to
	gone     bool                       // a deletion that needs no waiting
	reason   string                     // why a deletion came to something else than was planned
	warnings []string
	secret   bool // what was sent holds values of a Secret
	print    inventory.Fingerprint
	printed  bool
	err      error
}

// served is the answer to a CRD's probe.
type served struct {
	node *node
	err  error
}

// looked is the answer about an object that no watch told of.
type looked struct {
	node *node
	live *unstructured.Unstructured
	err  error
}

type retried struct {
	node    *node
	err     error
	attempt int
}

func (r *run) execute(ctx context.Context) *execution {
	// Requests under way are let finish when the run is interrupted.
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	e := &execution{
		run: r, byID: map[bundle.ID]*node{}, dependents: make([][]dependent, len(r.plan.Steps)),
		mail: make(chan any, 1024), work: work, quiet: time.Now(), heard: map[schema.GroupKind]time.Time{}, polling: map[schema.GroupVersionResource]bool{},
	}
	e.deadline, _ = ctx.Deadline()
	e.watches = r.client.Watches(r.inv.Selector(), func(m any) {
		select {
		case e.mail <- m:
		case <-work.Done():
		}
	})
	r.client.OnRetry(func(ctx context.Context, err error, attempt int) {
		if n, ok := ctx.Value(nodeKey{}).(*node); ok {
			e.send(retried{node: n, err: err, attempt: attempt})
		}
	})
	results := r.record.Start(r.plan)
	for i, step := range r.plan.Steps {
		n := &node{Step: step, index: i, result: results[i], needs: len(step.Needs), rules: r.rules[step.ID]}
		e.nodes = append(e.nodes, n)
		e.counts[kindOf(n)][blocked]++
		if step.ID.Name != "" {
			e.byID[step.ID] = n
		}
		for _, need := range step.Needs {
			e.dependents[need.Step] = append(e.dependents[need.Step], dependent{node: n, need: need})
		}
	}
	e.hints = storageHints(ctx, r.client, slices.Collect(maps.Keys(e.byID)), r.bundle.Objects)
	e.loop(ctx, cancel)
	return e
}

// loop runs until every node is settled.
func (e *execution) loop(ctx context.Context, cancel context.CancelFunc) {
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
		case m := <-e.mail:
			e.receive(m)
		case <-tick.C:
			e.clock()
		case <-interrupted:
			interrupted = nil
			e.halt(context.Cause(ctx))
		}
		if e.halted != nil && !grace {
			// What the server has not answered by then, it will not.
			grace = true
			time.AfterFunc(lastWords*4/10, cancel)
		}
	}
	cancel()
	e.watches.Stop()
}

// advance starts what may go; false when all is settled.
func (e *execution) advance() bool {
	for e.acting() < e.client.Concurrency() && e.queue.Len() > 0 && e.halted == nil {
		n, ok := heap.Pop(&e.queue).(*node)
		if !ok || n.state != queued {
			continue
		}
		e.set(n, acting)
		n.result.StartedAt = e.record.Seconds()
		e.record.Emit(report.Event{Type: report.Acting, Object: n.result})
		go func() {
			o := e.act(n)
			e.mail <- o
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
	if !e.pruning && e.halted == nil {
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
func (e *execution) set(n *node, s state) {
	e.counts[kindOf(n)][n.state]--
	e.counts[kindOf(n)][s]++
	n.state = s
}

func (e *execution) acting() int { return e.counts[0][acting] + e.counts[1][acting] }

// count tells how many nodes something is still going on with, and how many
// hang on a failed one.
func (e *execution) count() (open, hanging int) {
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
func (e *execution) idle(n *node) bool {
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
func (e *execution) consider(n *node) {
	switch {
	case n.Blocked != "":
		e.lose(n, plan.Failed, n.Blocked)
		e.record.Fail(e.about(n, n.Blocked))
	case n.Action == plan.Skipped:
		if n.Kept {
			e.record.Fail(e.about(n, "not deleted: "+n.Reason))
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
func (e *execution) meet(n *node, want order.Want) {
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
func (e *execution) lose(n *node, action plan.Action, reason string) {
	if n.state == lost {
		return
	}
	wasApplied := n.applied
	e.end(n, action, reason)
	e.skipDependents(n, wasApplied)
}

// end settles a node that came to nothing.
func (e *execution) end(n *node, action plan.Action, reason string) {
	toldFailed := n.state == failing && n.reason == reason
	e.set(n, lost)
	if action != "" {
		n.result.Action = action
	}
	n.result.Reason = reason
	e.record.Settled()
	if action != "" {
		e.record.Emit(report.Event{Type: report.Acted, Object: n.result, Reason: reason, Error: n.result.Error})
	} else if !toldFailed {
		e.record.Emit(report.Event{Type: report.NotReady, Object: n.result, Reason: reason})
	}
}

func (e *execution) skipDependents(n *node, wasApplied bool) {
	for _, edge := range e.dependents[n.index] {
		d, need := edge.node, edge.need
		if d.state != blocked || d.Action == plan.Unchanged || (need.Want == order.Applied && wasApplied) {
			continue
		}
		if d.Deletes() && n.Action == plan.Skipped && !n.Kept && need.Weak {
			// The planner let what is deleted go though this one stays.
			if d.needs--; d.needs == 0 {
				e.consider(d)
			}
			continue
		}
		e.lose(d, plan.Skipped, e.because(d, n, need))
	}
}

func (e *execution) because(d, n *node, need plan.Need) string {
	why := n.why
	if why == "" {
		switch {
		case n.result.Action == plan.Failed:
			why = "failed"
		case n.result.Action == plan.Skipped && d.Deletes():
			why = "was kept"
		case n.result.Action == plan.Skipped:
			why = "was skipped"
		default:
			why = "is not ready: " + n.result.Reason
		}
	}
	if d.Deletes() {
		return keptFor(n.ID, need, why)
	}
	return blockedBy(n.ID, need.Want, why, need.Reason)
}

// keptFor is the reason of a deletion that was skipped for another's sake.
func keptFor(on bundle.ID, need plan.Need, why string) string {
	return fmt.Sprintf("kept: %s, which must be deleted first (%s), %s", bundle.Name(on), need.Reason, why)
}

// giveUp settles what hangs on failed objects: they did not recover while the
// others went on.
func (e *execution) giveUp() {
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
					reason = e.because(n, on, need)
				}
			}
			e.lose(n, plan.Skipped, reason)
		}
	}
}

// startPruning starts the deletions, unless something keeps all of them.
func (e *execution) startPruning() {
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

// keepsAll is the reason why nothing is pruned yet: what is old stays until what
// is new was applied and, unless the user says otherwise, is ready.
func (e *execution) keepsAll() string {
	var notApplied int
	var notReadyYet []*node
	for _, n := range e.nodes {
		switch {
		case n.Deletes():
		case n.result.Action == plan.Failed || n.result.Action == plan.Skipped:
			notApplied++
		case n.result.Ready == report.StateNotReady || n.result.Ready == report.StateFailed:
			notReadyYet = append(notReadyYet, n)
		}
	}
	switch {
	case notApplied > 0:
		return notAppliedReason(notApplied)
	case len(notReadyYet) == 0 || e.WaitApplied || e.PruneAnyway:
		return ""
	}
	reason := "kept: " + bundle.Name(notReadyYet[0].ID) + " is not ready"
	if more := len(notReadyYet) - 1; more > 0 {
		reason = fmt.Sprintf("kept: %s and %s are not ready", bundle.Name(notReadyYet[0].ID), bundle.Count(more, "more object"))
	}
	if e.halted == nil {
		reason += " (--prune-anyway deletes all the same)"
	}
	return reason
}

// notAppliedReason is the reason to keep what would be pruned when some objects
// were not applied.
func notAppliedReason(count int) string {
	return fmt.Sprintf("kept: %s could not be applied", bundle.Count(count, "object"))
}

// keepAll skips every deletion that was not begun, each with the same reason.
func (e *execution) keepAll(reason string) {
	for _, n := range e.nodes {
		if n.Deletes() && n.state == blocked && n.Action != plan.Skipped {
			e.end(n, plan.Skipped, reason)
		}
	}
}

// halt stops all that has not been sent.
func (e *execution) halt(cause error) {
	e.halted = cause
	if errors.Is(cause, report.ErrTimeout) {
		e.settleAll(cause.Error())
		return
	}
	e.settleAll("interrupted: " + cause.Error())
}

// settleAll ends the waiting and skips what was not begun.
func (e *execution) settleAll(reason string) {
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
	if kept := e.keepsAll(); kept != "" && !e.pruning && errors.Is(e.halted, report.ErrTimeout) {
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
func (e *execution) clock() {
	now := time.Now()
	asked := 0
	for _, n := range e.nodes {
		if n.state != waiting && n.state != failing {
			continue
		}
		// A watch may hang without an error, behind a proxy that lost its server.
		if now.Sub(n.checked) > distrust && now.Sub(e.heard[n.ID.GroupKind]) > distrust && asked < distrustful && !n.polled {
			n.checked = now
			asked++
			e.look(n.resource, []*node{n}, nil)
		}
		if limit := limitOf(n.rules); limit > 0 && now.Sub(n.since) > limit {
			e.settleNotReady(n, report.StateNotReady, fmt.Sprintf("not ready after %s: %s", limit, n.reason))
		}
	}
	if e.Heartbeat > 0 && now.Sub(e.quiet) > e.Heartbeat {
		e.quiet = now
		if pending := e.pending(); len(pending) > 0 {
			e.record.Emit(report.Event{Type: report.Heartbeat, Pending: pending})
		}
	}
}

// pending is what is being waited for, longest first.
func (e *execution) pending() []report.Pending {
	var pending []report.Pending
	for _, n := range e.nodes {
		switch n.state {
		case waiting, failing:
			pending = append(pending, report.Pending{ID: n.ID, Reason: n.reason, Since: n.since})
		case acting:
			pending = append(pending, report.Pending{ID: n.ID, Reason: "waits for the server's answer", Since: e.record.Begin.Add(time.Duration(n.result.StartedAt * float64(time.Second)))})
		}
	}
	slices.SortStableFunc(pending, func(a, b report.Pending) int { return a.Since.Compare(b.Since) })
	return pending
}

func (e *execution) about(n *node, message string) string {
	text := bundle.Name(n.ID) + ": " + message
	if at := n.result.Source.String(); at != "" {
		text = at + ": " + text
	}
	return text
}

// blockedBy is the reason of an object that was skipped for another's sake.
func blockedBy(on bundle.ID, want order.Want, why, reason string) string {
	return fmt.Sprintf("needs %s %s (%s), which %s", bundle.Name(on), want, reason, why)
}
