package run

import (
	"context"
	"fmt"
	"os"
	"slices"

	"brine/bundle"
	"brine/bundle/inspect"
	"brine/bundle/plan"
	"brine/bundle/remedy"
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
	number, earlier, err := inspect.RenderedLast(ctx, in.inventory)
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

// checkAbsent refuses to delete what the bundle wants absent, names no namespace for, and is no member, where the
// kubeconfig has another namespace than it had: it is another object than the one that was meant.
func checkAbsent(ctx context.Context, o *Options, in intent) error {
	if o.Planning.NamespaceNamed || o.Mode != Apply {
		return nil
	}
	for _, a := range in.bundle.Absent {
		_, member := in.inventory.Members[a.ID]
		goes := func(s *plan.Step) bool { return s.ID == a.ID && s.Action == plan.Pruned }
		if !a.Unplaced || member || !slices.ContainsFunc(in.plan.Steps, goes) {
			continue
		}
		_, last, err := in.inventory.LoadLastSaved(ctx)
		if err != nil {
			return fmt.Errorf("find out in which namespace the last run looked for %s, which the bundle wants absent (%s says in which it is): %w", bundle.Name(a.ID), remedy.Namespace, err)
		}
		if last == nil || last.Namespace == "" || last.Namespace == o.Namespace {
			return nil
		}
		in.plan.Refused = append(in.plan.Refused, bundle.Problem{Source: a.Source, ID: a.ID, Message: fmt.Sprintf(
			"the bundle wants it absent and names no namespace, the kubeconfig has %[1]s, the last apply had %[2]s: it would be deleted in %[1]s; nothing was changed; use %[3]s %[2]s to go on as before, or %[3]s %[1]s to delete it there",
			a.ID.Namespace, last.Namespace, remedy.Namespace)})
	}
	return nil
}
