package apply

import (
	"brine/bundle/order"
	"brine/bundle/plan"
	"brine/bundle/report"
)

// lose settles a node that came to nothing, and skips who needs it.
func (e *scheduler) lose(n *node, action plan.Action, reason string) {
	if n.state == lost {
		return
	}
	wasApplied := n.applied
	if n.Action == plan.Pruned && !wasApplied {
		e.Plan.Guard.Keep(n.ID, n.Live) // and what owns it
	}
	e.end(n, action, reason)
	e.skipDependents(n, wasApplied)
}

// end settles a node that came to nothing.
func (e *scheduler) end(n *node, action plan.Action, reason string) {
	reportedFailed := n.state == failing && n.reason == reason
	e.set(n, lost)
	if action != "" {
		n.Result.Action = action
	}
	n.Result.Reason = reason
	e.settled(n)
	if action != "" {
		e.Record.Emit(report.Acted{Object: n.Result})
	} else if !reportedFailed {
		e.Record.Emit(report.NotReady{Object: n.Result, Reason: reason})
	}
}

func (e *scheduler) skipDependents(n *node, wasApplied bool) {
	for _, edge := range e.dependents[n.index] {
		d, need := edge.node, edge.need
		if d.state != blocked || d.Action == plan.Unchanged || (need.Want == order.Applied && wasApplied) {
			continue
		}
		if e.Plan.Allows(d.Step, need) {
			if d.needs--; d.needs == 0 {
				d.Result.After = after(n, need)
				e.consider(d)
			}
			continue
		}
		e.lose(d, plan.Skipped, d.Because(n.ID, need, n.outcome()))
	}
}

// giveUp settles what hangs on failed objects: they did not recover while the
// others went on.
func (e *scheduler) giveUp() {
	for _, n := range e.nodes {
		if n.state == failing {
			e.settleNotReady(n, report.StateFailed, n.reason)
		}
	}
	for _, n := range e.nodes {
		if n.state == blocked && (kindOf(n) == 0 || e.pruning) {
			reason, circle := "what has to go first waits for it: nothing was done", true
			for need, on := range e.needs(n) {
				if on.state == waiting || on.state == lost {
					reason, circle = n.Because(on.ID, need, on.outcome()), false
				}
			}
			if circle { // nothing failed, and yet it is not done
				e.Record.Fail(n.Result.About(reason))
			}
			e.lose(n, plan.Skipped, reason)
		}
	}
}
