package apply

import (
	"errors"
	"fmt"
	"slices"
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
)

// receive handles one message of an applier or a watch.
func (e *execution) receive(m any) {
	switch m := m.(type) {
	case outcome:
		e.acted(m)
	case retried:
		m.node.result.Reason = ""
		m.node.doubtful = m.node.doubtful || !cluster.Refused(m.err)
		e.record.Emit(report.Event{Type: report.Retrying, Object: m.node.result, Error: m.err.Error(), Attempt: m.attempt})
	case served:
		e.probed(m)
	case cluster.Seen:
		e.heard[m.ID.GroupKind] = time.Now()
		if n := e.byID[m.ID]; n != nil {
			n.seen, n.checked = true, time.Now()
			e.observe(n, m.Live, m.Gone)
		}
	case cluster.Synced:
		// What the watch should have told of, and did not, is asked for.
		var missed []*node
		for _, n := range e.nodes {
			if (n.state == waiting || n.state == failing) && !n.seen && n.resource.GVR == m.Resource.GVR && (m.Namespace == "" || m.Namespace == n.ID.Namespace) {
				missed = append(missed, n)
			}
		}
		e.look(m.Resource, missed, nil)
	case cluster.Broken:
		e.broken(m)
	case looked:
		e.lookedAt(m)
	case due:
		e.pollDue(m.resource)
	case polled:
		e.polling[m.resource.GVR] = false
		e.pollAfter(m.resource, pollEvery)
	}
}

// acted settles what the server answered.
func (e *execution) acted(o outcome) {
	n := o.node
	n.result.ActedAt = e.record.Seconds()
	e.quiet = time.Now()
	for _, w := range o.warnings {
		e.record.Warn(bundle.Name(n.ID) + ": " + w)
	}
	if o.err != nil {
		n.result.Error = o.err.Error()
		var others *notOurs
		n.refused = cluster.Refused(o.err) || errors.As(o.err, &others)
		e.record.Fail(e.about(n, o.err.Error()))
		e.lose(n, o.action, o.err.Error())
		return
	}
	n.result.Action = o.action
	n.stored, n.latest = o.stored, o.stored
	n.print, n.printed = o.print, o.printed
	if n.Deletes() {
		if o.reason != "" {
			n.Reason, n.result.Reason = o.reason, o.reason
		}
		if o.action == plan.Detached && n.Action == plan.Pruned {
			e.follow(n)
		}
		e.record.Emit(report.Event{Type: report.Acted, Object: n.result})
		if o.gone {
			e.settle(n)
			return
		}
		e.wait(n, ready.Status{State: ready.NotReady, Reason: "is being deleted"})
		return
	}
	if o.before != nil {
		n.Live = o.before
	}
	if o.before != nil && !o.secret && !copiesSecret(o.before) {
		d := e.record.Secrets.Diff(o.before, n.stored)
		n.result.Diff, n.result.Changes = d.Unified, d.Changes
	}
	e.record.Emit(report.Event{Type: report.Acted, Object: n.result})
	n.applied = true
	e.recent.note(n.Object, o.action)
	e.meet(n, order.Applied)
	e.assess(n, n.stored)
}

// follow makes stay what an object needs that was to be deleted, and is detached
// after all.
func (e *execution) follow(n *node) {
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
func (e *execution) settleUnchanged(n *node) {
	n.applied, n.stored, n.latest = true, n.Live, n.Live
	if r, err := e.client.Resource(n.GVK); err == nil {
		n.resource = r
	}
	e.record.Emit(report.Event{Type: report.Acted, Object: n.result})
	e.meet(n, order.Applied)
	e.assess(n, n.Live)
}

// assess judges an object just after it was applied.
func (e *execution) assess(n *node, live *unstructured.Unstructured) {
	if !ready.Waits(n.GVK, n.rules) {
		e.settle(n)
		return
	}
	status := ready.Of(live, n.rules, e.hints)
	if status.State == ready.Ready {
		e.becameReady(n)
		return
	}
	e.wait(n, status)
}

// wait begins to wait for an object, through a watch of its kind.
func (e *execution) wait(n *node, status ready.Status) {
	e.set(n, waiting)
	n.since, n.checked = time.Now(), time.Now()
	if e.halted != nil { // its request was under way when the run ended
		n.reason = status.Reason
		e.settleNotReady(n, report.StateNotReady, e.halted.Error()+": "+status.Reason)
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
	e.watches.Start(e.work, n.resource, scope)
}

func watchName(n *node, namespace string) string { return n.resource.GVR.String() + " " + namespace }

func (e *execution) labelled(live *unstructured.Unstructured) bool {
	key, value, _ := strings.Cut(e.inv.Selector(), "=")
	return live.GetLabels()[key] == value
}

// scopeOf is the namespace to watch for a kind: the only one there is, or all.
func (e *execution) scopeOf(n *node) string {
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
func (e *execution) progress(n *node, status ready.Status) {
	if n.reason == status.Reason && n.reason != "" {
		return
	}
	n.reason = status.Reason
	n.result.Reason = status.Reason
	e.quiet = time.Now()
	e.record.Emit(report.Event{Type: report.Waiting, Object: n.result, Reason: status.Reason})
}

// observe judges an object that a watch, or a GET, has seen.
func (e *execution) observe(n *node, live *unstructured.Unstructured, gone bool) {
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
			e.progress(n, ready.Status{Reason: deleting(live)})
		}
		return
	}
	if !gone {
		n.latest = live
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
	switch status := ready.Of(live, n.rules, e.hints); status.State {
	case ready.Ready:
		e.becameReady(n)
	case ready.Failed:
		if n.state == waiting {
			e.set(n, failing)
			n.result.Ready = report.StateFailed
			n.reason = status.Reason
			n.result.Reason = status.Reason
			e.quiet = time.Now()
			e.record.Emit(report.Event{Type: report.NotReady, Object: n.result, Reason: status.Reason})
		}
		n.reason = status.Reason
	default:
		if n.state == failing {
			e.set(n, waiting)
			n.result.Ready = ""
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

// deleting says what keeps a deleted object.
func deleting(live *unstructured.Unstructured) string {
	reason := "is being deleted"
	conditions, _, _ := unstructured.NestedSlice(live.Object, "status", "conditions")
	for _, c := range conditions {
		condition, ok := c.(map[string]any)
		if ok && condition["status"] == "True" && (live.GetKind() == "Namespace" || condition["type"] == "Terminating") { // a CRD's
			reason += fmt.Sprintf("; %v: %v", condition["reason"], condition["message"])
		}
	}
	finalizers := slices.Clone(live.GetFinalizers())
	more, _, _ := unstructured.NestedStringSlice(live.Object, "spec", "finalizers")
	if finalizers = append(finalizers, more...); len(finalizers) > 0 {
		reason += "; held by finalizers: " + strings.Join(finalizers, ", ")
	}
	return reason
}

// becameReady settles a ready object; a CRD whose resources wait for it only
// after its versions are served.
func (e *execution) becameReady(n *node) {
	if n.ID.GroupKind == bundle.CRDKind && n.result.Action != plan.Unchanged && len(e.dependents[n.index]) > 0 {
		if n.probing {
			return
		}
		n.probing = true
		if e.halted != nil {
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

func (e *execution) probed(m served) {
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
func (e *execution) settle(n *node) {
	waited := n.state == waiting || n.state == failing
	e.set(n, finished)
	n.stored, n.latest = nil, nil // of thousands of objects, those that are done with are not kept
	e.record.Settled()
	n.result.ReadyAt = e.record.Seconds()
	if !n.Deletes() {
		n.result.Ready, n.result.Reason = report.StateReady, n.Reason
	} else if n.result.Action == plan.Pruned {
		n.result.Reason = n.Reason
	}
	if waited {
		e.quiet = time.Now()
		e.record.Emit(report.Event{Type: report.BecameReady, Object: n.result})
	}
	e.meet(n, order.Ready)
}

// settleNotReady ends the waiting for an object.
func (e *execution) settleNotReady(n *node, how, reason string) {
	n.result.Ready = how
	if n.Deletes() {
		n.result.Ready = report.StateNotReady
		e.stuck = append(e.stuck, n.ID)
	}
	e.lose(n, "", reason)
}

// broken: a kind cannot be watched everywhere. It is watched by namespace, and
// where that is forbidden as well, asked for now and then.
func (e *execution) broken(m cluster.Broken) {
	if e.unwatched == nil {
		e.unwatched = map[string]bool{}
	}
	e.unwatched[m.Resource.GVR.String()+" "+m.Namespace] = true
	for _, n := range e.nodes {
		// The state first: while a node is acting its resource is its applier's.
		if (n.state != waiting && n.state != failing) || n.resource.GVR != m.Resource.GVR || (m.Namespace != "" && m.Namespace != n.ID.Namespace) {
			continue
		}
		if m.Namespace == "" && n.ID.Namespace != "" && !e.unwatched[watchName(n, n.ID.Namespace)] {
			e.watches.Start(e.work, n.resource, n.ID.Namespace)
			continue
		}
		if apierrors.IsForbidden(m.Err) {
			e.record.Warn(fmt.Sprintf("missing right: watch %s: its objects are read every %s until they are ready", m.Resource.GVR.GroupResource(), pollEvery))
		}
		e.poll(n, pollEvery)
	}
}
