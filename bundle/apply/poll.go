package apply

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/plan"
)

// Objects that cannot be watched, because the right to it is missing or they
// carry no label to watch by, are asked for now and then: in one chain of rounds
// for each kind, the next one a pause after the last one's answers.
const pollEvery = 2 * time.Second

// due begins a round, polled ends it.
type (
	due    struct{ resource cluster.Resource }
	polled struct{ resource cluster.Resource }
)

// poll asks for an object in every round from now on.
func (e *scheduler) poll(n *node, after time.Duration) {
	n.polled = true
	e.pollAfter(n.resource, after)
}

func (e *scheduler) pollAfter(r cluster.Resource, pause time.Duration) {
	if e.polling[r.GVR] {
		return
	}
	e.polling[r.GVR] = true
	time.AfterFunc(pause, func() { e.send(due{r}) })
}

// pollDue asks for those of a kind that are still waited for.
func (e *scheduler) pollDue(r cluster.Resource) {
	nodes := e.awaited(func(n *node) bool { return n.polled && n.resource.GVR == r.GVR })
	if len(nodes) == 0 {
		e.polling[r.GVR] = false
		return
	}
	e.read(r, nodes, func() { e.send(polled{r}) })
}

// read asks for objects that no watch has seen.
func (e *scheduler) read(r cluster.Resource, nodes []*node, done func()) {
	if len(nodes) == 0 {
		return
	}
	ids, byID := make([]bundle.ID, len(nodes)), map[bundle.ID]*node{}
	for i, n := range nodes {
		ids[i], byID[n.ID] = n.ID, n
	}
	e.begin(func(ctx context.Context) {
		e.Client.Poll(ctx, r, ids, e.Selector, func(id bundle.ID, live *unstructured.Unstructured, err error) {
			e.send(polledObject{node: byID[id], live: live, err: err})
		})
		if done != nil {
			done()
		}
	})
}

// begin has loop begin requests in a goroutine, which their context ends.
func (e *scheduler) begin(ask func(context.Context)) {
	e.jobs = append(e.jobs, func(ctx context.Context) { go ask(ctx) })
}

// confirm asks for one object.
func (e *scheduler) confirm(n *node) {
	if !n.isAwaited() {
		return
	}
	e.begin(func(ctx context.Context) {
		live, err := e.Client.Get(ctx, n.resource, n.ID)
		e.send(polledObject{node: n, live: live, err: err})
	})
}

func (e *scheduler) observed(m polledObject) {
	n := m.node
	if !n.isAwaited() || m.err != nil {
		return
	}
	if m.live != nil && !n.polled && n.Action != plan.Awaited && !e.labelled(m.live) {
		e.poll(n, pollEvery) // no watch sees it any more
	}
	live := m.live
	if live == nil {
		live = n.stored
	}
	e.observe(n, live, m.live == nil)
}
