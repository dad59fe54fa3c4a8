package documents

import (
	"encoding/xml"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"brine/bundle"
	"brine/bundle/plan"
	"brine/bundle/report"
	"brine/cmd/brine/output/outputtest"
	"brine/cmd/brine/output/wording"
)

// A comment has a limited size: what matters most is in it, and it says that something
// was left out.
func TestMarkdownIsLimited(t *testing.T) {
	r := outputtest.LargePreview()
	for i := range 2000 {
		r.Objects = append(r.Objects, &report.ObjectResult{Kind: "ConfigMap", Name: fmt.Sprintf("more-%d", i), Action: plan.Configured, Diff: strings.Repeat("+line\n", 30)})
	}
	text := markdown(r)
	if len(text) > longestComment+500 || !strings.Contains(text, "were left out") || !strings.Contains(text, "spec.x: unknown") {
		t.Errorf("%d bytes: %s", len(text), text[max(0, len(text)-300):])
	}
	outside := regexp.MustCompile("(?s)```diff.*?```|`[^`\n]*`").ReplaceAllString(text, "")
	if strings.Contains(outside, "<script>") || strings.Contains(outside, "<img") {
		t.Errorf("an object's name is markup:\n%s", outside[:2000])
	}
	whole := markdown(&report.Result{Objects: []*report.ObjectResult{{Kind: "ConfigMap", Name: "@all", Action: plan.Failed, Error: "a|b `c`\n```\n"}}})
	if strings.Contains(whole, "left out") || !strings.Contains(whole, "`ConfigMap @all`: a\\|b \\`c\\`") {
		t.Errorf("%s", whole)
	}
}

func TestJUnitIsXML(t *testing.T) {
	r := outputtest.LargePreview()
	r.Objects[2].Action, r.Objects[2].Error = plan.Failed, "<bad> & \"worse\"\x1b[31m"
	var suites struct {
		Suite struct {
			Tests    int `xml:"tests,attr"`
			Failures int `xml:"failures,attr"`
			Cases    []struct {
				Name    string `xml:"name,attr"`
				Failure string `xml:"failure"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal([]byte(junit(wording.CleanResult(r), time.Now())), &suites); err != nil {
		t.Fatal(err)
	}
	if s := suites.Suite; s.Tests != len(s.Cases) || s.Tests != 301 || s.Failures != 2 {
		t.Errorf("%d tests, %d failures, %d cases", s.Tests, s.Failures, len(s.Cases))
	}
}

// What no object says fails, too: a run that was interrupted, or whose time ran out, before it
// came to an object.
func TestJUnitFailsWithTheRun(t *testing.T) {
	skipped := []*report.ObjectResult{{Kind: "ConfigMap", Name: "a", Action: plan.Skipped, Reason: "interrupted: SIGTERM"}}
	for _, test := range []struct {
		result report.Result
		want   string
	}{
		{report.Result{ExitCode: report.ExitTerminated, Interrupted: "SIGTERM", Objects: skipped, Summary: report.Summary{Skipped: 1}}, `<failure message="interrupted by SIGTERM: 1 skipped (exit code 143)`},
		{report.Result{ExitCode: report.ExitNotReady, Objects: skipped, Summary: report.Summary{Skipped: 1}}, `<failure message="failed: 1 skipped (exit code 4)"`},
		{report.Result{ExitCode: report.ExitInterrupted, Interrupted: "SIGINT"}, `<failure message="interrupted by SIGINT`},
		{report.Result{ExitCode: report.ExitChanges, Objects: skipped}, ""},
		{report.Result{}, ""},
	} {
		text := junit(&test.result, time.Now())
		if test.want == "" && strings.Contains(text, "<failure") || !strings.Contains(text, test.want) {
			t.Errorf("exit code %d:\n%s", test.result.ExitCode, text)
		}
	}
}

func TestAnnotationsNameTheLine(t *testing.T) {
	r := &report.Result{
		Objects:  []*report.ObjectResult{{Kind: "Pod", Name: "a", Action: plan.Failed, Error: "100% wrong:\nreally", Source: bundle.Source{File: "dir/a,b.yaml", Line: 7}}},
		Warnings: []string{"b.yaml:3: old"}, Errors: []string{"c.yaml:9 (state \"x\", sls y): gone"},
	}
	text := github(r)
	for _, want := range []string{
		"::error file=dir/a%2Cb.yaml,line=7,title=Pod a::100%25 wrong:%0Areally\n",
		"::warning file=b.yaml,line=3,title=brine::old\n", "::error file=c.yaml,line=9,title=brine::gone\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}
