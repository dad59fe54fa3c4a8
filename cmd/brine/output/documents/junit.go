package documents

import (
	"cmp"
	"fmt"
	stdhtml "html"
	"slices"
	"strconv"
	"strings"
	"time"

	"brine/bundle/plan"
	"brine/bundle/report"
	"brine/cmd/brine/output/wording"
)

// junit is the result as JUnit's XML: a case for each object, those outside the bundle
// that were waited for too, and one for what went wrong elsewhere. It is written out here, as encoding/xml would only escape texts.
func junit(r *report.Result, now time.Time) string {
	var b strings.Builder
	x := func(s string) string { return stdhtml.EscapeString(wording.Clean(s)) }
	cases, failures, skipped := 0, 0, 0
	one := func(class, name, at string, seconds float64, outcome string) {
		cases++
		fmt.Fprintf(&b, `  <testcase classname="%s" name="%s"%s time="%.3f">%s</testcase>`+"\n", x(class), x(name), at, seconds, outcome)
	}
	failed := func(message, text string) string {
		failures++
		return `<failure message="` + x(wording.Line(message)) + `">` + x(text) + "</failure>"
	}
	var attached []*report.ObjectResult
	for _, o := range slices.Concat(r.Objects, r.Outside) {
		at := ""
		if o.Source.File != "" {
			at = ` file="` + x(o.Source.File) + `" line="` + strconv.Itoa(o.Source.Line) + `"`
		}
		why := cmp.Or(o.Error, o.Reason)
		var result string
		switch {
		case o.Action == plan.Awaited && !wording.UnreadyOutside(r, o):
			result = "<system-out>" + x("not in the bundle: "+wording.OutsideState(o)) + "</system-out>"
		case o.Action == plan.Failed, o.Ready == report.StateFailed, o.Ready == report.StateNotReady:
			attached = append(attached, o)
			result = failed(cmp.Or(why, "no reason is known"), strings.Join(append([]string{why}, o.Why...), "\n"))
		case o.Action == plan.Skipped:
			skipped++
			result = `<skipped message="` + x(wording.Line(why)) + `"/>`
		default:
			result = "<system-out>" + x(strings.TrimSpace(string(o.Action)+" "+why)) + "</system-out>"
		}
		one(wording.FullKind(o), wording.InNamespace(o), at, max(o.ReadyAt, o.ActedAt, o.StartedAt)-o.StartedAt, result)
	}
	for _, e := range wording.ErrorsOfNoObject(r.Errors, attached) {
		one("brine", cmp.Or(r.Command, "apply"), "", 0, failed(e, e))
	}
	if cases == 0 {
		one("brine", cmp.Or(r.Command, "apply"), "", r.Summary.Seconds, "")
	}
	title, _ := wording.TitleOf(r)
	return fmt.Sprintf(`<?xml version="1.0" encoding="UTF-8"?>
<testsuites><testsuite name="%s" tests="%d" failures="%d" errors="0" skipped="%d" time="%.3f" timestamp="%s">
%s</testsuite></testsuites>
`, x(title), cases, failures, skipped, r.Summary.Seconds, now.UTC().Format("2006-01-02T15:04:05"), b.String())
}
