package output

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"brine/bundle"
	"brine/bundle/plan"
	"brine/bundle/report"
)

// closing is what a run came to. What went wrong stands last, so that the tail
// of a log has all of it.
func (t *text) closing(r *report.Result) string {
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
		text, color := outcome(r)
		b.WriteString("\n" + t.out.paint.in(color, text) + "\n")
	}
	return b.String()
}

// refused: the run ended before it had a plan. There is nothing to count, only a
// reason to report.
func refused(r *report.Result) bool { return len(r.Objects) == 0 && len(r.Errors) > 0 }

// refusal is the errors alone, as warnings were printed when they came. It goes to
// Err: a cron job that drops stdout still has to report it.
func (t *text) refusal(r *report.Result) string {
	var b strings.Builder
	for _, e := range r.Errors {
		b.WriteString(t.err.paint.in(red, "brine: ") + strings.TrimLeft(indent(e, "  "), " "))
	}
	if r.Interrupted != "" {
		text, color := outcome(r)
		b.WriteString(t.err.paint.in(color, text) + "\n")
	}
	return b.String()
}

// counts is the summary in a few lines.
func (t *text) counts(r *report.Result) string {
	var b strings.Builder
	n := len(r.Objects)
	if left := n - r.Summary.Pruned - r.Summary.Detached; left > 0 && !isPreview(r) { // a destroy leaves none
		n = left
	}
	head := bundle.Count(n, "object")
	if r.Inventory.Name != "" {
		head = "inventory " + inventory(r.Inventory) + ": " + head
	}
	if r.Revision > 0 {
		head += fmt.Sprintf(", revision %d", r.Revision)
	}
	b.WriteString(t.out.paint.in(bold, head) + "\n")
	b.WriteString("  " + t.tally(r.Summary, func(n int, a plan.Action) string { return fmt.Sprintf("%s %d", a, n) }) + "\n")
	if s := r.Summary; s.Ready+s.NotReady > 0 {
		fmt.Fprintf(&b, "  ready %d", s.Ready)
		if s.NotReady > 0 {
			b.WriteString(", " + t.out.paint.in(red, fmt.Sprintf("not ready %d", s.NotReady)))
		}
		b.WriteString("\n")
	}
	b.WriteString("  " + requests(r) + "\n")
	if line := longestWait(r); line != "" {
		b.WriteString("  " + line + "\n")
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
		return text + ": " + cmp.Or(Line(s.Reason), "until it was gone")
	case s.Request >= s.Queued:
		return text + ": the server's answer"
	}
	return text + ": other requests were sent first"
}

// tally is the actions and how often each was done, as form puts it. What was
// done to nothing is not listed.
func (t *text) tally(s report.Summary, form func(int, plan.Action) string) string {
	var parts []string
	for _, a := range counted(s) {
		if a.n == 0 {
			continue
		}
		color := ""
		if a.action == plan.Failed {
			color = red
		}
		parts = append(parts, t.out.paint.in(color, form(a.n, a.action)))
	}
	return cmp.Or(strings.Join(parts, ", "), "nothing to do")
}

// counting is how often an action was done.
type counting struct {
	action plan.Action
	n      int
}

func counted(s report.Summary) []counting {
	return []counting{
		{plan.Created, s.Created}, {plan.Configured, s.Configured}, {plan.Recreated, s.Recreated},
		{plan.Pruned, s.Pruned}, {plan.Detached, s.Detached}, {plan.Unchanged, s.Unchanged},
		{plan.Skipped, s.Skipped}, {plan.Failed, s.Failed},
	}
}

// requests is "43 requests (patch 20, list 12, watch 11) in 31.40 s". Those of a
// preview write nothing.
func requests(r *report.Result) string {
	s, total := r.Summary, 0
	verbs := slices.SortedFunc(maps.Keys(s.Requests), func(a, b string) int {
		return cmp.Or(s.Requests[b]-s.Requests[a], strings.Compare(a, b))
	})
	parts := make([]string, 0, len(verbs))
	for _, v := range verbs {
		if s.Requests[v] > 0 {
			total += s.Requests[v]
			parts = append(parts, fmt.Sprintf("%s %d", v, s.Requests[v]))
		}
	}
	text := bundle.Count(total, "request")
	if len(parts) > 0 {
		text += " (" + strings.Join(parts, ", ") + ")"
	}
	if isPreview(r) {
		text = "dry run, nothing was written: " + text
	}
	return fmt.Sprintf("%s in %.2f s", text, s.Seconds)
}

// problems lists warnings that were not printed yet, then what was skipped, is not
// ready and failed, then the errors that belong to no object.
func (t *text) problems(r *report.Result) string {
	var skipped, waiting, failed []*report.ObjectResult
	for _, o := range slices.Concat(r.Objects, r.Outside) {
		switch {
		case o.Action == plan.Awaited && isPreview(r): // it is listed by itself
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
			t.unready(&b, o)
		}
	})
	t.section(&b, "Failed", len(failed), func() {
		for _, o := range failed {
			b.WriteString("  " + t.named(o) + "\n" + indent(cmp.Or(o.Error, o.Reason, "no reason is known"), "    "))
			chain(&b, o.Why)
		}
	})
	others := unattached(r.Errors, append(failed, waiting...))
	t.section(&b, "Errors", len(others), func() {
		for _, e := range others {
			b.WriteString("  " + strings.TrimLeft(indent(e, "    "), " "))
		}
	})
	return b.String()
}

func (t *text) warnings(all []string) string {
	fresh := slices.DeleteFunc(slices.Clone(all), func(w string) bool { return t.warned[w] })
	var b strings.Builder
	t.section(&b, "Warnings", len(fresh), func() {
		for _, w := range fresh {
			t.warned[w] = true
			b.WriteString("  " + strings.TrimLeft(indent(w, "    "), " "))
		}
	})
	return b.String()
}

func (t *text) section(b *strings.Builder, title string, n int, body func()) {
	if n == 0 {
		return
	}
	color := yellow
	if title == "Failed" || title == "Errors" || title == "Not ready" {
		color = red
	}
	fmt.Fprintf(b, "\n%s\n", t.out.paint.in(color, fmt.Sprintf("%s (%d):", title, n)))
	body()
}

// named is "Deployment.apps ns/name  (a.yaml:1)".
func (t *text) named(o *report.ObjectResult) string {
	name := bundle.Name(o.ID())
	if s := o.Source.String(); s != "" {
		name += "  " + t.out.paint.in(dim, "("+s+")")
	}
	return name
}

// unready prints why an object is not ready, down to the cause, and where to look.
func (t *text) unready(b *strings.Builder, o *report.ObjectResult) {
	b.WriteString("  " + t.named(o) + "\n" + indent(cmp.Or(o.Reason, o.Error, "no reason is known"), "    "))
	chain(b, o.Why)
	look := "kubectl describe " + schema.GroupKind{Group: o.Group, Kind: strings.ToLower(o.Kind)}.String() + " " + o.Name
	if o.Namespace != "" {
		look += " --namespace " + o.Namespace
	}
	b.WriteString("    see: " + look + "\n")
}

func chain(b *strings.Builder, why []string) {
	for _, w := range why {
		b.WriteString("    because " + strings.TrimLeft(indent(w, "      "), " "))
	}
}

// skipped puts objects together that were skipped for one reason.
func (t *text) skipped(b *strings.Builder, objects []*report.ObjectResult) {
	var reasons []string
	by := map[string][]*report.ObjectResult{}
	for _, o := range objects {
		why := Line(cmp.Or(o.Reason, o.Error, "no reason is known"))
		if by[why] == nil {
			reasons = append(reasons, why)
		}
		by[why] = append(by[why], o)
	}
	const most = 10
	for _, why := range reasons {
		b.WriteString("  " + why + "\n")
		for i, o := range by[why] {
			if i == most && !t.o.Verbose {
				fmt.Fprintf(b, "    and %d more\n", len(by[why])-i)
				break
			}
			b.WriteString("    " + t.named(o) + "\n")
		}
	}
}

// unattached are the errors that no listed object has reported already.
func unattached(errors []string, objects []*report.ObjectResult) []string {
	var out []string
	for _, e := range errors {
		reported := slices.ContainsFunc(objects, func(o *report.ObjectResult) bool {
			own := cmp.Or(o.Error, o.Reason)
			return own != "" && (e == own || strings.Contains(e, own) && strings.Contains(e, bundle.Name(o.ID())))
		})
		if !reported {
			out = append(out, e)
		}
	}
	return out
}

// outcome is the last line of all, and its colour.
func outcome(r *report.Result) (string, string) {
	s := r.Summary
	var parts []string
	add := func(n int, what string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, what))
		}
	}
	add(s.Failed, "failed")
	add(s.Skipped, "skipped")
	add(s.NotReady, "not ready")
	if n := len(r.Errors); n > 0 && s.Failed == 0 {
		parts = append(parts, bundle.Count(n, "error"))
	}
	detail := strings.Join(parts, ", ")
	if detail == "" {
		detail = fmt.Sprintf("exit code %d", r.ExitCode)
	} else {
		detail += fmt.Sprintf(" (exit code %d)", r.ExitCode)
	}
	switch {
	case r.ExitCode == report.ExitRolledBack:
		return "failed, and rolled back: " + detail, red
	case r.Interrupted != "":
		return fmt.Sprintf("interrupted by %s: %s. Run it again to continue", r.Interrupted, detail), red
	case (r.ExitCode == 0 || r.ExitCode == report.ExitChanges) && len(r.Errors) == 0 && s.Failed+s.NotReady == 0,
		isPreview(r) && len(r.Errors) == 0 && s.Failed == 0:
		return done(r), green
	case s.Failed == 0 && len(r.Errors) == 0 && s.NotReady > 0:
		return "not ready in time: " + detail + ". Run it again to continue waiting", red
	}
	return "failed: " + detail, red
}

func done(r *report.Result) string {
	took := fmt.Sprintf(" in %.2f s", r.Summary.Seconds)
	switch {
	case r.Wanted != "" && r.ExitCode == report.ExitOK:
		return "no drift" + took
	case r.Wanted != "":
		return "drift" + took + ": nothing was changed"
	case isPreview(r):
		return "preview finished" + took + "; it wrote nothing to the cluster"
	case r.Summary.Ready > 0:
		return fmt.Sprintf("done%s: %d ready", took, r.Summary.Ready)
	}
	return "done" + took
}
