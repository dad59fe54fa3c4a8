package salt

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"brine/bundle"
	"brine/bundle/plan"
	"brine/bundle/report"
	"brine/cmd/brine/output/wording"
)

// about is what became of an object, and why.
func (a *answer) about(o *report.ObjectResult) string {
	text := string(o.Action)
	if a.preview && changed(o) {
		text = "would be " + text
	}
	if o.Ready != "" {
		text += ", " + o.Ready
	}
	for _, more := range append([]string{o.Error, o.Reason}, o.Why...) {
		if more != "" && !strings.Contains(text, more) {
			text += ": " + more
		}
	}
	if at := o.Source.String(); at != "" {
		text += " (" + at + ")"
	}
	return text
}

// comment is what a run came to. Where it went wrong, the causes come first:
// what failed, what is not ready, then what was skipped because of them, and at the
// end what to do.
func (a *answer) comment() string {
	const most = 100
	var lines []string
	var failed, skipped []*report.ObjectResult
	for _, o := range a.Objects {
		switch {
		case !a.notDone(o):
			continue
		case o.Action == plan.Skipped && o.Error == "":
			skipped = append(skipped, o)
		default:
			lines = append(lines, bundle.Name(o.ID())+": "+a.about(o))
		}
		failed = append(failed, o)
	}
	for reason, of := range bundle.GroupBy(skipped, func(o *report.ObjectResult) string { return o.Reason }).All() {
		names := bundle.Each(of, func(o *report.ObjectResult) string { return bundle.Name(o.ID()) })
		lines = append(lines, fmt.Sprintf("%s: skipped: %s", bundle.Some(names, 5), reason))
	}
	for i, o := range a.Outside {
		line := wording.OutsideTitle(a.Result) + ": " + wording.OutsideLines(a.Result)[i]
		if wording.UnreadyOutside(a.Result, o) {
			failed, lines = append(failed, o), append([]string{line}, lines...)
		} else {
			lines = append(lines, line)
		}
	}
	if a.Review != nil && a.Review.Back != nil && len(a.Review.Back.Losses) > 0 {
		lines = append(lines, wording.BackTitle(a.Review.Back)+" "+strings.Join(wording.BackLines(a.Review.Back), "; "))
	}
	if len(lines) > most {
		lines = append(lines[:most], fmt.Sprintf("and %d more", len(lines)-most))
	}
	lines = append(wording.ErrorsOfNoObject(a.Errors, failed), lines...)
	return strings.Join(append(lines, a.headline()), "\n")
}

// headline is how the run ended, for which inventory, and what it has or changed.
func (a *answer) headline() string {
	what := "the run"
	if a.Inventory.Name != "" {
		what = "inventory " + wording.InventoryName(a.Inventory)
	}
	code := fmt.Sprintf(" (exit code %d)", a.ExitCode)
	took := fmt.Sprintf(" in %.1f s", a.Summary.Seconds)
	if a.Revision > 0 {
		took += fmt.Sprintf(", revision %d", a.Revision)
	}
	has, again := what+" has "+a.counts(), code+". Run it again to continue"
	nothing := len(a.changes) == 0
	unknown := slices.ContainsFunc(a.Objects, func(o *report.ObjectResult) bool { return o.Unknown })
	switch {
	case a.failed && len(a.Objects) == 0: // it is not known what the inventory has
		why := "Failed"
		if a.Interrupted != "" {
			why = "Interrupted by " + a.Interrupted
		}
		return why + " before anything was planned, and nothing was changed: " + what + code
	case a.ExitCode == report.ExitRolledBack:
		return "Failed, and rolled back: " + has + code
	case a.Interrupted != "" && unknown:
		return "Interrupted by " + a.Interrupted + ", and objects may have changed: " + has + again
	case a.Interrupted != "":
		return "Interrupted by " + a.Interrupted + ": " + has + again
	case a.failed && a.Summary.Failed == 0 && len(a.Errors) == 0 && a.Summary.NotReady > 0:
		return "Not ready in time: " + has + again
	case a.failed && unknown:
		return "Failed, and objects may have changed: " + has + again
	case a.failed && nothing:
		return "Failed, and nothing was changed: " + has + code
	case a.failed:
		return "Failed: " + has + code
	case nothing:
		return "Nothing to change: " + has + took
	case a.preview:
		return "Would change " + what + ": " + a.counts()
	}
	return "Changed " + what + ": " + a.counts() + took
}

func (a *answer) counts() string {
	var parts []string
	for _, c := range append(wording.ActionCounts(a.Summary), wording.ActionCount{Action: "ready", N: a.Summary.Ready}, wording.ActionCount{Action: "not ready", N: a.Summary.NotReady}) {
		if c.N > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", c.N, c.Action))
		}
	}
	return cmp.Or(strings.Join(parts, ", "), "no objects")
}
