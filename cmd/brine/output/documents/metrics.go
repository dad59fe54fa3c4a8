package documents

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"brine/bundle/report"
	"brine/cmd/brine/output/wording"
)

// success is the metric that a run that fails takes over from the file before it.
const success = "brine_last_success_timestamp_seconds"

// metrics is the result for node_exporter's textfile collector. previous is what the
// file held before: when a run last succeeded is not forgotten because this one fails.
func metrics(r *report.Result, now time.Time, previous string) string {
	var b strings.Builder
	quoted := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)
	labels := `command="` + quoted.Replace(r.Command) + `",inventory="` + quoted.Replace(wording.InventoryName(r.Inventory)) + `"`
	head := func(name, help string) { fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s gauge\n", name, help, name) }
	one := func(name, help string, value any) {
		head(name, help)
		fmt.Fprintf(&b, "%s{%s} %v\n", name, labels, value)
	}
	one("brine_exit_code", "Exit code of the last run.", r.ExitCode)
	one("brine_seconds", "How long the last run took.", r.Summary.Seconds)
	one("brine_end_timestamp_seconds", "When the last run ended.", now.Unix())
	head("brine_objects", "Objects of the last run by action.")
	for _, c := range wording.ActionCounts(r.Summary) {
		fmt.Fprintf(&b, "brine_objects{%s,action=\"%s\"} %d\n", labels, c.Action, c.N)
	}
	one("brine_objects_ready", "Objects that were ready at the end of the last run.", r.Summary.Ready)
	one("brine_objects_not_ready", "Objects that were not ready at the end of the last run.", r.Summary.NotReady)
	head("brine_requests", "API requests of the last run by verb.")
	for _, verb := range slices.Sorted(maps.Keys(r.Summary.Requests)) {
		fmt.Fprintf(&b, "brine_requests{%s,verb=\"%s\"} %d\n", labels, quoted.Replace(verb), r.Summary.Requests[verb])
	}
	line := success + "{" + labels + "} "
	last := ""
	if report.Succeeded(r.ExitCode) {
		last = fmt.Sprintf("%s%d", line, now.Unix())
	} else {
		for old := range strings.Lines(previous) {
			if strings.HasPrefix(old, line) {
				last = strings.TrimSpace(old)
			}
		}
	}
	if last != "" {
		head(success, "When a run last succeeded.")
		b.WriteString(last + "\n")
	}
	return b.String()
}
