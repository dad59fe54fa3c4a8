package output

import (
	"bytes"
	"strings"
	"testing"

	"brine/bundle/report"
	"brine/cmd/brine/output/wording"
)

// A run that planned nothing says why, on Err, and nothing else.
func TestRefusals(t *testing.T) {
	for _, test := range []struct {
		name, format string
		result       report.Result
		err          string
		out          string // what Out has in it, if anything
	}{
		{"text", "text", report.Result{ExitCode: 3, Errors: []string{"a.yaml:1: bad", "a.yaml:2: worse\nby far"}}, "brine: a.yaml:1: bad\nbrine: a.yaml:2: worse\n  by far\n", ""},
		{"locked", "", report.Result{ExitCode: 5, Errors: []string{"locked"}}, "brine: locked\n", ""},
		{"preview", "text", report.Result{ExitCode: 6, DryRun: "server", Errors: []string{"no cluster"}}, "brine: no cluster\n", ""},
		{"interrupted", "text", report.Result{ExitCode: 130, Interrupted: "SIGINT", Errors: []string{"stopped"}},
			"brine: stopped\ninterrupted by SIGINT: 1 error (exit code 130). Run it again to continue\n", ""},
		{"json", "json", report.Result{ExitCode: 3, Errors: []string{"bad"}}, "brine: bad\n", `"bad"`},
		{"events", "events", report.Result{ExitCode: 3, Errors: []string{"bad"}}, "brine: bad\n", `"bad"`},
		{"html", "html", report.Result{ExitCode: 3, Errors: []string{"bad"}}, "brine: bad\n", "bad"},
		{"salt", "salt", report.Result{ExitCode: 3, Errors: []string{"bad"}}, "", "bad"},
	} {
		for _, quiet := range []bool{false, true} {
			var out, err bytes.Buffer
			p := New(wording.Options{Format: test.format, Out: &out, Err: &err, Quiet: quiet})
			result := test.result
			p.Event(report.Event{Payload: report.Finished{Result: &result}})
			if wrong := p.Close(); wrong != nil {
				t.Fatal(wrong)
			}
			if err.String() != test.err || (out.Len() > 0) != (test.out != "") || !strings.Contains(out.String(), test.out) {
				t.Errorf("%s (quiet: %v): stdout %q, stderr %q, want %q", test.name, quiet, out.String(), err.String(), test.err)
			}
		}
	}
}
