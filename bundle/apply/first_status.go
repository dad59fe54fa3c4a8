package apply

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"brine/bundle"
	"brine/bundle/plan"
	"brine/bundle/ready"
)

// A custom resource that was just written has no status until its controller comes to it, or
// one without the condition Ready that others of its kind have. That says nothing yet, and for
// many kinds never will: it is waited for, for a bounded time.
const (
	firstStatus      = 5 * time.Second  // where nobody knows whether there will be one
	firstStatusKnown = 30 * time.Second // where another object of the kind has one
)

// said is what objects of a custom kind say of themselves.
type said struct {
	status, ready bool // one of them has a status, or a condition Ready
	readyColumn   bool // kubectl prints a condition Ready
	silent        bool // one that was waited for said nothing in time
	still         bool // one that was changed said nothing new in time
}

// newStatus is missing of an object that was changed, and whose status does not say which
// generation it is about: it may be the one from before, for a while.
const newStatus = "new status"

type saidBy map[schema.GroupKind]*said

// whatIsSaid is what is known before a plan is carried out.
func whatIsSaid(p *plan.Plan) saidBy {
	all := saidBy{}
	for _, s := range p.Steps {
		if s.Live != nil {
			all.hear(s.ID.GroupKind, s.Live)
		}
		if s.Object != nil {
			if d, ok := bundle.DefinitionOf(s.Object.Content); ok && bundle.ReadyColumn(s.Object.Content) {
				all.of(d.Kind).readyColumn = true
			}
		}
	}
	return all
}

func (all saidBy) of(kind schema.GroupKind) *said {
	if all[kind] == nil {
		all[kind] = &said{}
	}
	return all[kind]
}

func (all saidBy) hear(kind schema.GroupKind, live *unstructured.Unstructured) {
	if custom(kind.Group) {
		k := all.of(kind)
		k.ready = k.ready || ready.SaysReady(live)
		k.status = k.status || k.ready || !ready.Of(live, nil, ready.Hints{}).Unseen
	}
}

// custom guesses whether a group is of CRDs: those of Kubernetes have no dot, or one name
// before k8s.io.
func custom(group string) bool {
	name, own := strings.CutSuffix(group, ".k8s.io")
	return strings.Contains(group, ".") && (!own || strings.Contains(name, "."))
}

// unsaid is what an object that counts as ready has not said yet; "" where nothing is missing.
// One that had a status without a condition Ready before is not to have one now.
func (e *scheduler) unsaid(n *node, status ready.Status) string {
	kind := e.said.of(n.ID.GroupKind)
	switch {
	case status.Unseen:
		return "status"
	case status.Unsaid && (kind.ready || kind.readyColumn) && (n.Live == nil || n.Action == plan.Unchanged || ready.SaysReady(n.Live) || ready.Of(n.Live, nil, e.Hints).Unseen):
		return "condition Ready"
	case n.isBehind():
		return newStatus
	}
	return ""
}

// isBehind says whether all that an object says of itself may be from before its spec changed.
func (n *node) isBehind() bool {
	if n.Result.Action != plan.Configured || n.Live == nil || n.stored == nil || n.stored.GetGeneration() <= n.Live.GetGeneration() {
		return false
	}
	return !ready.SaysGeneration(n.Latest) && equality.Semantic.DeepEqual(n.Latest.Object["status"], n.stored.Object["status"])
}

// firstStatusTime is how long to wait for what is missing of an object that was written.
func (e *scheduler) firstStatusTime(n *node, status ready.Status, missing string) time.Duration {
	kind := e.said.of(n.ID.GroupKind)
	switch {
	case missing == newStatus:
		none := n.rules != nil && n.rules.StatusTimeout != nil && *n.rules.StatusTimeout == 0
		if none || !n.resource.Status || !custom(n.ID.GroupKind.Group) || kind.still {
			return 0
		}
		return firstStatus
	case n.Action == plan.Awaited, n.Action == plan.Unchanged && e.wasSettled(n.Step):
		return 0
	case n.rules != nil && n.rules.StatusTimeout != nil:
		return *n.rules.StatusTimeout
	case !n.resource.Status || !custom(n.ID.GroupKind.Group) || kind.silent:
		return 0
	case status.Unseen && kind.status, kind.ready:
		return firstStatusKnown
	}
	return firstStatus
}

// awaitsStatus says whether an object that is ready for want of a status is to be waited
// for still, and waits for it.
func (e *scheduler) awaitsStatus(n *node, status ready.Status) bool {
	missing := e.unsaid(n, status)
	limit := e.firstStatusTime(n, status, missing)
	if missing == "" || limit == 0 {
		return false
	}
	if n.rules != nil && n.rules.Skip {
		e.settleUnawaited(n, ready.Status{Reason: fmt.Sprintf("has no %s yet", missing)})
		return true
	}
	why := ready.Status{State: ready.NotReady, Reason: fmt.Sprintf("has no %s yet (counts as ready after %s without one)", missing, limit)}
	if n.state == waiting {
		e.progress(n, why)
	} else {
		e.wait(n, why)
	}
	if n.statusBy.IsZero() || n.missing != missing {
		n.statusBy, n.missing = time.Now().Add(limit), missing
	}
	return true
}

// statusOverdue ends the wait for what an object says of itself: who has not done so by now
// is not going to, for this object or another one of the kind.
func (e *scheduler) statusOverdue(n *node, now time.Time) bool {
	if n.statusBy.IsZero() || now.Before(n.statusBy) || n.Latest == nil {
		return false
	}
	status := ready.Of(n.Latest, n.rules, e.Hints)
	missing := e.unsaid(n, status)
	if status.State != ready.Ready || missing == "" {
		return false
	}
	if kind := e.said.of(n.ID.GroupKind); missing == newStatus {
		kind.still = true
	} else if (!status.Unseen || !kind.status) && !kind.ready && (n.rules == nil || n.rules.StatusTimeout == nil) {
		kind.silent = true
	}
	status.Reason = fmt.Sprintf("no %s after %s, so it counts as ready", missing, now.Sub(n.since).Round(time.Second))
	e.becameReady(n, n.Latest, status)
	return true
}
