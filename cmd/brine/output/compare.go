package output

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"brine/bundle/diff"
	"brine/bundle/plan"
	"brine/bundle/report"
)

// changed names what happens to an object from one bundle to another.
var changed = map[plan.Action]string{plan.Pruned: "removed", plan.Configured: "changed", plan.Created: "added", plan.Unchanged: "unchanged"}

// comparedTitle is "Changes of inventory shop/inv from revision 3 to revision 5".
func comparedTitle(r *report.Result) string {
	return fmt.Sprintf("Changes of inventory %s from %s to %s", inventory(r.Inventory), Line(r.Compared.From), Line(r.Compared.To))
}

// compared is a comparison for people.
func (t *text) compared(r *report.Result) string {
	var b strings.Builder
	b.WriteString(t.out.paint.in(bold, comparedTitle(r)) + "\n")
	b.WriteString("  " + t.tally(r.Summary, func(n int, a plan.Action) string { return fmt.Sprintf("%d %s", n, changed[a]) }) + "\n")
	b.WriteString(t.reviewed(r.Review))
	b.WriteString(t.warnings(r.Warnings))
	for _, a := range []plan.Action{plan.Pruned, plan.Configured, plan.Created} {
		t.group(&b, a, strings.ToUpper(changed[a][:1])+changed[a][1:], r)
	}
	return b.String()
}

// Revision shows a revision, in one of the formats text (YAML), json and html.
func Revision(w io.Writer, format string, r *report.Revision) error {
	switch format {
	case "json":
		return JSON(w, r)
	case "html":
		page := newDocument(Options{Out: w, Err: io.Discard, Now: time.Now}, documents["html"])
		page.Event(report.Event{Payload: report.Finished{Result: r.Result}})
		return page.Close()
	}
	out := bufio.NewWriter(w)
	info := r.Revision
	comment := func(name string, value any) {
		if text := Line(fmt.Sprint(value)); text != "" {
			fmt.Fprintf(out, "# %-10s %s\n", name+":", text)
		}
	}
	comment("inventory", inventory(r.Inventory))
	comment("revision", info.Number)
	if !info.Time.IsZero() {
		comment("time", info.Time.Format(time.RFC3339))
	}
	comment("result", info.Result)
	comment("who", info.Who)
	comment("jid", info.JobID)
	comment("brine", info.Version)
	comment("digest", info.Digest)
	comment("namespace", r.Namespace)
	for _, name := range slices.Sorted(maps.Keys(r.Options)) {
		comment("option", "--"+name+"="+r.Options[name])
	}
	for _, a := range r.Absent {
		comment("absent", a)
	}
	for _, p := range r.Invalid {
		comment("left out", p)
	}
	for _, o := range r.Objects {
		fmt.Fprintf(out, "---\n# %s\n%s", Line(o.Source.String()), Clean(diff.YAML(o.Content)))
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write the revision: %w", err)
	}
	return nil
}
