package wording

import (
	"fmt"
	"slices"

	"brine/bundle"
	"brine/bundle/plan"
	"brine/bundle/report"
)

// OutsideTitle is above the objects outside the bundle that a run waits for.
func OutsideTitle(r *report.Result) string {
	if IsPreview(r) {
		return "To wait for, not in the bundle"
	}
	return "Waited for, not in the bundle"
}

// OutsideLines are the objects outside the bundle that a run waits for, with their state.
func OutsideLines(r *report.Result) []string {
	return bundle.Each(r.Outside, func(o *report.ObjectResult) string {
		by := bundle.Each(NeededBy(r, o), func(by *report.ObjectResult) string { return bundle.Name(by.ID()) })
		return fmt.Sprintf("%s: %s (needed by %s)", bundle.Name(o.ID()), OutsideState(o), bundle.Some(by, ManyNames))
	})
}

// OutsideState says whether an object outside the bundle is ready.
func OutsideState(o *report.ObjectResult) string {
	switch o.Ready {
	case report.StateReady:
		return "ready"
	case "":
		return "it was not waited for"
	}
	return "not ready: " + Line(o.Reason)
}

// NeededBy are the objects of the bundle that depend on one outside of it.
func NeededBy(r *report.Result, o *report.ObjectResult) []*report.ObjectResult {
	return slices.DeleteFunc(slices.Clone(r.Objects), func(by *report.ObjectResult) bool {
		return !slices.ContainsFunc(by.Needs, func(n report.Need) bool { return n.ID() == o.ID() })
	})
}

// UnreadyOutside says whether a run waited for an object outside the bundle in vain.
func UnreadyOutside(r *report.Result, o *report.ObjectResult) bool {
	return o.Action == plan.Awaited && !IsPreview(r) && (o.Ready == report.StateFailed || o.Ready == report.StateNotReady)
}
