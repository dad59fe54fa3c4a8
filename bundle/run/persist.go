package run

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/bundle/apply"
	"brine/bundle/plan"
	"brine/bundle/ready"
	"brine/bundle/redact"
	"brine/bundle/report"
	"brine/bundle/write"
	"brine/inventory"
	"brine/inventory/store"
)

// carryOut carries out the plan and records in the inventory its outcome.
// Without the lock the plan sends no write, and the inventory most likely needs none.
func (r *run) carryOut(ctx context.Context, t target, p *plan.Plan, hints ready.Hints) error {
	deadline, _ := ctx.Deadline()
	writer := &write.Writer{
		Options: r.writing(), Client: r.client, Plan: p, Inventory: &r.inv.Inventory, Deadline: deadline, Namespace: r.namespace,
		Quotes: r.record.Secrets.Quotes, Adopting: r.adopt,
		BeforeDelete: func(id bundle.ID) {
			if id == r.ownNamespace() {
				r.lock.Stop() // the lock and the inventory are deleted with their namespace, last of all
			}
		},
	}
	outcomes, outside, ended := apply.Run(ctx, apply.Input{
		Client: r.client, Plan: p, Record: r.record, Rules: t.rules, Hints: hints, Selector: r.inv.Selector(),
		WaitApplied: r.WaitApplied, PruneAnyway: r.PruneAnyway, FailAfter: r.FailAfter, Heartbeat: r.Heartbeat, Writer: writer,
	})
	r.client.OnRetry(r.record.Retrying)          // the scheduler's function keeps all objects in memory
	r.putBack(r.after.records, writer, outcomes) //nolint:contextcheck // also after time ran out
	cause := context.Cause(ctx)
	if errors.Is(cause, store.ErrLockLost) {
		return cause // the run that took the lock writes the inventory now
	}
	if errors.Is(ended, report.ErrTimeout) {
		r.record.TimedOut()
	}
	r.diagnose(r.after.diagnosis, slices.Concat(outcomes, outside)) //nolint:contextcheck // also after time ran out
	if cause = context.Cause(ctx); errors.Is(cause, store.ErrLockLost) {
		return cause
	}
	// An interrupted run records what it did, too, but without taking long.
	if err := r.persist(r.after.records, p, outcomes); err != nil { //nolint:contextcheck // as above
		return err
	}
	r.forgetReleases(ctx, outcomes)
	if r.Planning.Destroy && !r.inv.Exists() {
		r.removeNamespace(r.after.records, writer.Deleted()) //nolint:contextcheck // as above
	}
	return nil
}

func (r *run) ownNamespace() bundle.ID {
	return bundle.ID{GroupKind: bundle.NamespaceKind, Name: r.Inventory.Namespace}
}

// recordsTime bounds the writing of the revision and the fingerprints of a run
// that was not interrupted: long enough for a server that is slow.
const recordsTime = 2 * time.Minute

// persist writes the inventory, the fingerprints and the revision.
func (r *run) persist(ctx context.Context, p *plan.Plan, outcomes []apply.Outcome) error {
	gone, statuses, fingerprints := r.findings(p, outcomes)
	origins := r.originsAfter(p, outcomes, gone)
	last := r.inv.Last().Number
	content, err := r.content(ctx)
	if err != nil {
		r.record.Warn(err.Error())
	}
	revision := r.revision(content)
	formatOnly := false
	if r.held == nil {
		formatOnly = len(gone) == 0 && (revision.Digest == "" || revision.Number > 0) && r.inv.Holds(statuses, origins, fingerprints)
		if formatOnly {
			r.record.Result.Revision = revision.Number
			if !r.inv.Outdated() {
				return nil
			}
		}
		switch err := r.take(ctx); {
		case errors.Is(err, store.ErrTaken):
			return nil // another run wrote the inventory after this one had read it
		case formatOnly && apierrors.IsForbidden(err):
			r.staysInOldFormat(err)
			return nil
		case err != nil:
			return err
		}
	}
	// The history is for people, and fingerprints are a cache: an error in writing
	// them is a warning, and must not keep the inventory from being written.
	records, cancel := context.WithTimeout(ctx, recordsTime)
	// An ended run leaves the rest of its time to the inventory.
	stop := context.AfterFunc(r.held, func() { time.AfterFunc(report.Grace/10, cancel) }) //nolint:contextcheck // when the run itself ends
	defer stop()
	caches, known := make(chan error, 1), make(chan error, 1)
	if r.Planning.Destroy {
		caches <- nil // there may be nothing left to hold them
		known <- nil
	} else {
		go func() { caches <- r.inv.SaveFingerprints(records, fingerprints) }()
		go func() { known <- r.inv.SaveOrigins(records, origins) }()
	}
	number, err := r.saveRevision(records, revision, content)
	unknown := <-known
	for _, err := range []error{err, <-caches, unknown} {
		if err != nil {
			r.record.Warn(err.Error())
		}
	}
	cancel()
	if unknown != nil { // the next run records them
		for id, status := range statuses {
			statuses[id] = stillCreating(status, r.inv.Members[id])
		}
	}
	err = r.finish(ctx, gone, statuses)
	for attempt := 1; errors.Is(err, store.ErrConflict) && attempt < 3; attempt++ {
		// Another client annotated it, for example. The statuses still hold.
		if err = r.inv.Reload(ctx); err == nil {
			err = r.finish(ctx, gone, statuses)
		}
	}
	if formatOnly && apierrors.IsForbidden(err) {
		r.staysInOldFormat(err)
		return nil
	}
	if err != nil || !r.inv.Exists() {
		return err
	}
	if r.Planning.Destroy {
		if err := errors.Join(r.inv.SaveFingerprints(ctx, fingerprints), r.inv.SaveOrigins(ctx, origins)); err != nil {
			r.record.Warn(err.Error())
		}
	}
	if number > last && number > r.HistoryLimit {
		if err := r.inv.Trim(ctx, r.HistoryLimit, r.Revision); err != nil {
			r.record.Warn(err.Error())
		}
	}
	return nil
}

// findings are what the inventory is to hold of the outcome of the plan: the members
// that leave it, the statuses and the fingerprints of the others.
func (r *run) findings(p *plan.Plan, outcomes []apply.Outcome) (gone []bundle.ID, statuses map[bundle.ID]inventory.Status, fingerprints map[bundle.ID]inventory.Fingerprint) {
	gone = append(gone, p.Forget...)
	statuses, fingerprints = map[bundle.ID]inventory.Status{}, map[bundle.ID]inventory.Fingerprint{}
	if r.chosen != nil { // those of the other members still hold
		maps.Copy(fingerprints, r.inv.Fingerprints)
	}
	for i := range outcomes {
		o := &outcomes[i]
		switch {
		case o.Deletes() && o.Done:
			gone = append(gone, o.ID)
		case o.Deletes():
			if o.Result.Action != plan.Skipped {
				statuses[o.ID] = inventory.Status{Strategy: "Delete", Actuation: "Succeeded", Reconcile: "Timeout"}
			}
		case o.Blocked != "", o.ID.Name == "":
		case r.neverOwned(o):
			gone = append(gone, o.ID)
		default:
			statuses[o.ID] = statusOf(o.Result)
			if o.UID == "" && o.Action != plan.Unchanged {
				statuses[o.ID] = stillCreating(statuses[o.ID], r.inv.Members[o.ID])
			}
			f, known := o.Fingerprint, o.HasFingerprint
			if o.Action == plan.Unchanged {
				f, known = r.inv.Fingerprints[o.ID]
			}
			if o.SeenComplete {
				f, known = o.Complete(f), true
			}
			if delete(fingerprints, o.ID); known {
				fingerprints[o.ID] = f
			}
		}
	}
	return gone, statuses, fingerprints
}

// neverOwned says whether an object was added to the inventory before it was
// applied, and then was not: refused for good, or never sent. As in cli-utils it
// stays only if it was a member before.
func (r *run) neverOwned(o *apply.Outcome) bool {
	if o.Member || r.namespace != nil && o.ID == r.ownNamespace() {
		return false
	}
	for _, live := range []*unstructured.Unstructured{o.Live, o.Terminating} {
		if live != nil && live.GetAnnotations()[inventory.OwningInventory] == r.inv.ID {
			return false // its inventory was lost
		}
	}
	return o.Result.Action == plan.Skipped || o.Result.Action == plan.Failed && o.Refused && !o.Uncertain
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
	if r.Planning.Destroy && left == 0 {
		return r.inv.Delete(ctx)
	}
	return r.inv.Finish(ctx, gone, statuses)
}

// revision is what the history is to say of the run; its Digest is "" where it is to
// say nothing, its Number 0 unless the last revision says the same.
func (r *run) revision(content *inventory.Content) inventory.Revision {
	if content == nil || r.Planning.Destroy || r.HistoryLimit <= 0 || len(r.bundle.Objects)+len(r.bundle.Absent) == 0 {
		return inventory.Revision{}
	}
	revision := inventory.Revision{
		Digest: r.digest(), Time: time.Now().UTC().Truncate(time.Second), Who: r.Who, JobID: r.JobID,
		Result: "applied", Objects: len(r.bundle.Objects), Version: r.Version,
		Command: r.Command, RollbackTo: r.Revision,
	}
	last := r.inv.Last()
	if last.Digest == r.bundle.Digest {
		revision.Digest = last.Digest // an older version saved the same bundle, with a plain digest
	}
	for _, o := range r.record.Result.Objects {
		switch {
		case o.Action == plan.Failed || o.Action == plan.Skipped && o.Source.File != "":
			revision.Result = "failed"
		case o.Ready != report.StateReady && o.Ready != "" && revision.Result == "applied":
			revision.Result = inventory.NotReady
		}
	}
	if r.chosen != nil {
		revision.Objects = len(content.Bundle.Objects)
		switch {
		case r.key != nil && !r.key.Fresh():
			revision.Digest = r.key.Digest(content.Bundle.Digest)
		case slices.ContainsFunc(content.Bundle.Objects, func(o *bundle.Object) bool { return redact.Holds(o.Content) }):
			revision.Digest = content.Bundle.DigestWithoutSecrets(redact.Holds)
		default:
			revision.Digest = content.Bundle.Digest
		}
		if revision.Result == "applied" {
			revision.Result = inventory.Partial
			if last.Good() && last.Digest == revision.Digest {
				revision.Result = last.Result // it asked for nothing else than that
			}
		}
	}
	if last.Digest == revision.Digest && last.Result == revision.Result {
		revision.Number = last.Number
	}
	return revision
}

// content is what the revision keeps. That of a partial run is the last revision
// with the chosen objects in place of its own, so that it is a whole bundle.
func (r *run) content(ctx context.Context) (*inventory.Content, error) {
	content := &inventory.Content{Bundle: r.bundle, Namespace: r.Namespace, Options: r.deciding(), Sources: r.Sources, Before: r.keptBefore()}
	if r.chosen == nil || r.HistoryLimit <= 0 {
		return content, nil
	}
	earlier := &inventory.Content{Bundle: &bundle.Bundle{}}
	if last := r.inv.Last().Number; last > 0 {
		var err error
		if earlier, err = r.inv.LoadRevision(ctx, last); err != nil {
			return nil, fmt.Errorf("no revision is kept of this partial run: %w", err)
		}
		content.Options, content.Sources = earlier.Options, earlier.Sources
	}
	var chosen []*bundle.Object
	for _, o := range r.bundle.Objects {
		if r.chosen[o] && o.ID.Name != "" {
			chosen = append(chosen, o)
		}
	}
	content.Bundle = plan.Merged(earlier.Bundle, chosen)
	return content, nil
}

// saveRevision saves the bundle in the history, with the result of the run.
func (r *run) saveRevision(ctx context.Context, revision inventory.Revision, content *inventory.Content) (int, error) {
	if revision.Digest == "" {
		return 0, nil
	}
	saved, err := r.inv.SaveRevision(ctx, revision, content, r.HistoryLimit)
	r.record.Result.Revision = saved.Number
	return saved.Number, err
}

// statusOf is cli-utils' status for the outcome of a step.
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

// stillCreating is a status of a member of which it is not known what the run created.
func stillCreating(s, before inventory.Status) inventory.Status {
	s.Creating = before.Creating
	return s
}
