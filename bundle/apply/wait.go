package apply

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"brine/bundle/cluster"
	"brine/bundle/plan"
	"brine/bundle/ready"
	"brine/bundle/report"
)

// Waiting: what a watch or a GET has seen of an object decides whether it is ready.

// assess judges an object just after it was applied.
func (e *scheduler) assess(n *node, live *unstructured.Unstructured) {
	if !ready.Waits(n.GVK, n.rules) && live.GetDeletionTimestamp() == nil {
		e.settle(n)
		return
	}
	switch status := ready.Of(live, n.rules, e.Hints); {
	case status.State == ready.Ready:
		if !e.awaitsStatus(n, status) {
			e.becameReady(n, live, status)
		}
	case n.rules != nil && n.rules.Skip:
		e.settleUnawaited(n, status)
	default:
		e.wait(n, status)
	}
}

// wait begins to wait for an object, through a watch of its kind.
func (e *scheduler) wait(n *node, status ready.Status) {
	e.set(n, waiting)
	n.since, n.checked, n.changed = time.Now(), time.Now(), time.Now()
	if e.ended != nil { // its request was under way when the run ended
		n.because(status.Reason)
		e.settleNotReady(n, report.StateNotReady, e.ended.Error()+": "+status.Reason)
		return
	}
	e.progress(n, status)
	if n.ID.Name == "" || (n.Deletes() || n.Action == plan.Awaited) && !e.labelled(n.Live) {
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
	e.watch(n, scope)
}

// watch has loop start a watch of a node's kind, where there is none yet.
func (e *scheduler) watch(n *node, namespace string) {
	e.jobs = append(e.jobs, func(ctx context.Context) { e.watches.Start(ctx, n.resource, namespace) })
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

// progress reports why an object is not ready, when that changed.
func (e *scheduler) progress(n *node, status ready.Status) {
	if n.reason == status.Reason && n.reason != "" {
		return
	}
	n.because(status.Reason)
	n.Result.Reason = status.Reason
	e.reported = time.Now()
	e.Record.Emit(report.Waiting{Object: n.Result, Reason: status.Reason})
}

// observe judges an object that a watch, or a GET, has seen; gone: a GET has not found it.
func (e *scheduler) observe(n *node, live *unstructured.Unstructured, gone bool) {
	switch {
	case !n.isAwaited(), !gone && older(n, live):
		return
	case n.Deletes() && (gone || live.GetUID() != n.Live.GetUID()):
		e.settle(n)
		return
	case n.Deletes():
		e.progress(n, ready.Status{Reason: ready.Terminating(live)})
		return
	case gone:
		if status := ready.Deleted(live, n.rules); status.State == ready.Ready {
			e.becameReady(n, live, status)
		} else {
			e.settleNotReady(n, report.StateFailed, status.Reason)
		}
		return
	}
	if n.Action != plan.Awaited && n.stored != nil && live.GetUID() != n.stored.GetUID() {
		e.settleNotReady(n, report.StateFailed, "another client deleted it, and created it again, while it was waited for")
		return
	}
	n.noteChange(live)
	e.said.Hear(n.ID.GroupKind, live)
	n.Latest = live
	e.judge(n, live)
}

// judge decides by what was seen last.
func (e *scheduler) judge(n *node, live *unstructured.Unstructured) {
	n.doubted = false
	switch status := ready.Of(live, n.rules, e.Hints); status.State {
	case ready.Ready:
		if !e.awaitsStatus(n, status) {
			e.becameReady(n, live, status)
		}
	case ready.Failed:
		if e.failedBefore(n, status) {
			e.progress(n, status)
			return
		}
		if n.state == waiting {
			e.set(n, failing)
			n.Result.Ready = report.StateFailed
			n.Result.Reason = status.Reason
			e.reported = time.Now()
			e.Record.Emit(report.NotReady{Object: n.Result, Reason: status.Reason})
		}
		n.because(status.Reason)
	default:
		if n.state == failing {
			e.set(n, waiting)
			n.Result.Ready = ""
		}
		e.progress(n, status)
	}
}

// failureBefore is how long the failure is not believed that an object had before it was
// written. A controller may have seen the new generation and not have judged it yet: a
// Deployment that goes back to a ReplicaSet of before is past the deadline of the rollout that
// it leaves, until its surplus pod is gone.
const failureBefore = 10 * time.Second

func (e *scheduler) failedBefore(n *node, status ready.Status) bool {
	if n.state != waiting || n.Result.Action != plan.Configured || n.Live == nil || time.Since(n.since) > failureBefore {
		return false
	}
	was := ready.Of(n.Live, n.rules, e.Hints)
	n.doubted = was.State == ready.Failed && was.Reason == status.Reason
	return n.doubted
}

// older says whether what an API server shows is from before what this run has read or
// written: watches, and the LISTs before them, may be behind. Versions of a resource can be
// compared (KEP-5504); where a server has others, generations of one object can, and the
// object that this run replaced is known by its UID.
func older(n *node, live *unstructured.Unstructured) bool {
	for _, known := range []*unstructured.Unstructured{n.stored, n.Latest, n.Live, n.Terminating} {
		if known == nil || live == nil {
			continue
		}
		order, err := resourceversion.CompareResourceVersion(live.GetResourceVersion(), known.GetResourceVersion())
		same := live.GetUID() == known.GetUID()
		replaced := n.stored != nil && same && live.GetUID() != n.stored.GetUID()
		if err == nil && order < 0 || err != nil && (replaced || same && live.GetGeneration() < known.GetGeneration()) {
			return true
		}
	}
	return false
}

// broken: a kind cannot be watched everywhere. It is watched by namespace, and
// where that is forbidden as well, asked for now and then.
func (e *scheduler) broken(m cluster.Broken) {
	e.unwatched[m.Resource.GVR.String()+" "+m.Namespace] = true
	polled := false
	for _, n := range e.nodes {
		if !n.isAwaited() || n.resource.GVR != m.Resource.GVR || (m.Namespace != "" && m.Namespace != n.ID.Namespace) {
			continue
		}
		if m.Namespace == "" && n.ID.Namespace != "" && !e.unwatched[watchName(n, n.ID.Namespace)] {
			e.watch(n, n.ID.Namespace)
			continue
		}
		polled = true
		e.poll(n, pollEvery)
	}
	if polled && apierrors.IsForbidden(m.Err) {
		e.Record.Warn(fmt.Sprintf("missing right: watch %s: its objects are read every %s until they are ready", m.Resource.GVR.GroupResource(), pollEvery))
	}
}
