package run

import (
	"brine/bundle"
	"brine/bundle/plan"
	"brine/bundle/report"
)

// skipInvalid takes the objects that problems are about out of the bundle,
// where the user allows it (SkipInvalid, as in cli-utils).
// It returns the problems that still stop the run.
func (r *run) skipInvalid(problems []bundle.Problem) []bundle.Problem {
	if !r.SkipInvalid {
		return problems
	}
	return r.bundle.Skip(problems)
}

// reportInvalid reports the objects that were left out. Nothing is
// pruned then: a member that only looks unwanted may be one of them.
func (r *run) reportInvalid() {
	if len(r.bundle.Invalid) == 0 {
		return
	}
	r.Planning.NoPrune, r.Planning.NoPruneReason = true, "nothing is pruned while objects of the bundle are invalid"
	known := map[bundle.ID]*report.ObjectResult{}
	for _, p := range r.bundle.Invalid[r.reported:] {
		r.record.Fail(p.Error())
		if o := known[p.ID]; o != nil && p.ID != (bundle.ID{}) {
			o.Reason += "; " + p.Message
			continue
		}
		o := &report.ObjectResult{
			Group: p.ID.GroupKind.Group, Kind: p.ID.GroupKind.Kind, Namespace: p.ID.Namespace, Name: p.ID.Name,
			Source: p.Source, Action: plan.Skipped, Reason: "invalid: " + p.Message, Needs: []report.Need{},
		}
		known[p.ID] = o
		r.record.Result.Objects = append(r.record.Result.Objects, o)
	}
	r.reported = len(r.bundle.Invalid)
}
