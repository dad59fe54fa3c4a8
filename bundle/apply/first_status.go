package apply

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"brine/bundle/plan"
	"brine/bundle/ready"
)

// A custom resource that was just written has no status until its controller comes to it.
// That says nothing yet, and for many kinds never will: it is waited for, for a bounded time.
const (
	firstStatus      = 5 * time.Second  // where nobody knows whether there will be one
	firstStatusKnown = 30 * time.Second // where another object of the kind has one
)

// statuses are the kinds of which an object has a status, by what is live.
func statuses(p *plan.Plan) map[schema.GroupKind]bool {
	have := map[schema.GroupKind]bool{}
	for _, s := range p.Steps {
		if s.Live != nil && custom(s.ID.GroupKind.Group) && !ready.Of(s.Live, nil, ready.Hints{}).Unseen {
			have[s.ID.GroupKind] = true
		}
	}
	return have
}

// custom guesses whether a group is of CRDs: those of Kubernetes have no dot, or one name
// before k8s.io.
func custom(group string) bool {
	name, own := strings.CutSuffix(group, ".k8s.io")
	return strings.Contains(group, ".") && (!own || strings.Contains(name, "."))
}

// firstStatusTime is how long to wait for the first status of an object that was written.
func (e *scheduler) firstStatusTime(n *node) time.Duration {
	switch {
	case n.Action == plan.Unchanged || n.Action == plan.Awaited:
		return 0
	case n.rules != nil && n.rules.StatusTimeout != nil:
		return *n.rules.StatusTimeout
	case !n.resource.Status || !custom(n.ID.GroupKind.Group) || e.silent[n.ID.GroupKind]:
		return 0
	case e.statuses[n.ID.GroupKind]:
		return firstStatusKnown
	}
	return firstStatus
}

// awaitsStatus says whether an object that is ready for want of a status is to be waited
// for still, and waits for it.
func (e *scheduler) awaitsStatus(n *node, status ready.Status) bool {
	if !status.Unseen {
		e.statuses[n.ID.GroupKind] = e.statuses[n.ID.GroupKind] || n.stored != nil && custom(n.ID.GroupKind.Group)
		return false
	}
	limit := e.firstStatusTime(n)
	if limit == 0 {
		return false
	}
	why := ready.Status{State: ready.NotReady, Reason: fmt.Sprintf("has no status yet (counts as ready after %s without one)", limit)}
	if n.state == waiting {
		e.progress(n, why)
		return true
	}
	n.statusBy = time.Now().Add(limit)
	e.wait(n, why)
	return true
}

// statusOverdue ends the wait for a first status: who has not written one by now is not
// going to, for this object or another one of the kind.
func (e *scheduler) statusOverdue(n *node, now time.Time) bool {
	if n.statusBy.IsZero() || now.Before(n.statusBy) || n.Latest == nil || !ready.Of(n.Latest, n.rules, e.Hints).Unseen {
		return false
	}
	if !e.statuses[n.ID.GroupKind] && (n.rules == nil || n.rules.StatusTimeout == nil) {
		e.silent[n.ID.GroupKind] = true
	}
	if n.Reason == "" {
		n.Reason = fmt.Sprintf("no status after %s, so it counts as ready", time.Since(n.since).Round(time.Second))
	}
	e.becameReady(n, n.Latest)
	return true
}
