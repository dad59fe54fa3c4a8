package documents

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"slices"
	"strings"
	"time"

	"brine/bundle/plan"
	"brine/bundle/report"
	"brine/cmd/brine/output/wording"
)

type testSuite struct {
	Name      string     `xml:"name,attr"`
	Tests     int        `xml:"tests,attr"`
	Failures  int        `xml:"failures,attr"`
	Errors    int        `xml:"errors,attr"`
	Skipped   int        `xml:"skipped,attr"`
	Time      string     `xml:"time,attr"`
	Timestamp string     `xml:"timestamp,attr"`
	Cases     []testCase `xml:"testcase"`
}

type testCase struct {
	Class   string       `xml:"classname,attr"`
	Name    string       `xml:"name,attr"`
	File    string       `xml:"file,attr,omitempty"`
	Line    int          `xml:"line,attr,omitempty"`
	Time    string       `xml:"time,attr"`
	Failure *testMessage `xml:"failure"`
	Skipped *testMessage `xml:"skipped"`
	Out     string       `xml:"system-out,omitempty"`
}

type testMessage struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// junit is the result as JUnit's XML: a case for each object, those outside the bundle
// that were waited for too, and one for what went wrong elsewhere.
func junit(r *report.Result, now time.Time) string {
	milliseconds := func(s float64) string { return fmt.Sprintf("%.3f", s) }
	title, _ := wording.TitleOf(r)
	suite := testSuite{Name: title, Time: milliseconds(r.Summary.Seconds), Timestamp: now.UTC().Format("2006-01-02T15:04:05")}
	failed := func(message, text string) *testMessage {
		suite.Failures++
		return &testMessage{wording.Line(message), wording.Clean(text)}
	}
	var attached []*report.ObjectResult
	for _, o := range slices.Concat(r.Objects, r.Outside) {
		c := testCase{Class: wording.FullKind(o), Name: wording.InNamespace(o), File: o.Source.File, Line: o.Source.Line, Time: milliseconds(max(o.ReadyAt, o.ActedAt, o.StartedAt) - o.StartedAt)}
		switch why := cmp.Or(o.Error, o.Reason); {
		case o.Action == plan.Awaited && !wording.UnreadyOutside(r, o):
			c.Out = "not in the bundle: " + wording.OutsideState(o)
		case o.Action == plan.Failed, o.Ready == report.StateFailed, o.Ready == report.StateNotReady:
			attached = append(attached, o)
			c.Failure = failed(cmp.Or(why, "no reason is known"), strings.Join(append([]string{why}, o.Why...), "\n"))
		case o.Action == plan.Skipped:
			suite.Skipped++
			c.Skipped = &testMessage{Message: wording.Line(why)}
		default:
			c.Out = strings.TrimSpace(string(o.Action) + " " + why)
		}
		suite.Cases = append(suite.Cases, c)
	}
	whole := testCase{Class: "brine", Name: cmp.Or(r.Command, "apply"), Time: milliseconds(0)}
	for _, e := range wording.ErrorsOfNoObject(r.Errors, attached) {
		whole.Failure = failed(e, e)
		suite.Cases = append(suite.Cases, whole)
	}
	if bad := !report.Succeeded(r.ExitCode) && suite.Failures == 0; bad || len(suite.Cases) == 0 {
		if whole.Time = suite.Time; bad { // before it came to an object, for example
			ended, _ := wording.Outcome(r)
			whole.Failure = failed(ended, ended)
		}
		suite.Cases = append(suite.Cases, whole)
	}
	suite.Tests = len(suite.Cases)
	text, err := xml.MarshalIndent(struct {
		XMLName xml.Name  `xml:"testsuites"`
		Suite   testSuite `xml:"testsuite"`
	}{Suite: suite}, "", " ")
	if err != nil { // these types can always be written
		return err.Error()
	}
	return xml.Header + string(text) + "\n"
}
