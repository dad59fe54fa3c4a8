package apply

import (
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/order"
	"brine/bundle/plan"
	"brine/bundle/ready"
	"brine/bundle/report"
	"brine/bundle/write"
)

// receive handles one message of an applier or a watch.
func (e *scheduler) receive(m any) {
	switch m := m.(type) {
	case written:
		e.acted(m)
	case retried:
		m.node.Result.Reason = ""
		m.node.Uncertain = m.node.Uncertain || !cluster.Refused(m.err)
		e.Record.Emit(report.Event{Type: report.Retrying, Object: m.node.Result, Error: m.err.Error(), Attempt: m.attempt})
	case served:
		e.probed(m)
	case cluster.Seen:
		e.lastSeen[m.ID.GroupKind] = time.Now()
		if n := e.byID[m.ID]; n != nil {
			n.watched, n.checked = true, time.Now()
			e.observe(n, m.Live, m.Gone)
		}
	case cluster.Synced:
		// What the watch should have told of, and did not, is asked for.
		var missed []*node
		for _, n := range e.nodes {
			if (n.state == waiting || n.state == failing) && !n.watched && n.resource.GVR == m.Resource.GVR && (m.Namespace == "" || m.Namespace == n.ID.Namespace) {
				missed = append(missed, n)
			}
		}
		e.read(m.Resource, missed, nil)
	case cluster.Broken:
		e.broken(m)
	case polledObject:
		e.observed(m)
	case due:
		e.pollDue(m.resource)
	case polled:
		e.polling[m.resource.GVR] = false
		e.pollAfter(m.resource, pollEvery)
	}
}

// acted settles what the server answered.
func (e *scheduler) acted(w written) {
	n := w.node
	n.resource = w.Resource
	n.Result.ActedAt = e.Record.Seconds()
	e.reported = time.Now()
	for _, warning := range w.Warnings {
		e.Record.Warn(bundle.Name(n.ID) + ": " + warning)
	}
	if w.Err != nil {
		n.Result.Error = w.Err.Error()
		var notOwned *write.NotOwned
		n.Refused = cluster.Refused(w.Err) || errors.As(w.Err, &notOwned)
		e.Record.Fail(n.Result.About(w.Err.Error()))
		e.lose(n, w.Action, w.Err.Error())
		return
	}
	n.Result.Action = w.Action
	n.stored, n.Latest = w.Stored, w.Stored
	n.Fingerprint, n.HasFingerprint = w.Fingerprint, w.HasFingerprint
	if n.Deletes() {
		if w.Reason != "" {
			n.Reason, n.Result.Reason = w.Reason, w.Reason
		}
		if w.Action == plan.Detached && n.Action == plan.Pruned {
			e.follow(n)
		}
		e.Record.Emit(report.Event{Type: report.Acted, Object: n.Result})
		if w.Gone {
			e.settle(n)
			return
		}
		e.wait(n, ready.Status{State: ready.NotReady, Reason: "is being deleted"})
		return
	}
	if w.Before != nil {
		n.Live = w.Before
	}
	if w.Before != nil && !w.Secret && !write.CopiesSecret(w.Before) {
		d := e.Record.Secrets.Diff(w.Before, n.stored)
		n.Result.Diff, n.Result.Changes = d.Unified, d.Changes
	}
	e.Record.Emit(report.Event{Type: report.Acted, Object: n.Result})
	n.applied = true
	e.meet(n, order.Applied)
	e.assess(n, n.stored)
}

// follow makes stay what an object needs that was to be deleted, and is detached
// after all.
func (e *scheduler) follow(n *node) {
	n.Action = plan.Detached
	for _, edge := range e.dependents[n.index] {
		if d := edge.node; d.state == blocked && d.Follows(edge.need) {
			d.Follow(n.Step, strings.TrimPrefix(edge.need.Reason, "goes before: "))
			e.follow(d)
		}
	}
}

// settleUnchanged settles an object that nothing has to be sent for; what is
// not ready yet is waited for all the same.
func (e *scheduler) settleUnchanged(n *node) {
	n.applied, n.stored, n.Latest = true, n.Live, n.Live
	if r, err := e.Client.Resource(n.GVK); err == nil {
		n.resource = r
	}
	e.Record.Emit(report.Event{Type: report.Acted, Object: n.Result})
	e.meet(n, order.Applied)
	e.assess(n, n.Live)
}

// assess judges an object just after it was applied.
func (e *scheduler) assess(n *node, live *unstructured.Unstructured) {
	if !ready.Waits(n.GVK, n.rules) {
		e.settle(n)
		return
	}
	status := ready.Of(live, n.rules, e.Hints)
	if status.State == ready.Ready {
		e.becameReady(n)
		return
	}
	e.wait(n, status)
}

// wait begins to wait for an object, through a watch of its kind.
func (e *scheduler) wait(n *node, status ready.Status) {
	e.set(n, waiting)
	n.since, n.checked = time.Now(), time.Now()
	if e.ended != nil { // its request was under way when the run ended
		n.reason = status.Reason
		e.settleNotReady(n, report.StateNotReady, e.ended.Error()+": "+status.Reason)
		return
	}
	e.progress(n, status)
	if n.Deletes() && !e.labelled(n.Live) {
		e.poll(n, pollEvery/20)
		return
	}
	scope := e.scopeOf(n)
	if e.unwatched[watchName(n, scope)] {
		scope = n.ID.Namespace
	}
	if e.unwatched[watchName(n, scope)] {
		e.poll(n, pollEvery)
		return
	}
	e.watches.Start(e.requests, n.resource, scope)
}

func watchName(n *node, namespace string) string { return n.resource.GVR.String() + " " + namespace }

func (e *scheduler) labelled(live *unstructured.Unstructured) bool {
	key, value, _ := strings.Cut(e.Selector, "=")
	return live.GetLabels()[key] == value
}

// scopeOf is the namespace to watch for a kind: the only one there is, or all.
func (e *scheduler) scopeOf(n *node) string {
	if e.scopes == nil {
		e.scopes = map[string]string{}
		for _, other := range e.nodes {
			kind := other.ID.GroupKind.String()
			if scope, ok := e.scopes[kind]; ok && scope != other.ID.Namespace {
				e.scopes[kind] = ""
			} else if !ok {
				e.scopes[kind] = other.ID.Namespace
			}
		}
	}
	return e.scopes[n.ID.GroupKind.String()]
}

// progress tells why an object is not ready, when that changed.
func (e *scheduler) progress(n *node, status ready.Status) {
	if n.reason == status.Reason && n.reason != "" {
		return
	}
	n.reason = status.Reason
	n.Result.Reason = status.Reason
	e.reported = time.Now()
	e.Record.Emit(report.Event{Type: report.Waiting, Object: n.Result, Reason: status.Reason})
}

// observe judges an object that a watch, or a GET, has seen.
func (e *scheduler) observe(n *node, live *unstructured.Unstructured, gone bool) {
	if n.state != waiting && n.state != failing {
		return
	}
	if older(n, live) {
		return
	}
	if n.Deletes() {
		switch {
		case gone, live.GetUID() != n.Live.GetUID():
			e.settle(n)
		default:
			e.progress(n, ready.Status{Reason: ready.Terminating(live)})
		}
		return
	}
	if !gone {
		n.Latest = live
	}
	if gone {
		status := ready.Deleted(live, n.rules)
		if status.State == ready.Ready {
			e.becameReady(n)
			return
		}
		e.settleNotReady(n, report.StateFailed, status.Reason)
		return
	}
	if n.stored != nil && live.GetUID() == n.stored.GetUID() && live.GetGeneration() < n.stored.GetGeneration() {
		return // older than what we applied
	}
	switch status := ready.Of(live, n.rules, e.Hints); status.State {
	case ready.Ready:
		e.becameReady(n)
	case ready.Failed:
		if n.state == waiting {
			e.set(n, failing)
			n.Result.Ready = report.StateFailed
			n.reason = status.Reason
			n.Result.Reason = status.Reason
			e.reported = time.Now()
			e.Record.Emit(report.Event{Type: report.NotReady, Object: n.Result, Reason: status.Reason})
		}
		n.reason = status.Reason
	default:
		if n.state == failing {
			e.set(n, waiting)
			n.Result.Ready = ""
		}
		e.progress(n, status)
	}
}

// older says whether an event is of the object that this run replaced: the
// watch may be behind the answers to our own requests.
func older(n *node, live *unstructured.Unstructured) bool {
	if n.stored == nil || live == nil || live.GetUID() == n.stored.GetUID() {
		return false
	}
	for _, old := range []*unstructured.Unstructured{n.Live, n.Terminating} {
		if old != nil && old.GetUID() == live.GetUID() {
			return true
		}
	}
	return false
}

// becameReady settles a ready object; a CRD whose resources wait for it only
// after its versions are served.
func (e *scheduler) becameReady(n *node) {
	if n.ID.GroupKind == bundle.CRDKind && n.Result.Action != plan.Unchanged && len(e.dependents[n.index]) > 0 {
		if n.probing {
			return
		}
		n.probing = true
		if e.ended != nil {
			e.settle(n)
			return
		}
		if n.state != waiting {
			e.set(n, waiting)
			n.since, n.checked = time.Now(), time.Now()
			n.reason = "its versions are not served yet"
		}
		e.probe(n)
		return
	}
	e.settle(n)
}

func (e *scheduler) probed(m served) {
	if m.node.state != waiting && m.node.state != failing {
		return
	}
	if m.err != nil {
		e.settleNotReady(m.node, report.StateFailed, m.err.Error())
		return
	}
	e.settle(m.node)
}

// settle ends a node well: ready, or gone.
func (e *scheduler) settle(n *node) {
	waited := n.state == waiting || n.state == failing
	e.set(n, finished)
	n.stored, n.Latest = nil, nil // of thousands of objects, those that are done with are not kept
	e.Record.Settled()
	n.Result.ReadyAt = e.Record.Seconds()
	if !n.Deletes() {
		n.Result.Ready, n.Result.Reason = report.StateReady, n.Reason
	} else if n.Result.Action == plan.Pruned {
		n.Result.Reason = n.Reason
	}
	if waited {
		e.reported = time.Now()
		e.Record.Emit(report.Event{Type: report.BecameReady, Object: n.Result})
	}
	e.meet(n, order.Ready)
}

// settleNotReady ends the waiting for an object.
func (e *scheduler) settleNotReady(n *node, how, reason string) {
	n.Result.Ready = how
	if n.Deletes() {
		n.Result.Ready = report.StateNotReady
	}
	e.lose(n, "", reason)
}

// broken: a kind cannot be watched everywhere. It is watched by namespace, and
// where that is forbidden as well, asked for now and then.
func (e *scheduler) broken(m cluster.Broken) {
	e.unwatched[m.Resource.GVR.String()+" "+m.Namespace] = true
	polled := false
	for _, n := range e.nodes {
		if (n.state != waiting && n.state != failing) || n.resource.GVR != m.Resource.GVR || (m.Namespace != "" && m.Namespace != n.ID.Namespace) {
			continue
		}
		if m.Namespace == "" && n.ID.Namespace != "" && !e.unwatched[watchName(n, n.ID.Namespace)] {
			e.watches.Start(e.requests, n.resource, n.ID.Namespace)
			continue
		}
		polled = true
		e.poll(n, pollEvery)
	}
	if polled && apierrors.IsForbidden(m.Err) {
		e.Record.Warn(fmt.Sprintf("missing right: watch %s: its objects are read every %s until they are ready", m.Resource.GVR.GroupResource(), pollEvery))
	}
}

// servedTime bounds how long the versions of an established CRD may take to be
// served.
const servedTime = 30 * time.Second

// probe waits until the versions of a CRD are served: it is established a
// little before.
func (e *scheduler) probe(n *node) {
	resources := cluster.Defined(n.Object.Content)
	go func() {
		deadline := time.Now().Add(servedTime)
		for _, r := range resources {
			for pause := 25 * time.Millisecond; ; pause = min(2*pause, time.Second) {
				ok, err := e.Client.Serves(e.requests, r.GVR)
				if ok {
					break
				}
				if time.Now().After(deadline) || e.requests.Err() != nil {
					e.send(served{node: n, err: fmt.Errorf("established, but %s is not served: %w", r.GVR, errors.Join(err))})
					return
				}
				select {
				case <-e.requests.Done():
				case <-time.After(pause):
				}
			}
		}
		e.send(served{node: n})
	}()
}

func (e *scheduler) send(m any) {
	select {
	case e.messages <- m:
	case <-e.requests.Done():
	}
}
