package apply

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/cluster/answers"
	"brine/bundle/plan"
	"brine/bundle/ready"
)

// Objects that cannot be watched, because the right to it is missing or they
// carry no label to watch by, are asked for now and then: in one chain of rounds
// for each kind, the next one a pause after the last one's answers.
const pollEvery = 2 * time.Second

func (e *scheduler) poll(n *node, after time.Duration) {
	n.polled = true
	e.pollAfter(n.resource, after)
}

func (e *scheduler) pollAfter(r cluster.Resource, pause time.Duration) {
	if e.polling[r.GVR] {
		return
	}
	e.polling[r.GVR] = true
	time.AfterFunc(pause, func() { e.send(func() { e.pollDue(r) }) })
}

func (e *scheduler) pollDue(r cluster.Resource) {
	nodes := e.awaited(func(n *node) bool { return n.polled && n.resource.GVR == r.GVR })
	if len(nodes) == 0 {
		e.polling[r.GVR] = false
		return
	}
	e.read(r, nodes, func() {
		e.polling[r.GVR] = false
		e.pollAfter(r, pollEvery)
	})
}

// read asks for objects that no watch has seen; loop does next with the last answer.
func (e *scheduler) read(r cluster.Resource, nodes []*node, next func()) {
	if len(nodes) == 0 {
		return
	}
	ids, byID := make([]bundle.ID, len(nodes)), map[bundle.ID]*node{}
	for i, n := range nodes {
		ids[i] = n.id()
		byID[ids[i]] = n
	}
	e.begin(func(ctx context.Context) {
		e.Client.Poll(ctx, r, ids, e.Selector, func(id bundle.ID, live *unstructured.Unstructured, err error) {
			e.send(func() { e.observed(byID[id], live, err) })
		})
		if next != nil {
			e.send(next)
		}
	})
}

// begin has loop begin requests in a goroutine, which their context ends.
func (e *scheduler) begin(ask func(context.Context)) {
	e.jobs = append(e.jobs, func(ctx context.Context) { go ask(ctx) })
}

func (e *scheduler) confirm(n *node) {
	if !n.isAwaited() {
		return
	}
	e.begin(func(ctx context.Context) {
		live, err := e.Client.Get(ctx, n.resource, n.id())
		e.send(func() {
			if e.observed(n, live, err); err != nil && n.isAwaited() && !n.polled {
				e.poll(n, pollEvery) // what went says nothing any more
			}
		})
	})
}

// observed judges what a read found; nil is gone.
func (e *scheduler) observed(n *node, live *unstructured.Unstructured, err error) {
	switch {
	case !n.isAwaited():
	case err != nil:
		if answers.Refused(err) && !answers.Transient(err) { // what was seen last may be long past
			e.progress(n, ready.Status{Reason: "cannot be read any more: " + answers.Message(err)})
		}
	case live == nil:
		e.observe(n, n.Latest, true)
	default:
		if !n.polled && n.Action != plan.Awaited && !e.labelled(live) {
			e.poll(n, pollEvery) // no watch sees it any more
		}
		e.observe(n, live, false)
	}
}
