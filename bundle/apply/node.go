package apply

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/order"
	"brine/bundle/plan"
	"brine/bundle/ready"
	"brine/bundle/report"
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
	statusBy time.Time // until when what it has not said yet is waited for
	missing  string    // what that is: its first status, or its condition Ready
	reason   string    // the last one reported
	reasonAt time.Time // since when
	watched  bool      // a watch has seen it since
	wasReady bool      // unchanged, and ready before the run
	probing  bool      // a CRD whose versions are being asked for
	polled   bool      // no watch can be had
	doubted  bool      // it says that it failed, as it did before it was written
	ready    version   // when it was ready
	relapsed bool      // it was ready, and then it was not
	checked  time.Time // when it was last seen, or asked for
	seen     time.Time // when it was last seen while it is waited for
	changed  time.Time // when more than its times changed since
}

// id is what the server calls the object: of one with generateName, the step has no name.
func (n *node) id() bundle.ID {
	if n.ID.Name == "" && n.stored != nil {
		return bundle.IDOf(n.stored)
	}
	return n.ID
}

// isAwaited says whether the server has the object, and it is not ready, or gone, yet.
func (n *node) isAwaited() bool { return n.state == waiting || n.state == failing }

// awaited are the nodes that are waited for; of, unless nil, says which of them.
func (e *scheduler) awaited(of func(*node) bool) []*node {
	return bundle.Where(e.nodes, func(n *node) bool { return n.isAwaited() && (of == nil || of(n)) })
}

// dependent is an edge, seen from the node that is needed.
type dependent struct {
	node *node
	need plan.Need
}

// kindOf is 1 for the deletions that come last, 0 for all that comes before.
func kindOf(n *node) int {
	if n.Deletes() && !n.First {
		return 1
	}
	return 0
}

// set moves a node to another state. Counting as it goes keeps every step of
// the loop cheap, however many objects there are.
func (e *scheduler) set(n *node, s state) {
	if n.isAwaited() && s != waiting && s != failing {
		n.because("")
	}
	e.counts[kindOf(n)][n.state]--
	e.counts[kindOf(n)][s]++
	n.state = s
}

func (e *scheduler) acting() int { return e.counts[0][acting] + e.counts[1][acting] }

// count returns how many nodes are being worked on or waited for, and how many
// depend on a failed one.
func (e *scheduler) count() (open, hanging int) {
	open = e.acting()
	for kind, by := range e.counts {
		if kind == 1 && !e.pruning {
			continue
		}
		open += by[queued] + by[waiting]
		hanging += by[failing] + by[blocked]
	}
	if (e.WaitApplied || len(e.Plan.Outside) > 0) && open > 0 && open == e.counts[0][waiting] {
		for _, n := range e.nodes {
			if n.state == waiting && e.idle(n) {
				open--
			}
		}
	}
	return open, hanging
}

// idle: with WaitApplied an object is waited for only where another needs
// it ready. So is an object outside the bundle always.
func (e *scheduler) idle(n *node) bool {
	if n.Deletes() || !e.WaitApplied && n.Action != plan.Awaited {
		return false
	}
	return !slices.ContainsFunc(e.dependents[n.index], func(d dependent) bool {
		return d.node.state == blocked && !d.node.Deletes() && d.need.Want == order.Ready
	})
}

// outcome is how the node ended, as those see it that need it.
func (n *node) outcome() plan.Outcome {
	o := plan.Outcome{Action: n.Result.Action}
	if n.isAwaited() || n.Result.Ready == report.StateNotReady || n.Result.Ready == report.StateFailed {
		o.NotReady = cmp.Or(n.Result.Reason, "no reason is known")
	}
	return o
}

// queue holds the nodes that may go, the longest chains of dependents first,
// then as in the plan (container/heap).
type queue []*node

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	if q[i].Priority != q[j].Priority {
		return q[i].Priority > q[j].Priority
	}
	return q[i].index < q[j].index
}
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

func (q *queue) Push(x any) {
	if n, ok := x.(*node); ok {
		*q = append(*q, n)
	}
}

func (q *queue) Pop() any {
	last := len(*q) - 1
	n := (*q)[last]
	*q = (*q)[:last]
	return n
}
