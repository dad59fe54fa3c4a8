package text

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"brine/bundle"
	"brine/bundle/plan"
	"brine/bundle/remedy"
	"brine/bundle/report"
	"brine/cmd/brine/output/wording"
)

// The end of a run as text: counts, what went wrong and why, the outcome.

// closing is what a run came to. What went wrong stands last, so that the tail
// of a log has all of it.
func (t *Printer) closing(r *report.Result) string {
	var b strings.Builder
	bad := t.problems(r)
	if !t.o.Quiet {
		b.WriteString("\n" + t.counts(r))
	}
	b.WriteString(bad)
	if back := r.Rollback; back != nil {
		if !t.o.Quiet {
			b.WriteString("\nRollback of " + t.counts(back))
		}
		b.WriteString(t.problems(back))
	}
	if !t.o.Quiet || bad != "" || r.ExitCode != 0 {
		text, color := wording.Outcome(r)
		b.WriteString("\n" + t.out.Paint.In(color, text) + "\n" + wording.More(r))
	}
	return b.String()
}

// refusal is the errors alone, as warnings were printed when they came. It goes to
// Err: a cron job that drops stdout still has to report it.
func (t *Printer) refusal(r *report.Result) string {
	var b strings.Builder
	for _, e := range r.Errors {
		b.WriteString(t.err.Paint.In(wording.Red, "brine: ") + strings.TrimLeft(wording.Indent(e, "  "), " "))
	}
	b.WriteString(wording.More(r))
	if r.Interrupted != "" {
		text, color := wording.Outcome(r)
		b.WriteString(t.err.Paint.In(color, text) + "\n")
	}
	return b.String()
}

// counts is the summary in a few lines.
func (t *Printer) counts(r *report.Result) string {
	var b strings.Builder
	n := len(r.Objects)
	if left := n - r.Summary.Pruned - r.Summary.Detached; left > 0 && !wording.IsPreview(r) { // a destroy leaves none
		n = left
	}
	head := bundle.Count(n, "object")
	if r.Inventory.Name != "" {
		head = "inventory " + wording.InventoryName(r.Inventory) + ": " + head
	}
	if r.Revision > 0 {
		head += fmt.Sprintf(", revision %d", r.Revision)
	}
	b.WriteString(t.out.Paint.In(wording.Bold, head) + "\n")
	b.WriteString("  " + t.tally(r.Summary, func(n int, a plan.Action) string { return fmt.Sprintf("%s %d", a, n) }) + "\n")
	if s := r.Summary; s.Ready+s.NotReady > 0 {
		fmt.Fprintf(&b, "  ready %d", s.Ready)
		if s.NotReady > 0 {
			b.WriteString(", " + t.out.Paint.In(wording.Red, fmt.Sprintf("not ready %d", s.NotReady)))
		}
		b.WriteString("\n")
	}
	b.WriteString("  " + wording.RequestCounts(r) + "\n")
	if line := longestWait(r); line != "" {
		b.WriteString("  " + line + "\n")
	}
	if r.Plan != nil {
		b.WriteString("  " + wording.Plan(r.Plan) + "\n")
	}
	return b.String()
}

// longestWait names what the run took longest for, where it took a second or more.
func longestWait(r *report.Result) string {
	if r.CriticalPath == nil {
		return ""
	}
	s := r.CriticalPath.Steps[r.CriticalPath.Longest]
	took := s.Until - s.From
	if took < 1 {
		return ""
	}
	text := fmt.Sprintf("longest wait: %.2f s of %.2f s: %s", took, r.Summary.Seconds, bundle.Name(s.ID()))
	switch {
	case s.Waiting >= s.Request && s.Waiting >= s.Queued:
		return text + ": " + cmp.Or(wording.Line(s.Reason), "until it was gone")
	case s.Request >= s.Queued:
		return text + ": the server's answer"
	}
	return text + ": other requests were sent first"
}

// tally is the actions and how often each was done, as form puts it. What was
// done to nothing is not listed.
func (t *Printer) tally(s report.Summary, form func(int, plan.Action) string) string {
	var parts []string
	for _, a := range wording.ActionCounts(s) {
		if a.N == 0 {
			continue
		}
		color := ""
		if a.Action == plan.Failed {
			color = wording.Red
		}
		parts = append(parts, t.out.Paint.In(color, form(a.N, a.Action)))
	}
	return cmp.Or(strings.Join(parts, ", "), "nothing to do")
}

// problems lists warnings that were not printed yet, then what was skipped, is not
// ready and failed, then the errors that belong to no object.
func (t *Printer) problems(r *report.Result) string {
	var skipped, waiting, failed []*report.ObjectResult
	for _, o := range slices.Concat(r.Objects, r.Outside) {
		switch {
		case o.Action == plan.Awaited && wording.IsPreview(r): // it is listed by itself
		case o.Action == plan.Failed:
			failed = append(failed, o)
		case o.Action == plan.Skipped:
			skipped = append(skipped, o)
		case o.Ready == "failed" || o.Ready == "not-ready":
			waiting = append(waiting, o)
		}
	}
	var b strings.Builder
	b.WriteString(t.warnings(r.Warnings))
	t.section(&b, "Skipped", len(skipped), func() { t.skipped(&b, skipped) })
	t.section(&b, "Not ready", len(waiting), func() {
		for _, o := range waiting {
			t.unready(&b, o, r.Commands)
		}
	})
	t.section(&b, "Failed", len(failed), func() {
		for _, o := range failed {
			b.WriteString("  " + t.named(o) + "\n" + wording.Indent(cmp.Or(o.Error, o.Reason, "no reason is known"), "    "))
			chain(&b, o)
		}
	})
	others := wording.ErrorsOfNoObject(r.Errors, slices.Concat(failed, waiting, skipped))
	t.section(&b, "Errors", len(others), func() { t.errors(&b, others) })
	return b.String()
}

func (t *Printer) errors(b *strings.Builder, all []string) {
	for _, e := range all {
		b.WriteString("  " + strings.TrimLeft(wording.Indent(e, "    "), " "))
	}
}

func (t *Printer) warnings(all []string) string {
	fresh := slices.DeleteFunc(slices.Clone(all), func(w string) bool { return t.warned[w] })
	var b strings.Builder
	t.section(&b, "Warnings", len(fresh), func() {
		for _, w := range fresh {
			t.warned[w] = true
			b.WriteString("  " + strings.TrimLeft(wording.Indent(w, "    "), " "))
		}
	})
	return b.String()
}

func (t *Printer) section(b *strings.Builder, title string, n int, body func()) {
	if n == 0 {
		return
	}
	color := wording.Yellow
	if title == "Refused" || title == "Failed" || title == "Errors" || title == "Not ready" {
		color = wording.Red
	}
	fmt.Fprintf(b, "\n%s\n", t.out.Paint.In(color, fmt.Sprintf("%s (%d):", title, n)))
	body()
}

// named is "Deployment.apps ns/name  (a.yaml:1)".
func (t *Printer) named(o *report.ObjectResult) string {
	name := bundle.Name(o.ID())
	if s := o.Source.String(); s != "" {
		name += "  " + t.out.Paint.In(wording.Dim, "("+s+")")
	}
	return name
}

// unready prints why an object is not ready, down to the cause, and where to look.
func (t *Printer) unready(b *strings.Builder, o *report.ObjectResult, commands remedy.Commands) {
	b.WriteString("  " + t.named(o) + "\n" + wording.Indent(cmp.Or(o.Reason, o.Error, "no reason is known"), "    "))
	chain(b, o)
	b.WriteString("    see: " + commands.Describe(o.ID().GroupKind, o.Namespace, o.Name) + "\n")
}

// chain is why, down to the cause; what the object's own reason has said is left out.
func chain(b *strings.Builder, o *report.ObjectResult) {
	for _, w := range o.Why {
		if _, reason, _ := strings.Cut(w, ": "); reason != "" && strings.HasSuffix(o.Reason, reason) {
			continue
		}
		b.WriteString("    because " + strings.TrimLeft(wording.Indent(w, "      "), " "))
	}
}

// skipped puts objects together that were skipped for one reason.
func (t *Printer) skipped(b *strings.Builder, objects []*report.ObjectResult) {
	const most = 10
	for reason, of := range bundle.GroupBy(objects, func(o *report.ObjectResult) string {
		return wording.Line(cmp.Or(o.Reason, o.Error, "no reason is known"))
	}).All() {
		b.WriteString("  " + reason + "\n")
		for i, o := range of {
			if i == most && !t.o.Verbose {
				fmt.Fprintf(b, "    and %d more\n", len(of)-i)
				break
			}
			b.WriteString("    " + t.named(o) + "\n")
		}
	}
}
