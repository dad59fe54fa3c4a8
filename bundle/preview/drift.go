package preview

import (
	"context"
	"errors"
	"slices"
	"strings"

	"brine/bundle"
	"brine/bundle/cluster/answers"
	"brine/bundle/diff"
	"brine/bundle/plan"
	"brine/inventory"
)

// compare says how a live object differs from the bundle. Created is one that is
// missing, Configured one that differs, Recreated one that differs in a field that
// cannot change, Pruned one that should not be there. What cannot be known is an
// error.
func (p *previewer) compare(ctx context.Context, s *plan.Step) Result {
	switch {
	case s.Deletes():
		return p.unwanted(s)
	case s.ID.Name == "", s.Completed:
		return Result{Action: plan.Unchanged, Reason: s.Reason, Verified: byInventory}
	case s.Terminating != nil:
		return Result{Action: plan.Created, Reason: "is being deleted", Verified: byServer}
	case s.Live == nil && s.Action == plan.Created && s.Always:
		return Result{Action: plan.Unchanged, Reason: bundle.Run + ": " + bundle.RunAlways, Verified: byInventory}
	case s.Live == nil && s.Action == plan.Created:
		return Result{Action: plan.Created, Reason: "not on the cluster", Verified: byServer}
	case s.Live == nil:
		return unknown(s.Reason)
	}
	asked := *s
	asked.Recreate, asked.Always = plan.NoRecreation, false // only the difference counts
	r := p.ask(ctx, &asked)
	if why, unverified := strings.CutPrefix(r.Verified, Unverified); unverified && r.Err == nil {
		return unknown(why)
	}
	if r.Stored != nil && r.Action != plan.Recreated {
		// Values count. Who owns them does not, nor what a write would take from others.
		r.Warnings = slices.DeleteFunc(r.Warnings, func(w string) bool { return w == r.Reason })
		r.Action, r.Reason = plan.Unchanged, ""
		if !diff.Equal(s.Live, r.Stored) {
			r.Action = plan.Configured
		}
	}
	switch owner := s.Live.GetAnnotations()[inventory.OwningInventory]; owner {
	case p.Inventory.ID:
		return r
	case "":
		r.Reason = joined("belongs to no inventory any more", r.Reason)
	default:
		r.Reason = joined("belongs to inventory "+owner, r.Reason)
	}
	if r.Action == plan.Unchanged {
		r.Action = plan.Configured
	}
	return r
}

// unwanted judges a member that the bundle does not have, or wants absent.
func (p *previewer) unwanted(s *plan.Step) Result {
	switch {
	case s.Live == nil:
		return unknown(s.Reason)
	case s.Action == plan.Pruned && s.Reason == "":
		return Result{Action: plan.Pruned, Reason: "a member of the inventory that is not in " + p.Record.Result.Wanted, Verified: byServer}
	case s.Action == plan.Pruned:
		return Result{Action: plan.Pruned, Reason: s.Reason, Verified: byServer}
	}
	return Result{Action: plan.Unchanged, Reason: s.Reason, Verified: byServer}
}

// immutable is the result of an object that differs in a field that cannot change.
func (p *previewer) immutable(s *plan.Step, body []byte, err error) Result {
	if answer := errors.Unwrap(err); answer != nil {
		err = answer // without what the user of an apply can do
	}
	r := p.guess(s, body, "")
	if r.Err == nil {
		r.Action, r.Reason, r.Verified = plan.Recreated, answers.Message(err), byServer
	}
	return r
}

// unknown is the result of an object that could not be compared.
func unknown(why string) Result {
	return Result{Action: plan.Failed, Verified: Unverified + why, Err: errors.New("could not be compared: " + why)}
}

func joined(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
}
