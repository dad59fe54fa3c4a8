package apply

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/bundle/plan"
	"brine/bundle/ready"
	"brine/bundle/report"
	"brine/inventory"
	"brine/inventory/store"
)

// carryOut executes the plan and leaves the inventory true.
func (r *run) carryOut(ctx context.Context) error {
	e := r.execute(ctx)
	cause := context.Cause(ctx)
	if errors.Is(cause, store.ErrLockLost) {
		return cause // whoever took the lock writes the inventory now
	}
	if errors.Is(e.halted, report.ErrTimeout) {
		r.record.TimedOut()
	}
	r.diagnose(r.after.diagnosis, e) //nolint:contextcheck // also after time ran out
	if cause = context.Cause(ctx); errors.Is(cause, store.ErrLockLost) {
		return cause
	}
	// Also an interrupted run writes down what it did, but without taking long.
	return r.writeDown(r.after.records, e) //nolint:contextcheck // as above
}

// recordsTime bounds the writing of the revision and the fingerprints of a run
// that was not interrupted: long enough for a server that is slow.
const recordsTime = 2 * time.Minute

// writeDown writes the inventory and the fingerprints.
func (r *run) writeDown(ctx context.Context, e *execution) error {
	gone := append([]bundle.ID(nil), r.plan.Forget...)
	statuses := map[bundle.ID]inventory.Status{}
	prints := map[bundle.ID]inventory.Fingerprint{}
	for _, n := range e.nodes {
		switch {
		case n.Deletes() && n.state == finished:
			gone = append(gone, n.ID)
		case n.Deletes():
			if n.result.Action != plan.Skipped {
				statuses[n.ID] = inventory.Status{Strategy: "Delete", Actuation: "Succeeded", Reconcile: "Timeout"}
			}
		case n.Blocked != "", n.ID.Name == "":
		case r.neverOurs(n):
			gone = append(gone, n.ID)
		default:
			statuses[n.ID] = statusOf(n.result)
			if n.Action == plan.Unchanged {
				if known, ok := r.inv.Fingerprints[n.ID]; ok {
					prints[n.ID] = known
				}
			} else if n.printed {
				prints[n.ID] = n.print
			}
		}
	}
	last := r.inv.Last().Number
	// The history is for people, and fingerprints are a cache: what goes wrong
	// with them is said, no more, and must not keep the inventory from being
	// written.
	beside, cancel := context.WithTimeout(ctx, recordsTime)
	// An ended run leaves the rest of its time to the inventory.
	stop := context.AfterFunc(r.held, func() { time.AfterFunc(lastWords/10, cancel) }) //nolint:contextcheck // when the run itself ends
	defer stop()
	saved := make(chan error, 1)
	if r.Plan.Destroy {
		saved <- nil // there may be nothing left to hold them
	} else {
		go func() { saved <- r.inv.SaveFingerprints(beside, prints) }()
	}
	number, err := r.saveRevision(beside)
	for _, err := range []error{err, <-saved} {
		if err != nil {
			r.record.Warn(err.Error())
		}
	}
	cancel()
	err = r.finish(ctx, gone, statuses)
	for attempt := 1; errors.Is(err, store.ErrConflict) && attempt < 3; attempt++ {
		// Somebody annotated it, say. What we have to say of it still holds.
		if err = r.inv.Reload(ctx); err == nil {
			err = r.finish(ctx, gone, statuses)
		}
	}
	if err != nil || !r.inv.Exists() {
		return err
	}
	if r.Plan.Destroy {
		if err := r.inv.SaveFingerprints(ctx, prints); err != nil {
			r.record.Warn(err.Error())
		}
	}
	if number > last {
		if err := r.inv.Trim(ctx, number-r.HistoryLimit); err != nil {
			r.record.Warn(err.Error())
		}
	}
	return nil
}

// neverOurs says whether an object was noted in the inventory before it was
// applied, and then was not: refused for good, or never sent. As in cli-utils it
// stays only if it was a member before.
func (r *run) neverOurs(n *node) bool {
	if n.Member || n.ID == r.made {
		return false
	}
	for _, live := range []*unstructured.Unstructured{n.Live, n.Terminating} {
		if live != nil && live.GetAnnotations()[inventory.OwningInventory] == r.inv.ID {
			return false // its inventory was lost
		}
	}
	return n.result.Action == plan.Skipped || n.result.Action == plan.Failed && n.refused && !n.doubtful
}

// finish writes the inventory; one that was destroyed whole, and holds nothing
// else, goes itself.
func (r *run) finish(ctx context.Context, gone []bundle.ID, statuses map[bundle.ID]inventory.Status) error {
	left := len(r.inv.Members)
	for _, id := range gone {
		if _, ok := r.inv.Members[id]; ok {
			left--
		}
	}
	if r.Plan.Destroy && left == 0 {
		return r.inv.Delete(ctx)
	}
	return r.inv.Finish(ctx, gone, statuses)
}

// saveRevision keeps the bundle in the history, with what came of it.
func (r *run) saveRevision(ctx context.Context) (int, error) {
	if r.Plan.Destroy || r.HistoryLimit <= 0 || len(r.bundle.Objects)+len(r.bundle.Absent) == 0 {
		return 0, nil
	}
	revision := inventory.Revision{
		Digest: r.digest(), Time: time.Now().UTC().Truncate(time.Second), Who: r.Who, JobID: r.JobID,
		Result: "applied", Objects: len(r.bundle.Objects), Version: r.Version,
	}
	if last := r.inv.Last(); last.Digest == r.bundle.Digest {
		revision.Digest = last.Digest // an older version saved the same bundle, with a plain digest
	}
	content := &inventory.Content{Bundle: r.bundle, Namespace: r.Namespace, Options: r.deciding()}
	for _, o := range r.record.Result.Objects {
		switch {
		case o.Action == plan.Failed || o.Action == plan.Skipped && o.Source.File != "":
			revision.Result = "failed"
		case o.Ready != report.StateReady && o.Ready != "" && revision.Result == "applied":
			revision.Result = "not-ready"
		}
	}
	saved, err := r.inv.SaveRevision(ctx, revision, content, r.HistoryLimit)
	r.record.Result.Revision = saved.Number
	return saved.Number, err
}

// limitOf is an object's own time limit; 0 is none.
func limitOf(rules *ready.Rules) time.Duration {
	if rules == nil || rules.Timeout == nil {
		return 0
	}
	return *rules.Timeout
}

// statusOf is cli-utils' status for what came of a step.
func statusOf(o *report.ObjectResult) inventory.Status {
	s := inventory.Status{Strategy: "Apply", Actuation: "Succeeded", Reconcile: "Succeeded"}
	switch o.Action {
	case plan.Failed:
		s.Actuation, s.Reconcile = "Failed", "Skipped"
	case plan.Skipped:
		s.Actuation, s.Reconcile = "Skipped", "Skipped"
	}
	switch o.Ready {
	case report.StateNotReady:
		s.Reconcile = "Timeout"
	case report.StateFailed:
		s.Reconcile = "Failed"
	}
	return s
}
