package apply

import (
	"time"

	"brine/bundle"
	"brine/bundle/plan"
	"brine/bundle/report"
)

// mostWaits are kept of an object whose reasons change all the time, as a rollout's do.
const mostWaits = 20

// because notes why a node is not ready from now on; "" where it is.
func (n *node) because(reason string) {
	now := time.Now()
	if n.reason != "" && !n.reasonAt.IsZero() && reason != n.reason {
		n.waitedFor(n.reason, now.Sub(n.reasonAt).Round(time.Millisecond).Seconds())
	}
	if reason == "" {
		n.reasonAt = time.Time{}
		return // the last reason is still asked for
	}
	if reason != n.reason || n.reasonAt.IsZero() {
		n.reasonAt = now
	}
	n.reason = reason
}

func (n *node) waitedFor(reason string, seconds float64) {
	if len(n.Result.Waits) == mostWaits {
		n.Result.Waits[mostWaits-1].Seconds += seconds
		return
	}
	n.Result.Waits = append(n.Result.Waits, report.Wait{Reason: reason, Seconds: seconds})
}

// after names what a node waited for last.
func after(n *node, need plan.Need) *report.Need {
	return &report.Need{Reference: bundle.ReferTo(n.ID), Want: need.WantOf(n.Step), Reason: need.Reason}
}

// settledLast is the object that took longest, of those that are applied.
func (e *scheduler) settledLast() *node {
	var last *node
	for _, n := range e.nodes {
		if !n.Deletes() && (n.Result.StartedAt > 0 || len(n.Result.Waits) > 0) && (last == nil || n.Result.End() > last.Result.End()) {
			last = n
		}
	}
	return last
}
