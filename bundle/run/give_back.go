package run

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"

	"brine/bundle"
	"brine/bundle/cluster"
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
func giveBack(ctx context.Context, s *session, o *Options, returns map[string]sets.Set[bundle.ID]) {
	for _, to := range slices.Sorted(maps.Keys(returns)) {
		ids := returns[to]
		done, err := giveBackTo(ctx, s, o, to, ids)
		names := bundle.Each(ids.UnsortedList(), bundle.Name)
		slices.Sort(names)
		text := bundle.Some(names, 5) + ": "
		switch {
		case errors.Is(err, errNotThere):
			s.record.Warn(fmt.Sprintf("%snot given back to inventory %s, which is not there any more: they stay members", text, to))
		case err != nil:
			s.record.Fail(fmt.Sprintf("%snot given back to inventory %s: %v. Repeat the command: what was not given back is still a member", text, to, err))
			s.record.Result.ExitCode = report.ExitFailed
		default:
			s.record.Warn(text + "given back to inventory " + done)
		}
	}
}

var errNotThere = errors.New("there is no such inventory")

// giveBackTo returns what was done, like "shop/web, and its revision 3 applied to them".
func giveBackTo(ctx context.Context, s *session, o *Options, to string, ids sets.Set[bundle.ID]) (done string, err error) {
	theirs, err := findInventory(ctx, s.client, o, to)
	if err != nil {
		return "", err
	}
	moved, err := admin.MoveMembers(ctx, s.client, admin.MoveOptions{
		From: []report.Inventory{o.Inventory}, To: theirs, Select: ids.Has, Version: o.Version, LockTimeout: o.LockTimeout,
		Report: func(message string) { s.record.Emit(report.Warning{Message: message}) },
	})
	if err != nil {
		return "", err
	}
	if len(moved.NotMoved) > 0 {
		return "", errors.New(moved.NotMoved[0].Reason)
	}
	inv, err := store.Load(ctx, s.client, theirs.Namespace, theirs.Name, theirs.ID, o.Version)
	if err != nil {
		return "", err
	}
	done, last := theirs.Namespace+"/"+theirs.Name, inv.Last().Number
	if last == 0 {
		return done + ", which has no revision: their fields stay as they are", nil
	}
	content, err := inv.LoadRevision(ctx, last)
	if err != nil {
		return "", err
	}
	again := Options{
		Header: report.Header{Command: "apply", DryRun: report.None, Inventory: theirs}, Planning: plan.Options{Conflicts: o.Planning.Conflicts},
		SkipInvalid: true, // what a server once took: as much of it as possible
		Timeout:     o.Timeout, LockTimeout: o.LockTimeout, Version: o.Version, Namespace: content.Namespace, Who: o.Who, JobID: o.JobID,
	}
	for _, b := range content.Bundle.Objects {
		if ids.Has(b.ID) {
			again.Only = append(again.Only, remedy.Word(b.ID.GroupKind, b.ID.Namespace, b.ID.Name))
		}
	}
	if len(again.Only) == 0 {
		return done + ", whose last revision does not contain them: their fields stay as they are", nil
	}
	result := Run(ctx, s.client, content.Bundle, again, func(report.Event) {})
	if result.ExitCode != report.ExitOK {
		return "", fmt.Errorf("they are its members, but its revision %d could not be applied: %s", last, failures(result))
	}
	return fmt.Sprintf("%s, and its revision %d applied to them", done, last), nil
}

// findInventory finds an inventory that is named NAMESPACE/NAME, or by its ID.
func findInventory(ctx context.Context, c *cluster.Client, o *Options, to string) (report.Inventory, error) {
	if namespace, name, ok := strings.Cut(to, "/"); ok {
		inv, err := store.Load(ctx, c, namespace, name, "", o.Version)
		if err == nil && !inv.Exists() {
			err = errNotThere
		}
		if err != nil {
			return report.Inventory{}, err
		}
		return report.Inventory{Namespace: namespace, Name: name, ID: inv.ID}, nil
	}
	for _, namespace := range []string{o.Inventory.Namespace, ""} { // the second may need more rights
		all, err := store.OpenAll(ctx, c, namespace, o.Version)
		if err != nil {
			return report.Inventory{}, err
		}
		if i := slices.IndexFunc(all, func(inv *store.Inventory) bool { return inv.ID == to }); i >= 0 {
			return report.Inventory{Namespace: all[i].Namespace, Name: all[i].Name, ID: to}, nil
		}
	}
	return report.Inventory{}, errNotThere
}

// returnsOf are the members of a plan that what it undoes had brought from other
// inventories, by inventory.
func returnsOf(inv *inventory.Inventory, p *plan.Plan) map[string]sets.Set[bundle.ID] {
	returns := map[string]sets.Set[bundle.ID]{}
	for _, s := range p.Steps {
		if s.GiveBack {
			from := inv.OriginOf(s.ID, s.Live).From
			if returns[from] == nil {
				returns[from] = sets.New[bundle.ID]()
			}
			returns[from].Insert(s.ID)
		}
	}
	return returns
}
