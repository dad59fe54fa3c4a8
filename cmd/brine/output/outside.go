package output

import (
	"fmt"
	"slices"
	"strings"

	"brine/bundle"
	"brine/bundle/plan"
	"brine/bundle/report"
)

// outside lists the objects outside the bundle that the run of a preview would wait for.
func (t *text) outside(b *strings.Builder, r *report.Result) {
	if len(r.Outside) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s\n", t.out.paint.in(bold, fmt.Sprintf("%s (%d):", outsideTitle(r), len(r.Outside))))
	for _, o := range r.Outside {
		fmt.Fprintf(b, "  %s\n    on the cluster, %s\n", t.named(o), outsideState(o))
		for _, by := range neededBy(r, o) {
			fmt.Fprintf(b, "    needed by %s\n", t.named(by))
		}
	}
}

func outsideTitle(r *report.Result) string {
	if isPreview(r) {
		return "To wait for, not in the bundle"
	}
	return "Waited for, not in the bundle"
}

// outsideLines are the objects outside the bundle that a run waits for, with their state.
func outsideLines(r *report.Result) []string {
	return texts(r.Outside, func(o *report.ObjectResult) string {
		by := texts(neededBy(r, o), func(by *report.ObjectResult) string { return bundle.Name(by.ID()) })
		return fmt.Sprintf("%s: %s (needed by %s)", bundle.Name(o.ID()), outsideState(o), bundle.Some(by, manyNames))
	})
}

func outsideState(o *report.ObjectResult) string {
	switch o.Ready {
	case report.StateReady:
		return "ready"
	case "":
		return "it was not waited for"
	}
	return "not ready: " + Line(o.Reason)
}

// neededBy are the objects of the bundle that depend on one outside of it.
func neededBy(r *report.Result, o *report.ObjectResult) []*report.ObjectResult {
	return slices.DeleteFunc(slices.Clone(r.Objects), func(by *report.ObjectResult) bool {
		return !slices.ContainsFunc(by.Needs, func(n report.Need) bool { return n.ID() == o.ID() })
	})
}

// unreadyOutside says whether a run waited for an object outside the bundle in vain.
func unreadyOutside(r *report.Result, o *report.ObjectResult) bool {
	return o.Action == plan.Awaited && !isPreview(r) && (o.Ready == report.StateFailed || o.Ready == report.StateNotReady)
}
