package output

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"brine/bundle/diff"
	"brine/bundle/report"
	"brine/cmd/brine/output/documents"
	"brine/cmd/brine/output/wording"
)

// Revision shows a revision, in one of the formats text (YAML), json and html.
func Revision(w io.Writer, format string, r *report.Revision) error {
	switch format {
	case "json":
		return wording.JSON(w, r)
	case "html":
		page := documents.New(wording.Options{Out: w, Err: io.Discard, Now: time.Now}, documents.Renderers["html"])
		page.Event(report.Event{Payload: report.Finished{Result: r.Result}})
		return page.Close()
	}
	out := bufio.NewWriter(w)
	info := r.Revision
	comment := func(name string, value any) {
		if text := wording.Line(fmt.Sprint(value)); text != "" {
			fmt.Fprintf(out, "# %-10s %s\n", name+":", text)
		}
	}
	comment("inventory", wording.InventoryName(r.Inventory))
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
		fmt.Fprintf(out, "---\n# %s\n%s", wording.Line(o.Source.String()), wording.Clean(diff.YAML(o.Content)))
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write the revision: %w", err)
	}
	return nil
}
