package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/sets"

	"brine/bundle"
	"brine/bundle/plan"
	"brine/bundle/remedy"
	"brine/bundle/report"
	"brine/inventory"
	"brine/inventory/admin"
	"brine/inventory/store"
)

// giveBack gives the members that came from other inventories back to them, after what
// brought them was undone, and applies to them what these inventories applied last. What
// cannot be given back stays a member.
func giveBack(ctx context.Context, s *session, o *Options, in intent) {
	for _, origin := range slices.SortedFunc(maps.Keys(in.returns), func(a, b inventory.Origin) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.FromUID, b.FromUID))
	}) {
		ids, to := in.returns[origin], origin.From
		moved, done, err := giveBackTo(ctx, s, o, in, origin)
		for _, one := range moved.NotMoved {
			s.record.Fail(fmt.Sprintf("%s: not given back to inventory %s: %s. Repeat the command: it is still a member", bundle.Name(one.ID()), to, one.Reason))
			s.record.Result.ExitCode = report.ExitFailed
		}
		if done != "" {
			ids = bundle.SetOf(moved.Moved, admin.Object.ID)
		}
		text := bundle.Some(bundle.Each(bundle.SortedIDs(ids), bundle.Name), 5) + ": "
		switch {
		case done != "" && len(ids) == 0: // or another run has applied them since, and they are its members
		case errors.Is(err, store.ErrNotThere):
			id := bundle.SortedIDs(ids)[0]
			s.record.Warn(fmt.Sprintf("%snot given back to inventory %s, %v: they stay members; %s gives one to another inventory", text, to, err,
				s.client.Commands().Split(o.Inventory.Namespace+"/"+o.Inventory.Name, "NAMESPACE/NAME", id.GroupKind, id.Namespace, id.Name)))
		case err != nil && done != "":
			s.record.Fail(fmt.Sprintf("%sgiven back to inventory %s, but its last revision could not be applied to them, and their fields stay as they are: %v", text, done, err))
			s.record.Result.ExitCode = report.ExitFailed
		case err != nil:
			s.record.Fail(fmt.Sprintf("%snot given back to inventory %s: %v. Repeat the command: what was not given back is still a member", text, to, err))
			s.record.Result.ExitCode = report.ExitFailed
		default:
			s.record.Warn(text + "given back to inventory " + done)
		}
	}
}

// giveBackTo returns what moved, and what was done, like "shop/web, and its revision 3 applied to them"; with an
// error, to whom they were given back, if they were.
func giveBackTo(ctx context.Context, s *session, o *Options, in intent, from inventory.Origin) (moved admin.Move, done string, err error) {
	inv, err := store.FindSource(ctx, s.client, from, o.Inventory.Namespace, o.Version)
	if err != nil {
		return moved, "", err
	}
	theirs := report.Inventory{Namespace: inv.Namespace, Name: inv.Name, ID: inv.ID}
	did, err := admin.MoveMembers(ctx, s.client, admin.MoveOptions{
		From: []report.Inventory{o.Inventory}, To: theirs, ToUID: inv.Source().UID, Select: in.returns[from].Has, Version: o.Version, LockTimeout: o.LockTimeout,
		Origins: in.inventory.Origins, Report: func(message string) { s.record.Emit(report.Warning{Message: message}) },
	})
	if err != nil {
		return moved, "", err
	}
	moved, done = *did, theirs.Namespace+"/"+theirs.Name
	if inv, err = store.Load(ctx, s.client, theirs.Namespace, theirs.Name, theirs.ID, o.Version); err != nil {
		return moved, done, err
	}
	if inv.Last().Number == 0 {
		return moved, done + ", which has no revision: their fields stay as they are", nil
	}
	last, content, err := inv.LoadLastSaved(ctx)
	if err != nil {
		return moved, done, err
	}
	again := Options{
		Header: report.Header{Command: "apply", DryRun: report.None, Inventory: theirs}, Planning: plan.Options{Conflicts: o.Planning.Conflicts, NamespaceNamed: true},
		givesBack:   true,
		SkipInvalid: true, // what a server once took: as much of it as possible
		Timeout:     o.Timeout, LockTimeout: o.LockTimeout, Version: o.Version, Namespace: content.Namespace, Who: o.Who, JobID: o.JobID,
	}
	given := bundle.SetOf(moved.Moved, admin.Object.ID)
	for _, b := range content.Bundle.Objects {
		if given.Has(b.ID) {
			again.Only = append(again.Only, remedy.Word(b.ID.GroupKind, b.ID.Namespace, b.ID.Name))
		}
	}
	if len(again.Only) == 0 {
		return moved, done + ", whose last revision does not contain them: their fields stay as they are", nil
	}
	result := Run(ctx, s.client, content.Bundle, again, func(report.Event) {})
	if result.ExitCode != report.ExitOK {
		return moved, done, fmt.Errorf("%s; %s applies all of it", failures(result), s.client.Commands().Rollback(theirs.Namespace, theirs.Name, strconv.Itoa(last)))
	}
	return moved, fmt.Sprintf("%s, and its revision %d applied to them", done, last), nil
}

// knowOwners adds to the new origins of a plan which inventories the run takes objects
// from: of its owner, an object has no more than the ID.
func knowOwners(ctx context.Context, s *session, o *Options, origins map[bundle.ID]inventory.Origin) error {
	found := map[string]inventory.Source{}
	for _, id := range bundle.SortedIDs(origins) {
		origin := origins[id]
		if origin.How != inventory.Moved || origin.FromUID != 0 || origin.BroughtFrom == inventory.ToGiveBack {
			continue
		}
		source, known := found[origin.From]
		if !known {
			inv, err := store.FindSource(ctx, s.client, origin, o.Inventory.Namespace, o.Version)
			switch {
			case err == nil:
				source = inv.Source()
			case errors.Is(err, store.ErrNotThere):
				source.Name = origin.From // a later one of that ID is another one
			case !apierrors.IsForbidden(err):
				return fmt.Errorf("find inventory %s, to take %s from it: %w", origin.From, bundle.Name(id), err)
			}
			found[origin.From] = source
		}
		if source.Name != "" {
			origins[id] = origin.WithSource(source)
		}
	}
	return nil
}

// returnsOf are the members of a plan that what it undoes had brought from other
// inventories, by inventory.
func returnsOf(inv *inventory.Inventory, p *plan.Plan) map[inventory.Origin]sets.Set[bundle.ID] {
	returns := map[inventory.Origin]sets.Set[bundle.ID]{}
	for _, s := range p.Steps {
		if s.GiveBack {
			o := inv.OriginOf(s.ID, s.Live)
			from := inventory.Origin{How: o.How, From: o.From, FromUID: o.FromUID}
			if returns[from] == nil {
				returns[from] = sets.New[bundle.ID]()
			}
			returns[from].Insert(s.ID)
		}
	}
	return returns
}
