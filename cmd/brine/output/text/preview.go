package text

import (
	"fmt"
	"slices"
	"strings"

	"brine/bundle"
	"brine/bundle/plan"
	"brine/bundle/report"
	"brine/bundle/review"
	"brine/cmd/brine/output/wording"
)

// previewed is a preview for people: the summary, warnings, then the objects by
// what would be done to them, then what went wrong.
func (t *Printer) previewed(r *report.Result) string {
	r, root := wording.ShortenPaths(r)
	var b strings.Builder
	head := "Preview"
	if r.DryRun == report.Client {
		head += " without a server"
	}
	if r.Inventory.Name != "" {
		head += " of inventory " + wording.InventoryName(r.Inventory)
	}
	if r.Wanted != "" {
		head = wording.DriftTitle(r)
	}
	b.WriteString(t.out.Paint.In(wording.Bold, head) + "\n")
	b.WriteString(t.toDo(r))
	b.WriteString(t.unverified(r) + "  " + wording.RequestCounts(r) + "\n")
	refused := r.ExitCode == report.ExitBadBundle
	if refused { // before pages of changes that will not come
		t.section(&b, "Refused", len(r.Errors), func() { t.errors(&b, r.Errors) })
	}
	if root != "" {
		b.WriteString("  files are in " + wording.Line(root) + "\n")
	}
	b.WriteString(t.reviewed(r.Review))
	clear(t.warned)                                                                            // who reads the result elsewhere has not seen the progress
	b.WriteString(t.warnings(slices.DeleteFunc(slices.Clone(r.Warnings), func(w string) bool { // the review said it
		return r.Review != nil && slices.ContainsFunc(r.Review.Risks, func(one review.Risk) bool { return one.Type == review.Removed && strings.HasPrefix(w, one.Text) })
	})))
	t.groups(&b, r)
	t.outside(&b, r)
	if refused {
		said := *r
		said.Errors, said.Objects = nil, slices.DeleteFunc(slices.Clone(r.Objects), func(o *report.ObjectResult) bool { return o.Action == plan.Failed })
		b.WriteString(t.problems(&said))
	} else {
		b.WriteString(t.problems(r))
	}
	text, color := wording.Outcome(r)
	b.WriteString("\n" + t.out.Paint.In(color, text) + "\n" + wording.More(r))
	return b.String()
}

// toDo is the tally of a preview, where nothing has been done yet.
func (t *Printer) toDo(r *report.Result) string {
	return "  " + t.tally(r.Summary, func(n int, a plan.Action) string { return fmt.Sprintf("%d %s", n, wording.ActionLabel(r, a)) }) + "\n"
}

// unverified counts the objects that the server has not answered for.
func (t *Printer) unverified(r *report.Result) string {
	n := len(bundle.Where(r.Objects, wording.IsUnverified))
	if n == 0 {
		return ""
	}
	return "  " + t.out.Paint.In(wording.Yellow, fmt.Sprintf("not verified: %d", n)) + "\n"
}

// groups are the objects that change, by what would be done to them.
func (t *Printer) groups(b *strings.Builder, r *report.Result) {
	for _, a := range []plan.Action{plan.Pruned, plan.Recreated, plan.Detached, plan.Configured, plan.Created} {
		if of := bundle.Where(r.Objects, func(o *report.ObjectResult) bool { return o.Action == a }); len(of) > 0 {
			t.group(b, a, of, r)
		}
	}
}

func (t *Printer) group(b *strings.Builder, action plan.Action, of []*report.ObjectResult, r *report.Result) {
	fmt.Fprintf(b, "\n%s\n", t.out.Paint.In(wording.Bold, fmt.Sprintf("%s (%d):", wording.ActionTitle(r, action), len(of))))
	alike := wording.FoldedObjects(r)
	if action == plan.Configured && len(alike) > 0 {
		t.alike(b, r.Review.Same)
	}
	for _, o := range of {
		if alike[o.ID()] && !wording.IsUnverified(o) && o.Reason == "" {
			continue
		}
		line := t.named(o)
		if by := wording.VerifiedBy(o); by != "" {
			line += "  " + t.out.Paint.In(wording.Yellow, "["+wording.Line(by)+"]")
		}
		b.WriteString("  " + line + "\n")
		if o.Reason != "" {
			b.WriteString(wording.Indent(o.Reason, "    "))
		}
		if t.o.Diff && o.Diff != "" {
			b.WriteString(t.out.Paint.Diff(wording.ShortDiff(o, t.o.Verbose), "    "))
		}
	}
}

// alike are the changes that are the same in many objects, each once.
func (t *Printer) alike(b *strings.Builder, same []review.Same) {
	for _, s := range same {
		b.WriteString("  " + wording.SameLine(s) + "\n")
		if !t.o.Verbose {
			b.WriteString("    " + t.out.Paint.In(wording.Dim, wording.KindCounts(s.Objects)) + "\n")
			continue
		}
		for _, o := range s.Objects {
			b.WriteString("    " + wording.ObjectName(o) + "\n")
		}
	}
}

// outside lists the objects outside the bundle that the run of a preview would wait for.
func (t *Printer) outside(b *strings.Builder, r *report.Result) {
	if len(r.Outside) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s\n", t.out.Paint.In(wording.Bold, fmt.Sprintf("%s (%d):", wording.OutsideTitle(r), len(r.Outside))))
	for _, o := range r.Outside {
		fmt.Fprintf(b, "  %s\n    on the cluster, %s\n", t.named(o), wording.OutsideState(o))
		for _, by := range wording.NeededBy(r, o) {
			fmt.Fprintf(b, "    needed by %s\n", t.named(by))
		}
	}
}

// compared is a comparison for people.
func (t *Printer) compared(r *report.Result) string {
	var b strings.Builder
	b.WriteString(t.out.Paint.In(wording.Bold, wording.ComparedTitle(r)) + "\n")
	b.WriteString(t.toDo(r))
	b.WriteString(t.reviewed(r.Review))
	b.WriteString(t.warnings(r.Warnings))
	t.groups(&b, r)
	return b.String()
}
