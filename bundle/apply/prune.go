package apply

import (
	"brine/bundle"
	"brine/bundle/order"
	"brine/bundle/plan"
	"brine/bundle/remedy"
)

func (e *scheduler) startPruning() {
	e.pruning = true
	kept := e.pruningHeld()
	if e.prunes = kept == ""; !e.prunes {
		e.skipDeletions(kept)
	}
	last := e.settledLast()
	for _, n := range e.nodes {
		if n.Deletes() && n.state == blocked {
			if n.needs == 0 && last != nil {
				n.Result.After = after(last, plan.Need{Want: order.Ready, Reason: "deletions begin when all else is done"})
			}
			e.consider(n)
		}
	}
}

func (e *scheduler) pruningHeld() string {
	outcomes := bundle.Each(e.nodes[:len(e.Plan.Steps)], (*node).outcome)
	kept := e.Plan.HoldsPruning(outcomes, !e.WaitApplied && !e.PruneAnyway)
	if kept != "" && e.ended == nil && e.Plan.HoldsPruning(outcomes, false) == "" {
		kept += " (" + remedy.PruneAnyway + " prunes nevertheless)"
	}
	return kept
}

// skipDeletions skips every deletion that was not begun, each with the same reason.
func (e *scheduler) skipDeletions(reason string) {
	for _, n := range e.nodes {
		if n.Deletes() && n.state == blocked && n.Action != plan.Skipped {
			e.end(n, plan.Skipped, reason)
		}
	}
}
