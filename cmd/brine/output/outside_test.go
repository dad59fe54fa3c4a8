package output

import (
	"strings"
	"testing"
	"time"

	"brine/bundle"
	"brine/bundle/plan"
	"brine/bundle/report"
	"brine/cmd/brine/output/outputtest"
	"brine/cmd/brine/output/salt"
	"brine/cmd/brine/output/wording"
)

// Every format says what a run waits for outside the bundle, and its outcome.
func TestObjectsOutsideTheBundle(t *testing.T) {
	outside := func(name, ready, reason string) *report.ObjectResult {
		o := outputtest.Object("Secret", name, plan.Awaited)
		o.Ready, o.Reason = ready, reason
		return o
	}
	late := outputtest.Object("ConfigMap", "late", plan.Skipped)
	late.Reason = "needs Secret shop/slow ready"
	for _, name := range []string{"slow", "there"} {
		late.Needs = append(late.Needs, report.Need{Reference: bundle.Reference{Kind: "Secret", Namespace: "shop", Name: name}})
	}
	r := &report.Result{
		Command: "apply", DryRun: "none", Inventory: report.Inventory{Namespace: "brine", Name: "shop"}, Objects: []*report.ObjectResult{late},
		Outside:  []*report.ObjectResult{outside("there", report.StateReady, "not in the bundle"), outside("slow", report.StateNotReady, "no <b>key</b>"), outside("unasked", "", "not in the bundle")},
		ExitCode: report.ExitNotReady, Summary: report.Summary{Skipped: 1, NotReady: 1}, Errors: []string{"Secret shop/slow: no <b>key</b>"},
	}
	comment := func(r *report.Result) string { return salt.State(r, time.Time{})["comment"].(string) }
	dry := *r
	dry.Command, dry.DryRun, dry.ExitCode, dry.Errors = "preview", report.Server, report.ExitChanges, nil
	for name, c := range map[string]struct {
		of   func(*report.Result) string
		runs []string
		dry  []string
	}{
		"html": {
			func(r *report.Result) string { return htmlOf(t, r) },
			[]string{"<h2>Waited for, not in the bundle (3)</h2>", "<li>Secret shop/there: ready (needed by ConfigMap shop/late)</li>", "<li>Secret shop/slow: not ready: no &lt;b&gt;key&lt;/b&gt; (needed by", "it was not waited for"},
			[]string{"<h2>To wait for, not in the bundle (3)</h2>"},
		},
		"markdown": {
			func(r *report.Result) string { return written(t, "md", r) },
			[]string{"### Waited for, not in the bundle (3)\n", "- Secret shop/there: ready (needed by ConfigMap shop/late)\n", "not ready: no &lt;b&gt;key"},
			[]string{"### To wait for, not in the bundle (3)\n"},
		},
		"junit": {
			func(r *report.Result) string { return strings.Join(strings.Fields(written(t, "xml", r)), " ") },
			[]string{`tests="4" failures="1"`, `name="shop/slow" time="0.500"> <failure message="no &lt;b&gt;key`, `name="shop/there" time="0.500"> <system-out>not in the bundle: ready</system-out>`},
			[]string{`tests="4" failures="0"`, `name="shop/slow" time="0.500"> <system-out>not in the bundle: not ready: no &lt;b&gt;key`},
		},
		"salt": {
			comment,
			[]string{"Waited for, not in the bundle: Secret shop/slow: not ready: no <b>key</b> (needed by ConfigMap shop/late)\nConfigMap shop/late: skipped: needs", "\nWaited for, not in the bundle: Secret shop/there: ready (needed by"},
			[]string{"To wait for, not in the bundle: Secret shop/there: ready", "To wait for, not in the bundle: Secret shop/slow: not ready: no"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for result, want := range map[*report.Result][]string{r: c.runs, &dry: c.dry} {
				got := c.of(result)
				for _, w := range want {
					if !strings.Contains(got, w) {
						t.Errorf("no %q in\n%s", w, got[:min(len(got), 4000)])
					}
				}
			}
		})
	}
	if got := comment(r); strings.Count(got, "no <b>key</b>") != 1 {
		t.Errorf("the cause stands there more than once:\n%s", got)
	}
}

// written is a result in a format.
func written(t *testing.T, format string, r *report.Result) string {
	t.Helper()
	copied := *r // a printer fills in its lists
	out, _ := outputtest.Show(t, New, wording.Options{Format: format}, []report.Event{{Payload: report.Finished{Result: &copied}}})
	return out
}
