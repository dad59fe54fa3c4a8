package apply

import (
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
	var nodes []*node
	for _, n := range e.nodes {
		if (n.state == waiting || n.state == failing) && n.polled && n.resource.GVR == r.GVR {
			nodes = append(nodes, n)
		}
	}
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
	go func() {
		e.Client.Poll(e.requests, r, ids, e.Selector, func(id bundle.ID, live *unstructured.Unstructured, err error) {
			e.send(polledObject{node: byID[id], live: live, err: err})
		})
		if done != nil {
			done()
		}
	}()
}

// confirm asks for one object.
func (e *scheduler) confirm(n *node) {
	if n.state != waiting && n.state != failing {
		return
	}
	go func() {
		live, err := e.Client.Get(e.requests, n.resource, n.ID)
		e.send(polledObject{node: n, live: live, err: err})
	}()
}

func (e *scheduler) observed(m polledObject) {
	n := m.node
	if n.state != waiting && n.state != failing || m.err != nil {
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
