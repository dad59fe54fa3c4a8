package wording

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"brine/bundle"
	"brine/bundle/plan"
	"brine/bundle/report"
)

// How a run ended, in one sentence.

// IsRefused says that the run ended before it had a plan. There is nothing to count, only a
// reason to report.
func IsRefused(r *report.Result) bool { return len(r.Objects) == 0 && len(r.Errors) > 0 }

// ActionCount is how often an action was done.
type ActionCount struct {
	Action plan.Action
	N      int
}

// ActionCounts are all actions of a run, in the order in which they are listed.
func ActionCounts(s report.Summary) []ActionCount {
	return []ActionCount{
		{plan.Created, s.Created}, {plan.Configured, s.Configured}, {plan.Recreated, s.Recreated},
		{plan.Pruned, s.Pruned}, {plan.Detached, s.Detached}, {plan.Unchanged, s.Unchanged},
		{plan.Skipped, s.Skipped}, {plan.Failed, s.Failed},
	}
}

// RequestCounts is "43 requests (patch 20, list 12, watch 11) in 31.40 s". Those of a
// preview write nothing.
func RequestCounts(r *report.Result) string {
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
	if IsPreview(r) {
		text = "dry run, nothing was written: " + text
	}
	return fmt.Sprintf("%s in %.2f s", text, s.Seconds)
}

// ErrorsOfNoObject are the errors that no listed object has reported already.
func ErrorsOfNoObject(errors []string, objects []*report.ObjectResult) []string {
	var out []string
	for _, e := range errors {
		reported := slices.ContainsFunc(objects, func(o *report.ObjectResult) bool {
			own := cmp.Or(o.Error, o.Reason)
			all, invalid := strings.CutPrefix(own, "invalid: ")
			if invalid && strings.Contains(e, bundle.Name(o.ID())) && slices.ContainsFunc(strings.Split(all, "; "), func(one string) bool { return strings.Contains(e, one) }) {
				return true
			}
			return own != "" && (e == own || strings.Contains(e, own) && strings.Contains(e, bundle.Name(o.ID())))
		})
		if !reported {
			out = append(out, e)
		}
	}
	return out
}

// Outcome is the last line of all, and its colour.
func Outcome(r *report.Result) (string, string) {
	s := r.Summary
	var parts []string
	add := func(n int, what string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, what))
		}
	}
	failed := "failed"
	if IsPreview(r) {
		failed = "would fail"
	}
	add(s.Failed, failed)
	add(s.Skipped, "skipped")
	add(s.NotReady, "not ready")
	if n := len(r.Errors); n > 0 && s.Failed == 0 {
		parts = append(parts, bundle.Count(n, "error"))
	}
	detail := fmt.Sprintf("exit code %d", r.ExitCode)
	if len(parts) > 0 {
		detail = strings.Join(parts, ", ") + " (" + detail + ")"
	}
	switch {
	case r.ExitCode == report.ExitRolledBack:
		return "failed, and rolled back: " + detail, Red
	case r.Interrupted != "":
		return fmt.Sprintf("interrupted by %s: %s. Run it again to continue", r.Interrupted, detail), Red
	case report.Succeeded(r.ExitCode) && len(r.Errors) == 0 && s.Failed+s.NotReady == 0,
		IsPreview(r) && len(r.Errors) == 0 && s.Failed == 0:
		return done(r), green
	case s.Failed == 0 && len(r.Errors) == 0 && s.NotReady > 0:
		return "not ready in time: " + detail + ". Run it again to continue waiting", Red
	}
	switch {
	case r.ExitCode != report.ExitBadBundle:
		return "failed: " + detail, Red
	case IsPreview(r):
		return "refused: " + detail + ". An apply would write nothing: the reason stands above", Red
	}
	return "refused, nothing was written: " + detail, Red
}

// More names where more is said about what went wrong, on a line of its own.
func More(r *report.Result) string {
	if len(r.Help) == 0 {
		return ""
	}
	return "more: " + strings.Join(r.Help, ", ") + "\n"
}

func done(r *report.Result) string {
	took := fmt.Sprintf(" in %.2f s", r.Summary.Seconds)
	switch {
	case r.Wanted != "" && r.ExitCode == report.ExitOK:
		return "no drift" + took
	case r.Wanted != "":
		return "drift" + took + ": nothing was changed"
	case IsPreview(r):
		return "preview finished" + took + "; it wrote nothing to the cluster"
	case r.Summary.Ready > 0:
		return fmt.Sprintf("done%s: %d ready", took, r.Summary.Ready)
	}
	return "done" + took
}

// ComparedTitle is "Changes of inventory shop/inv from revision 3 to revision 5".
func ComparedTitle(r *report.Result) string {
	return fmt.Sprintf("Changes of inventory %s from %s to %s", InventoryName(r.Inventory), Line(r.Compared.From), Line(r.Compared.To))
}

// TitleOf is the headline of a result, and how it ended.
func TitleOf(r *report.Result) (title, ended string) {
	title = "Result of " + cmp.Or(r.Command, "apply")
	if IsPreview(r) {
		title = "Preview"
	}
	if r.Inventory.Name != "" {
		title += " of " + InventoryName(r.Inventory)
	}
	ended, _ = Outcome(r)
	switch {
	case r.Compared != nil:
		return ComparedTitle(r), "The objects on the cluster were not read."
	case r.Wanted != "":
		return DriftTitle(r), ended
	}
	return title, ended
}

// DriftTitle is "Drift of inventory shop/inv from revision 3".
func DriftTitle(r *report.Result) string {
	return fmt.Sprintf("Drift of inventory %s from %s", InventoryName(r.Inventory), Line(r.Wanted))
}

// IsPreview says that the run stores nothing.
func IsPreview(r *report.Result) bool { return r.DryRun != "" && r.DryRun != report.None }

// InventoryName is "namespace/name".
func InventoryName(i report.Inventory) string {
	return InNamespace(&report.ObjectResult{Namespace: i.Namespace, Name: i.Name})
}

// Plan says where a plan was saved, and how it is approved.
func Plan(p *report.SavedPlan) string {
	text := fmt.Sprintf("plan %s saved in %s", p.Digest, Line(p.Place))
	if p.Kept {
		text = fmt.Sprintf("plan %s is in %s since %s, and still holds", p.Digest, Line(p.Place), p.Created.Format(time.RFC3339))
	}
	if !p.Expires.IsZero() {
		text += ", to be carried out until " + p.Expires.Format(time.RFC3339)
	}
	return text
}
