package run

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/bundle/plan"
	"brine/bundle/report"
	"brine/inventory"
	"brine/inventory/lock"
	"brine/inventory/store"
)

// How a run is entered in its inventory: what entry.go decided is written, in its order.

// recordsTime bounds the writing of the revision and the fingerprints of a run
// that was not interrupted: long enough for a server that is slow.
const recordsTime = 2 * time.Minute

// enterBeginning extends the inventory before the first object. Any error stops the run.
func enterBeginning(ctx context.Context, inv *store.Inventory, e entry) error {
	if e.begins.Number > 0 {
		inv.Begin(e.begins)
	}
	for _, parts := range e.order {
		if err := errors.Join(writeTogether(parts, func(p part) error {
			if p == members {
				return inv.Add(ctx, e.enters, e.number)
			}
			return e.write(ctx, inv, p)
		})...); err != nil {
			return err
		}
	}
	return inv.Forgets(ctx, nil, false)
}

// enter writes how the run ended, also of one that was interrupted, but then without
// taking long. A run that wrote nothing takes the lock for it, where the inventory does
// not say all of it already.
func enter(ctx context.Context, s *session, o *Options, in intent, e entry) error {
	inv, formatOnly := in.inventory, false
	late, cancel := s.after.Records.Of(ctx)
	defer cancel()
	if !s.held {
		if formatOnly = e.isIn(inv); formatOnly {
			s.record.Result.Revision = e.revision.Number
			if !inv.Outdated() {
				return nil
			}
		}
		switch _, err := s.take(late, o, in.bundle); {
		case errors.Is(err, lock.ErrTaken):
			return nil // another run wrote the inventory after this one had read it
		case formatOnly && apierrors.IsForbidden(err):
			reportOldFormat(s.record, inv, err)
			return nil
		case err != nil:
			return err
		}
	}
	// The history is for people, and fingerprints are a cache: an error in writing
	// them is a warning, and must not keep the inventory from being written.
	records, cancel := context.WithTimeout(late, recordsTime)
	defer cancel()
	// An ended run leaves the rest of its time to the inventory.
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(report.Grace/10, cancel) })
	defer stop()
	if o.Mode == Apply && e.revision.Digest == "" && !o.givesBack {
		inv.NotKept()
	}
	last, saved, unsaved := inv.Last(), inventory.Revision{}, error(nil)
	write := func(p part) (err error) {
		switch {
		case p == members:
			return enterMembers(late, o.Mode, inv, e)
		case p == revision:
			if saved, err = inv.SaveRevision(records, e.revision, e.content); err == nil {
				s.record.Result.Revision = saved.Number
			} else if o.Mode == Apply {
				inv.NotKept()
			}
			return err
		case p == trim && o.HistoryLimit > 0 && saved.Number > max(last.Number, o.HistoryLimit):
			return inv.Trim(late, o.HistoryLimit, o.Revision)
		}
		return e.write(records, inv, p)
	}
	for _, parts := range e.order {
		for i, err := range writeTogether(parts, write) {
			switch {
			case err == nil:
			case parts[i] == revision && o.Mode == Rollback && !o.automatic:
				unsaved = fmt.Errorf("%w. Repeat the rollback: until then a later one may go to what it undid", err)
			case parts[i] != members:
				s.record.Warn(err.Error())
				if parts[i] == origins {
					e.withoutOrigins(inv.Members)
				}
			case formatOnly && apierrors.IsForbidden(err):
				reportOldFormat(s.record, inv, err)
				return nil
			default:
				return err
			}
		}
		if parts[0] == members && !inv.Exists() {
			return nil // it was destroyed whole
		}
	}
	return unsaved
}

func writeTogether(parts []part, write func(part) error) []error {
	errs := make([]error, len(parts))
	var together sync.WaitGroup
	for i, p := range parts {
		together.Go(func() { errs[i] = write(p) })
	}
	together.Wait()
	return errs
}

// write writes one part that is the same before the first object and after the last one.
func (e *entry) write(ctx context.Context, inv *store.Inventory, p part) error {
	switch p {
	case origins:
		return inv.SaveOrigins(ctx, e.origins)
	case fingerprints:
		return inv.SaveFingerprints(ctx, e.fingerprints)
	case key:
		return inv.SaveKey(ctx)
	case past:
		return inv.ReadTraces(ctx)
	}
	return nil
}

// enterMembers writes the inventory; one that was destroyed whole, and holds nothing else, goes
// itself. Another client may have annotated it since it was read: the statuses still hold.
func enterMembers(ctx context.Context, mode Mode, inv *store.Inventory, e entry) error {
	for attempt := 1; ; attempt++ {
		var err error
		if mode == Destroy && e.leavesNone(inv.Members) {
			err = inv.Delete(ctx)
		} else {
			err = inv.Finish(ctx, e.gone, e.statuses)
		}
		if !errors.Is(err, store.ErrConflict) || attempt == 3 {
			return err
		}
		if err := inv.Reload(ctx); err != nil {
			return err
		}
	}
}

// contentOf is what the revision keeps, nil where that cannot be known. That of a partial run is
// the last revision with the chosen objects in place of its own: a whole bundle.
func contentOf(ctx context.Context, s *session, o *Options, in intent, found map[bundle.ID]*unstructured.Unstructured) *inventory.Content {
	content := &inventory.Content{Bundle: in.bundle, Namespace: o.Namespace, Options: decidingOptions(o, s.client), Sources: o.Sources, Before: keptBefore(in.before, found)}
	if in.chosen == nil || o.HistoryLimit <= 0 {
		return content
	}
	late, cancel := s.after.Records.Of(ctx)
	defer cancel()
	_, earlier, err := in.inventory.LoadLastSaved(late)
	switch {
	case err != nil:
		s.record.Warn(fmt.Sprintf("no revision is kept of this partial run: %v", err))
		return nil
	case earlier == nil:
		earlier = &inventory.Content{Bundle: &bundle.Bundle{}}
	default:
		content.Options, content.Sources = earlier.Options, earlier.Sources
	}
	chosen := bundle.Where(in.bundle.Objects, func(o *bundle.Object) bool { return in.chosen[o] && o.ID.Name != "" })
	content.Bundle = plan.Merged(earlier.Bundle, chosen)
	return content
}

// reportOldFormat: nothing else was to be written, and the right to is missing.
func reportOldFormat(record *report.Recorder, inv *store.Inventory, err error) {
	record.Warn(fmt.Sprintf("inventory %s/%s stays in the older format, which this version reads: %s", inv.Namespace, inv.Name, err.Error()))
}
