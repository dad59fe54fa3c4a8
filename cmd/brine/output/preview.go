package output

import (
	"fmt"
	"strings"

	"brine/bundle/plan"
	"brine/bundle/report"
	"brine/bundle/review"
)

// groups are a preview's parts, what takes something away first.
var groups = []struct {
	action       plan.Action
	title, drift string
}{
	{plan.Pruned, "To prune", "Not wanted"},
	{plan.Recreated, "To recreate", "Different in a field that cannot be changed"},
	{plan.Detached, "To detach", ""},
	{plan.Configured, "To configure", "Different"},
	{plan.Created, "To create", "Missing"},
}

// driftTitle is "Drift of inventory shop/inv from revision 3".
func driftTitle(r *report.Result) string {
	return fmt.Sprintf("Drift of inventory %s from %s", inventory(r.Inventory), Line(r.Wanted))
}

// previewed is a preview for people: the summary, warnings, then the objects by
// what would be done to them, then what went wrong.
func (t *text) previewed(r *report.Result) string {
	r, root := shortPaths(r)
	var b strings.Builder
	head := "Preview"
	if r.DryRun == report.Client {
		head += " without a server"
	}
	if r.Inventory.Name != "" {
		head += " of inventory " + inventory(r.Inventory)
	}
	if r.Wanted != "" {
		head = driftTitle(r)
	}
	b.WriteString(t.out.paint.in(bold, head) + "\n")
	b.WriteString("  " + t.tally(r.Summary, func(n int, a plan.Action) string { return toDo(r, n, a) }) + "\n")
	b.WriteString(t.unverified(r) + "  " + requests(r) + "\n")
	if root != "" {
		b.WriteString("  files are in " + Line(root) + "\n")
	}
	b.WriteString(t.reviewed(r.Review))
	clear(t.warned) // who reads the result elsewhere has not seen the progress
	b.WriteString(t.warnings(r.Warnings))
	for _, g := range groups {
		title := g.title
		if r.Wanted != "" {
			title = g.drift
		}
		t.group(&b, g.action, title, r)
	}
	t.outside(&b, r)
	b.WriteString(t.problems(r))
	text, color := outcome(r)
	b.WriteString("\n" + t.out.paint.in(color, text) + "\n")
	return b.String()
}

// toDo names an action in a preview's tally, where nothing has been done yet.
func toDo(r *report.Result, n int, a plan.Action) string { return fmt.Sprintf("%d %s", n, label(r, a)) }

// label names an action: of a preview, where nothing has been done yet, "to create".
func label(r *report.Result, a plan.Action) string {
	switch {
	case r.Compared != nil:
		return changed[a]
	case !isPreview(r):
		return string(a)
	case a == plan.Failed && r.Wanted == "":
		return "would fail"
	case a == plan.Skipped && r.Wanted == "":
		return "would be skipped"
	}
	for _, g := range groups {
		switch {
		case g.action != a:
		case r.Wanted != "":
			return strings.ToLower(g.drift)
		default:
			return strings.ToLower(g.title)
		}
	}
	return string(a)
}

// vouched says who has checked an object, where that is not the server as usual.
func vouched(o *report.ObjectResult) string {
	switch o.Verified {
	case "server":
		return ""
	case "bundle CRD":
		return "checked by its CRD in the bundle alone"
	}
	return o.Verified
}

// unverified counts the objects that the server has not answered for.
func (t *text) unverified(r *report.Result) string {
	n := 0
	for _, o := range r.Objects {
		if strings.HasPrefix(o.Verified, "not verified") {
			n++
		}
	}
	if n == 0 {
		return ""
	}
	return "  " + t.out.paint.in(yellow, fmt.Sprintf("not verified: %d", n)) + "\n"
}

func (t *text) group(b *strings.Builder, action plan.Action, title string, r *report.Result) {
	var of []*report.ObjectResult
	for _, o := range r.Objects {
		if o.Action == action {
			of = append(of, o)
		}
	}
	if len(of) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s\n", t.out.paint.in(bold, fmt.Sprintf("%s (%d):", title, len(of))))
	alike := folded(r)
	if action == plan.Configured && len(alike) > 0 {
		t.alike(b, r.Review.Same)
	}
	for _, o := range of {
		if alike[o.ID()] && !unverified(o) && o.Reason == "" {
			continue
		}
		line := t.named(o)
		if by := vouched(o); by != "" {
			line += "  " + t.out.paint.in(yellow, "["+Line(by)+"]")
		}
		b.WriteString("  " + line + "\n")
		if o.Reason != "" {
			b.WriteString(indent(o.Reason, "    "))
		}
		if t.o.Diff && o.Diff != "" {
			b.WriteString(t.out.paint.diff(t.shorten(o), "    "))
		}
	}
}

// alike are the changes that are the same in many objects, each once.
func (t *text) alike(b *strings.Builder, same []review.Same) {
	for _, s := range same {
		b.WriteString("  " + sameLine(s) + "\n")
		if !t.o.Verbose {
			b.WriteString("    " + t.out.paint.in(dim, kinds(s.Objects)) + "\n")
			continue
		}
		for _, o := range s.Objects {
			b.WriteString("    " + objectName(o) + "\n")
		}
	}
}
