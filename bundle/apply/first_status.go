package apply

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"brine/bundle"
	"brine/bundle/plan"
	"brine/bundle/ready"
)

// What an object has not said yet after it was written (see ready.Said), and the waiting for it.

// newStatus is missing of an object that was changed, and whose status does not say which
// generation it is about: it may be the one from before, for a while.
const newStatus = "new status"

// backendTried is the time after which an API server has seen whether the changed backend of an
// APIService answers: it tries for 6 seconds. Where it does, as before, nothing in its status
// changes.
const backendTried = 10 * time.Second

// whatIsSaid is what is known before a plan is carried out.
func whatIsSaid(p *plan.Plan) ready.SaidBy {
	all := ready.SaidBy{}
	for _, s := range p.Steps {
		if s.Live != nil {
			all.Hear(s.ID.GroupKind, s.Live)
		}
		if s.Object != nil {
			all.Defined(s.Object.Content)
		}
	}
	return all
}

// unsaid is what an object that counts as ready has not said yet; "" where nothing is missing.
// One that had a status without a condition Ready before is not to have one now.
func (e *scheduler) unsaid(n *node, status ready.Status) string {
	missing := e.said.Of(n.ID.GroupKind).Missing(status)
	if missing == ready.NoReady && n.Live != nil && n.Action != plan.Unchanged && !ready.SaysReady(n.Live) && !ready.Of(n.Live, nil, e.Hints).Unseen {
		missing = ""
	}
	if missing == "" && n.isBehind() {
		return newStatus
	}
	return missing
}

// isBehind says whether all that an object says of itself may be from before its spec changed.
func (n *node) isBehind() bool {
	if n.Result.Action != plan.Configured || n.Live == nil || n.stored == nil {
		return false
	}
	changed := n.stored.GetGeneration() > n.Live.GetGeneration()
	if n.ID.GroupKind == bundle.APIServiceKind { // which has no generation
		changed = bundle.At[any](n.stored.Object, "spec", "service") != nil && !equality.Semantic.DeepEqual(n.stored.Object["spec"], n.Live.Object["spec"])
	}
	return changed && !ready.SaysGeneration(n.Latest) && equality.Semantic.DeepEqual(n.Latest.Object["status"], n.stored.Object["status"])
}

// firstStatusTime is how long to wait for what is missing of an object that was written.
func (e *scheduler) firstStatusTime(n *node, status ready.Status, missing string) time.Duration {
	kind := e.said.Of(n.ID.GroupKind)
	switch {
	case missing == newStatus:
		none := n.rules != nil && n.rules.StatusTimeout != nil && *n.rules.StatusTimeout == 0
		if n.ID.GroupKind == bundle.APIServiceKind && !none {
			return backendTried
		}
		if none || !n.resource.Status || !ready.Custom(n.ID.GroupKind.Group) || kind.Still {
			return 0
		}
		return ready.FirstStatus
	case n.Action == plan.Awaited, n.Action == plan.Unchanged && e.wasSettled(n.Step):
		return 0
	}
	return kind.Time(n.ID.GroupKind.Group, n.resource.Status, n.rules, status)
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
	why := ready.HasNo(missing, limit)
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
	if kind := e.said.Of(n.ID.GroupKind); missing == newStatus {
		kind.Still = true
	} else if (!status.Unseen || !kind.Status) && !kind.Ready && (n.rules == nil || n.rules.StatusTimeout == nil) {
		kind.Silent = true
	}
	status.Reason = fmt.Sprintf("no %s after %s, so it counts as ready", missing, now.Sub(n.since).Round(time.Second))
	e.becameReady(n, n.Latest, status)
	return true
}
