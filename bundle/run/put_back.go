package run

import (
	"context"
	"slices"

	"brine/bundle/apply"
	"brine/bundle/plan"
	"brine/bundle/remedy"
	"brine/bundle/report"
	"brine/bundle/write"
)

// putBack creates again what was pruned first, where pruning did not follow: a policy
// before its bindings.
func (r *run) putBack(ctx context.Context, w *write.Writer, outcomes []apply.Outcome) {
	ctx, cancel := context.WithTimeout(ctx, recordsTime)
	defer cancel()
	for i := range slices.Backward(outcomes) { // as deletions are in reverse order of need
		o := &outcomes[i]
		if !o.PutBack {
			continue
		}
		stored, err := w.PutBack(ctx, o.Step)
		if err != nil {
			o.Result.Error = "it was pruned first (" + remedy.PruneFirst + "), and could not be put back: " + err.Error() + ". Apply a bundle that contains it"
			r.record.Fail(o.Result.About(o.Result.Error))
			continue
		}
		o.UID, o.Done = stored.GetUID(), false
		o.Result.Action, o.Result.Reason = plan.Skipped, "it was pruned first, and is put back: the run ended before it prunes"
		r.record.Emit(report.Acted{Object: o.Result})
	}
}
