package run

import (
	"context"
	"fmt"
	"os"

	"brine/bundle"
	"brine/bundle/plan"
	"brine/bundle/remedy"
	"brine/inventory/store"
)

// checkRemoved looks for SLS and files that the last run that applied everything had and
// this one has not, where it prunes. A rollback, a partial run, and a plan that was saved
// and approved do what they say.
func checkRemoved(ctx context.Context, s *session, o *Options, in intent) error {
	p := in.plan
	if o.Mode != Apply || in.chosen != nil || o.SavedPlan != nil {
		return nil
	}
	pruned := p.Removes()
	if len(pruned) == 0 {
		return nil
	}
	number, earlier, err := renderedLast(ctx, in.inventory)
	switch {
	case err != nil && in.bundle.Rendering == nil && !o.Planning.RefuseRemoved:
		s.record.Warn(fmt.Sprintf("whether the bundle lacks a file that the last run had is not known: %v", err))
		return nil
	case err != nil:
		return fmt.Errorf("find out which SLS and files are no longer in the bundle, before anything is pruned (%s prunes nothing): %w", remedy.NoPrune, err)
	}
	p.Removals = plan.Removals{
		Revision: number, Earlier: earlier, Now: in.bundle, Pruned: pruned, Removed: o.Planning.Removed, Refuse: o.Planning.RefuseRemoved,
		IsFile: func(path string) bool {
			_, err := os.Lstat(path)
			return !os.IsNotExist(err)
		},
	}.Find()
	for _, one := range p.Removals {
		if one.Refused {
			p.Refused = append(p.Refused, bundle.Problem{Message: one.String()})
		} else {
			p.Warnings = append(p.Warnings, one.String())
		}
	}
	return nil
}

// renderedLast are the objects of the last run that applied everything, and those that runs
// without pruning before it left.
func renderedLast(ctx context.Context, inv *store.Inventory) (number int, objects []*bundle.Object, err error) {
	past, err := inv.Past(ctx)
	for _, one := range past.Standing() {
		if !one.Applied() {
			continue
		}
		content, err := inv.LoadRevision(ctx, one.Number)
		if err != nil {
			return 0, nil, err
		}
		number, objects = max(number, one.Number), append(objects, content.Bundle.Objects...)
		if content.Options["no-prune"] != "true" {
			break
		}
	}
	return number, objects, err
}
