package run

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

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
func (r *run) giveBack(ctx context.Context) {
	for _, to := range slices.Sorted(maps.Keys(r.returns)) {
		if err := r.giveBackTo(ctx, to, r.returns[to]); err != nil {
			text := fmt.Sprintf("%s: not given back to inventory %s: %v. What is still a member stays one; %q gives it back", namesOf(r.returns[to]), to, err,
				remedy.GiveBack(r.Inventory.Namespace+"/"+r.Inventory.Name))
			if errors.Is(err, errNotThere) {
				r.record.Warn(text)
				continue
			}
			r.record.Fail(text)
			r.record.Result.ExitCode = report.ExitFailed
		}
	}
}

// namesOf are the names of objects for a message.
func namesOf(ids []bundle.ID) string {
	var names []string
	for _, id := range ids {
		names = append(names, bundle.Name(id))
	}
	return bundle.Some(names, 5)
}

var errNotThere = errors.New("it is not there any more")

func (r *run) giveBackTo(ctx context.Context, to string, ids []bundle.ID) error {
	theirs, err := r.owner(ctx, to)
	if err != nil {
		return err
	}
	moved, err := admin.MoveMembers(ctx, r.client, admin.MoveOptions{
		From: []report.Inventory{r.Inventory}, To: theirs, Select: func(id bundle.ID) bool { return slices.Contains(ids, id) },
		Version: r.Version, LockTimeout: r.LockTimeout, Report: func(message string) { r.record.Emit(report.Warning{Message: message}) },
	})
	if err != nil {
		return err
	}
	if len(moved.NotMoved) > 0 {
		return errors.New(moved.NotMoved[0].Reason)
	}
	inv, err := store.Load(ctx, r.client, theirs.Namespace, theirs.Name, theirs.ID, r.Version)
	if err != nil {
		return err
	}
	last := inv.Last().Number
	what := fmt.Sprintf("%s: given back to inventory %s/%s", namesOf(ids), theirs.Namespace, theirs.Name)
	if last == 0 {
		r.record.Warn(what + ", which has no revision: the fields stay as they are")
		return nil
	}
	content, err := inv.LoadRevision(ctx, last)
	if err != nil {
		return err
	}
	o := Options{
		Header: report.Header{Command: "apply", DryRun: report.None, Inventory: theirs}, Planning: plan.Options{Conflicts: r.Planning.Conflicts, NoPrune: true},
		Timeout: r.Timeout, LockTimeout: r.LockTimeout, Version: r.Version, Namespace: content.Namespace, Who: r.Who, JobID: r.JobID,
	}
	for _, b := range content.Bundle.Objects {
		if slices.Contains(ids, b.ID) {
			o.Only = append(o.Only, strings.Trim(strings.Join([]string{b.ID.GroupKind.String(), b.ID.Namespace, b.ID.Name}, "/"), "/"))
		}
	}
	if len(o.Only) == 0 {
		r.record.Warn(fmt.Sprintf("%s, whose last revision does not contain them: the fields stay as they are", what))
		return nil
	}
	result := Run(ctx, r.client, content.Bundle, o, func(report.Event) {})
	if result.ExitCode != report.ExitOK {
		return fmt.Errorf("its revision %d could not be applied: %s", last, strings.Join(result.Errors, "; "))
	}
	r.record.Warn(fmt.Sprintf("%s, and its revision %d applied to them", what, last))
	return nil
}

// owner is an inventory that is named NAMESPACE/NAME, or by its ID.
func (r *run) owner(ctx context.Context, to string) (report.Inventory, error) {
	if namespace, name, ok := strings.Cut(to, "/"); ok {
		inv, err := store.Load(ctx, r.client, namespace, name, "", r.Version)
		if err == nil && !inv.Exists() {
			err = errNotThere
		}
		if err != nil {
			return report.Inventory{}, err
		}
		return report.Inventory{Namespace: namespace, Name: name, ID: inv.ID}, nil
	}
	all, err := store.OpenAll(ctx, r.client, "", r.Version)
	if err != nil {
		return report.Inventory{}, err
	}
	for _, inv := range all {
		if inv.ID == to {
			return report.Inventory{Namespace: inv.Namespace, Name: inv.Name, ID: inv.ID}, nil
		}
	}
	return report.Inventory{}, errNotThere
}

// returnsOf are the members of a plan that what it undoes had brought from other
// inventories, by inventory.
func returnsOf(inv *inventory.Inventory, p *plan.Plan) map[string][]bundle.ID {
	returns := map[string][]bundle.ID{}
	for _, s := range p.Steps {
		if s.GiveBack {
			from := inv.OriginOf(s.ID, s.Live).From
			returns[from] = append(returns[from], s.ID)
		}
	}
	return returns
}
