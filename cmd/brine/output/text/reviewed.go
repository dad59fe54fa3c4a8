package text

import (
	"fmt"
	"slices"
	"strings"

	"brine/bundle"
	"brine/bundle/review"
	"brine/cmd/brine/output/wording"
)

// reviewed is what a change is about, for the top of a preview: what is dangerous,
// new pods, what was looked for, then images and versions.
func (t *Printer) reviewed(r *review.Review) string {
	if r.Empty() {
		return ""
	}
	var b strings.Builder
	for _, line := range wording.Headlines(r) {
		b.WriteString("  " + line + "\n")
	}
	if len(r.Risks) > 0 {
		b.WriteString("\n" + t.out.Paint.In(wording.Red, "Dangerous:") + "\n")
	}
	for _, g := range wording.RisksByType(r.Risks) {
		b.WriteString("  " + t.out.Paint.In(wording.Bold, wording.RiskTitle(g)) + "\n")
		shown, rest := wording.FoldRisks(g)
		if t.o.Verbose {
			shown, rest = g, nil
		}
		for _, risk := range shown {
			mark := ""
			if risk.Severe {
				mark = t.out.Paint.In(wording.Red, "! ")
			}
			b.WriteString("    " + mark + wording.RiskLine(risk) + "\n")
			for _, line := range t.details(risk) {
				b.WriteString("      " + wording.Line(line) + "\n")
			}
		}
		if len(rest) > 0 {
			who := bundle.Each(rest, func(r review.Risk) string { return wording.Line(r.Subject) })
			b.WriteString("    " + wording.FoldTitle(rest) + ": " + bundle.Some(who, wording.FewDetails) + " (-v shows all)\n")
		}
	}
	list := func(title string, lines []string) {
		if len(lines) > 0 {
			b.WriteString("\n" + t.out.Paint.In(wording.Bold, title) + "\n  " + strings.Join(lines, "\n  ") + "\n")
		}
	}
	if len(r.Starts) > 0 {
		list(wording.StartsTitle(r.Starts)+":", bundle.Each(r.Starts, wording.StartLine))
	}
	if len(r.Clear) > 0 {
		list("Checked, nothing found:", []string{wording.ClearLine(r)})
	}
	list("Could not be checked:", bundle.Each(r.Unchecked, wording.UncheckedLine))
	list(wording.BackTitle(r.Back), wording.BackLines(r.Back))
	list(fmt.Sprintf("Images (%d):", len(r.Images)), bundle.Each(r.Images, wording.ImageLine))
	list(fmt.Sprintf("Versions (%d):", len(r.Versions)), wording.VersionLines(r))
	return b.String()
}

// details are those of a risk that are shown. The rules of new roles are only where
// that is asked for.
func (t *Printer) details(r review.Risk) []string {
	switch {
	case t.o.Verbose:
		return r.Details
	case r.Type == review.Rights:
		return nil
	case len(r.Details) > wording.FewDetails+1:
		return append(slices.Clone(r.Details[:wording.FewDetails]), fmt.Sprintf("and %d more: -v shows them", len(r.Details)-wording.FewDetails))
	}
	return r.Details
}
