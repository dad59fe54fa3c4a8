package ready

import (
	"strings"
	"testing"
	"time"

	"brine/bundle"
	"brine/bundle/bundletest"
)

// annotated is a bundle's object with annotations.
func annotated(t *testing.T, kind string, annotations map[string]string) *bundle.Object {
	t.Helper()
	u := bundletest.Object(t, `{apiVersion: example.com/v1, kind: `+kind+`, metadata: {name: a, namespace: prod}}`)
	u.SetAnnotations(annotations)
	o := &bundle.Object{GVK: u.GroupVersionKind(), Content: u, Source: bundle.Source{File: "all.yaml", Line: 7}}
	o.ID = bundle.ID{GroupKind: o.GVK.GroupKind(), Namespace: "prod", Name: "a"}
	return o
}

func compiled(t *testing.T, kind string, annotations map[string]string) *Rules {
	t.Helper()
	rules, problems := compileOwn(annotated(t, kind, annotations))
	for _, p := range problems {
		t.Fatalf("%v", p)
	}
	return rules
}

func TestCompileRefuses(t *testing.T) {
	for _, test := range []struct {
		name, annotation, text, message string
	}{
		{"a slip in the grammar", bundle.ReadyWhen, `self.status.phase = 'Ready'`, "CEL, column 19: Syntax error: token recognition error at: '= ': see «= 'Ready'» (and 1 more)"},
		{"a name that is not there", bundle.ReadyWhen, `has(self.status) && object.status.ready`, "CEL, column 21: undeclared reference to 'object' (in container ''): see «object.status.ready»"},
		{"the second line", bundle.FailedWhen, "has(self.status) &&\n  selv.status.x", "CEL, line 2, column 3: undeclared reference to 'selv' (in container ''): see «selv.status.x»"},
		{"not a bool", bundle.ReadyWhen, `1 + 1`, "the CEL expression gives int, not bool"},
		{"a string", bundle.FailedWhen, `string(self.status.phase)`, "the CEL expression gives string, not bool"},
		{"nothing", bundle.ReadyWhen, " \n", "the CEL expression is empty"},
		{"a bad regular expression", bundle.ReadyWhen, `self.status.x.matches('[')`, "CEL, column 23: invalid matches argument: see «'[')»"},
		{"no unit", bundle.Timeout, "30", `not a duration; write it like "90s", "10m" or "1h30m"; "0" is no limit but the run's own`},
		{"a negative duration", bundle.Timeout, "-3s", `a duration cannot be negative; "0" is no limit but the run's own`},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, problems := compileOwn(annotated(t, "Widget", map[string]string{test.annotation: test.text}))
			if len(problems) != 1 {
				t.Fatalf("got %d problems: %v", len(problems), problems)
			}
			p := problems[0]
			if want := "metadata.annotations[" + test.annotation + "]"; p.Path != want {
				t.Errorf("path is %s", p.Path)
			}
			if p.Source.String() != "all.yaml:7" || p.ID.Name != "a" {
				t.Errorf("it does not say where: %v", p)
			}
			if p.Message != test.message {
				t.Errorf("got  %s\nwant %s", p.Message, test.message)
			}
		})
	}
}

func TestCompileTellsAllProblems(t *testing.T) {
	rules, problems := compileOwn(annotated(t, "Widget", map[string]string{bundle.ReadyWhen: "?", bundle.FailedWhen: "?", bundle.Timeout: "?"}))
	if rules != nil || len(problems) != 3 {
		t.Errorf("got %v and %d problems", rules, len(problems))
	}
}

func TestCompileNone(t *testing.T) {
	if rules, problems := compileOwn(annotated(t, "Widget", map[string]string{"brine.dev/other": "x"})); rules != nil || problems != nil {
		t.Errorf("got %v, %v", rules, problems)
	}
}

func TestTimeout(t *testing.T) {
	for text, want := range map[string]time.Duration{"90s": 90 * time.Second, "1h30m": 90 * time.Minute, "0": 0, " 5m\n": 5 * time.Minute} {
		rules := compiled(t, "Widget", map[string]string{bundle.Timeout: text})
		if rules == nil || rules.Timeout == nil || *rules.Timeout != want {
			t.Errorf("%q: got %+v", text, rules)
		}
	}
	if rules := compiled(t, "Widget", map[string]string{bundle.ReadyWhen: "true"}); rules.Timeout != nil {
		t.Errorf("an object without a timeout has %v", *rules.Timeout)
	}
}

func TestOfWithRules(t *testing.T) {
	const (
		fresh    = `{apiVersion: example.com/v1, kind: Widget, metadata: {name: a, generation: 1}}`
		serving  = `{apiVersion: example.com/v1, kind: Widget, metadata: {name: a, generation: 1}, status: {phase: Serving, up: true, used: 512Mi}}`
		broken   = `{apiVersion: example.com/v1, kind: Widget, metadata: {name: a, generation: 1}, status: {phase: Broken, conditions: [{type: Ready, status: "False", reason: Crash, message: it fell}]}}`
		outdated = `{apiVersion: example.com/v1, kind: Widget, metadata: {name: a, generation: 2}, status: {observedGeneration: 1, phase: Serving}}`
		leaving  = `{apiVersion: example.com/v1, kind: Widget, metadata: {name: a, deletionTimestamp: "2025-01-01T00:00:00Z"}, status: {phase: Serving}}`
		stalled  = `{apiVersion: example.com/v1, kind: Widget, metadata: {name: a, generation: 1}, status: {conditions: [{type: Stalled, status: "True", reason: Crash, message: it fell}]}}`
	)
	for _, test := range []struct {
		name              string
		object            string
		readyWhen, failed string
		want              State
		reason            string
	}{
		{"a field that is not there yet", fresh, `self.status.phase == 'Serving'`, "", NotReady, "ready-when: no such key: status"},
		{"it holds", serving, `self.status.phase == 'Serving'`, "", Ready, ""},
		{"a field of type bool", serving, `self.status.up`, "", Ready, ""},
		{"a field that is no bool", serving, `self.status.phase`, "", NotReady, "ready-when: gives string, not bool"},
		{"it does not hold", serving, "self.status.phase ==\n 'Done'", "", NotReady, "ready-when does not hold: self.status.phase == 'Done'"},
		{"it says what is usual too", broken, `self.status.phase == 'Serving'`, "", NotReady, "ready-when does not hold: self.status.phase == 'Serving'; Ready=False Crash: it fell"},
		{"it stands instead of what is usual", broken, `self.status.phase == 'Broken'`, "", Ready, ""},
		{"a failure that is usual stays one", stalled, `has(self.status.phase)`, "", Failed, "ready-when does not hold: has(self.status.phase); Stalled=True Crash: it fell"},
		{"of an older generation", outdated, `self.status.phase == 'Serving'`, "", NotReady, "its controller has not yet seen generation 2 (its status is of 1)"},
		{"on its way out", leaving, `self.status.phase == 'Serving'`, "", NotReady, "is being deleted"},
		{"it has failed", broken, `true`, `self.status.phase == 'Broken'`, Failed, "failed-when holds: self.status.phase == 'Broken'"},
		{"it has not failed", serving, "", `self.status.phase == 'Broken'`, Ready, ""},
		{"whether it failed cannot be known yet", fresh, "", `self.status.phase == 'Broken'`, Ready, ""},
		{"what Kubernetes adds to CEL", serving, `quantity(self.status.used).isLessThan(quantity('1Gi')) && self.status.phase.lowerAscii() == 'serving' && self.?status.?none.orValue('x') == 'x'`, "", Ready, ""},
		{"conditions", broken, `self.status.conditions.exists(c, c.type == 'Ready' && c.status == 'True')`, "", NotReady,
			"ready-when does not hold: self.status.conditions.exists(c, c.type == 'Ready' && c.status == 'True'); Ready=False Crash: it fell"},
	} {
		t.Run(test.name, func(t *testing.T) {
			annotations := map[string]string{}
			if test.readyWhen != "" {
				annotations[bundle.ReadyWhen] = test.readyWhen
			}
			if test.failed != "" {
				annotations[bundle.FailedWhen] = test.failed
			}
			got := Of(bundletest.Object(t, test.object), compiled(t, "Widget", annotations), Hints{})
			got.Unseen, got.Unsaid, got.Rule = false, false, "" // see TestUnseen and TestRule
			if want := (Status{State: test.want, Reason: test.reason}); got != want {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
		})
	}
}

func TestAnExpressionThatCostsTooMuch(t *testing.T) {
	many := make([]any, 400)
	for i := range many {
		many[i] = int64(i)
	}
	u := bundletest.Object(t, `{apiVersion: example.com/v1, kind: Widget, metadata: {name: a}}`)
	u.Object["spec"] = map[string]any{"items": many}
	rules := compiled(t, "Widget", map[string]string{bundle.ReadyWhen: `self.spec.items.all(a, self.spec.items.all(b, self.spec.items.all(c, a + b + c >= 0)))`})
	got := Of(u, rules, Hints{})
	if got.State != NotReady || !strings.Contains(got.Reason, "cost limit") {
		t.Errorf("got %+v", got)
	}
}

func TestASecretsValueIsNotTold(t *testing.T) {
	rules := compiled(t, "Secret", map[string]string{bundle.ReadyWhen: `int(self.data.port) > 1`})
	got := Of(bundletest.Object(t, `{apiVersion: v1, kind: Secret, metadata: {name: a}, data: {port: aHVudGVy}}`), rules, Hints{})
	if got.State != NotReady || strings.Contains(got.Reason, "aHVudGVy") {
		t.Error("a Secret without a number in port is ready, or the reason quotes it")
	}
}
