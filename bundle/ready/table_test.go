package ready

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/bundle/bundletest"
)

func TestReadTableRefuses(t *testing.T) {
	for text, message := range map[string]string{
		"A.example.com: self.x =":                           "r.yaml:1: A.example.com: ready-when: CEL, column 8",
		"A.example.com: true":                               "r.yaml:1: A.example.com: a CEL expression is expected, as text",
		"B: 'true'\n\nA.example.com: {readywhen: 'true'}":   `r.yaml:3: A.example.com: unknown key "readywhen": a kind can have fail-after, `,
		"A.example.com: 'true'\nA.example.com: 'false'":     "r.yaml:2: A.example.com is there twice",
		"A.example.com: {wait: never}":                      `r.yaml:1: A.example.com: wait: invalid value "never": use skip, or leave it out`,
		"A.example.com: {timeout: 5}":                       "r.yaml:1: A.example.com: timeout: not a duration",
		"A.example.com: 'true'\n---\nB.example.com: 'true'": "r.yaml:2: a file has one map of rules, in one document",
		"- a":                              "r.yaml:1: it is not a map of rules",
		"":                                 "r.yaml:1: it is not a map of rules",
		"A.example.com: 'true":             "r.yaml:1: it is not YAML",
		"A.example.com: {ready-when: [x]}": "r.yaml:1: A.example.com: texts are expected",
		"'': 'true'":                       `r.yaml:1: "" is not a kind`,
		"deployments.apps: 'true'":         `r.yaml:1: "deployments.apps" is not a kind of Kubernetes`,
	} {
		if _, err := ReadTable("r.yaml", []byte(text)); err == nil || !strings.HasPrefix(err.Error(), message) {
			t.Errorf("%q:\ngot  %v\nwant %s", text, err, message)
		}
	}
}

// What an object says itself wins over the file, and that over the CRD, whose own readiness
// is that of a CRD.
func TestRulesOfKinds(t *testing.T) {
	crd := &bundle.Object{Content: bundletest.Object(t, `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: widgets.example.com,
		annotations: {brine.dev/ready-when: self.status.crd, brine.dev/failed-when: self.status.bad, brine.dev/wait: skip, brine.dev/timeout: 3m}},
		spec: {group: example.com, names: {kind: Widget, plural: widgets}, versions: [{name: v1}]}}`)}
	crd.ID = bundle.ID{GroupKind: bundle.CRDKind, Name: "widgets.example.com"}
	plain, own := annotated(t, "Widget", nil), annotated(t, "Widget", map[string]string{bundle.ReadyWhen: "self.status.own", bundle.Timeout: "1m"})
	own.ID.Name = "own"
	compiled, _, problems := Compile([]*bundle.Object{crd, plain, own}, nil)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	const bad = `self.status.bad; `
	for _, test := range []struct {
		of      *bundle.Object
		rule    string
		timeout time.Duration
	}{
		{crd, kindRules[bundle.CRDKind].name(bundle.CRDKind), 3 * time.Minute},
		{plain, "failed-when of CustomResourceDefinition widgets.example.com: " + bad + "ready-when of CustomResourceDefinition widgets.example.com: self.status.crd; not waited for", 3 * time.Minute},
		{own, "failed-when of CustomResourceDefinition widgets.example.com: " + bad + "ready-when: self.status.own; not waited for", time.Minute},
	} {
		rules := compiled[test.of.ID]
		if got := RuleOf(test.of.Content.GroupVersionKind(), rules); got != test.rule || *rules.Timeout != test.timeout {
			t.Errorf("%s:\ngot  %s (%s)\nwant %s", test.of.ID.Name, got, rules.Timeout, test.rule)
		}
	}
	table, err := ReadTable("r.yaml", []byte("\nWidget.example.com: self.status.file\nNone.example.com: 'true'\n"))
	if err != nil {
		t.Fatal(err)
	}
	compiled, _, _ = Compile([]*bundle.Object{crd, plain, own}, table)
	s := Of(bundletest.Object(t, `{apiVersion: example.com/v1, kind: Widget, metadata: {name: a}, status: {file: false, crd: true}}`), compiled[plain.ID], Hints{})
	if s.State != NotReady || s.Reason != "ready-when of r.yaml:2 does not hold: self.status.file" || s.Rule != "ready-when of r.yaml:2: self.status.file" {
		t.Errorf("got %+v", s)
	}
	if got := RuleOf(own.GVK, compiled[own.ID]); !strings.Contains(got, "ready-when: self.status.own") {
		t.Error(got)
	}
}

func TestRule(t *testing.T) {
	for object, want := range map[string]string{
		`{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, generation: 1}}`:                                                                     "of Deployment.apps: spec.replicas and those of status, conditions Progressing and Available",
		`{apiVersion: v1, kind: Secret, metadata: {name: a}}`:                                                                                             "of Secret: ready when it is stored",
		`{apiVersion: a.b/v1, kind: X, metadata: {name: a}}`:                                                                                              "general: it has no status",
		`{apiVersion: a.b/v1, kind: X, metadata: {name: a}, status: {conditions: [{type: Ready, status: "True"}]}}`:                                       "general: status.conditions[Ready]",
		`{apiVersion: a.b/v1, kind: X, metadata: {name: a}, status: {conditions: [{type: Ready, status: "False"}]}}`:                                      "general: status.conditions[Ready]",
		`{apiVersion: a.b/v1, kind: X, metadata: {name: a}, status: {phase: Creating}}`:                                                                   "general: status.phase",
		`{apiVersion: a.b/v1, kind: X, metadata: {name: a}, status: {parents: [{conditions: [{type: Accepted, status: "False"}]}]}}`:                      "general: status.parents[].conditions[Accepted]",
		`{apiVersion: a.b/v1, kind: X, metadata: {name: a, generation: 2}, status: {observedGeneration: 1}}`:                                              "generation: status.observedGeneration",
		`{apiVersion: a.b/v1, kind: X, metadata: {name: a, generation: 2}, status: {conditions: [{type: Ready, status: "True", observedGeneration: 1}]}}`: "general: status.conditions[Ready].observedGeneration",
		`{apiVersion: a.b/v1, kind: X, metadata: {name: a, deletionTimestamp: "2025-01-01T00:00:00Z"}}`:                                                   "metadata.deletionTimestamp",
	} {
		if got := Of(bundletest.Object(t, object), nil, Hints{}).Rule; got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", object, got, want)
		}
	}
}

// The rules of the README. Without them, 22 of these cases of Argo CD are judged wrongly.
func TestRulesOfTheReadme(t *testing.T) {
	_, text, _ := strings.Cut(bundle.Readme(), "<!-- readiness rules -->\n```yaml\n")
	text, _, _ = strings.Cut(text, "```")
	table, err := ReadTable("README.md", []byte(text))
	if err != nil || len(table) < 12 {
		t.Fatalf("%d rules: %v", len(table), err)
	}
	cases, before := map[string]int{}, 0
	for _, c := range argoCases(t) {
		u := &unstructured.Unstructured{Object: c.Object}
		kind := u.GroupVersionKind().GroupKind()
		if table[kind] == nil {
			continue
		}
		cases[kind.String()]++
		wrong := func(rules *Rules) bool {
			isReady := Of(u, rules, Hints{}).State == Ready
			return c.Want == "Healthy" && !isReady || c.Want != "Healthy" && c.Want != "Suspended" && isReady
		}
		if wrong(nil) {
			before++
		}
		if wrong(table[kind]) {
			t.Errorf("%s %s: %+v", c.Want, c.Case, Of(u, table[kind], Hints{}))
		}
	}
	if len(cases) != len(table) || before != 22 {
		t.Errorf("cases of %d of %d kinds, %d of them wrong without the rules: %v", len(cases), len(table), before, cases)
	}
}

// A Job that the bundle does not suspend is not ready while somebody else suspends it, whatever rules its kind has.
func TestSuspendedJob(t *testing.T) {
	const job = `{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {suspend: %s}, status: {conditions: [%s]}}`
	live := func(conditions string) *unstructured.Unstructured {
		return bundletest.Object(t, fmt.Sprintf(job, "true", conditions))
	}
	owns := func(manager string) string {
		return `, metadata: {name: a, managedFields: [{manager: ` + manager + `, operation: Apply, fieldsType: FieldsV1, fieldsV1: {f:spec: {f:suspend: {}}}}, {manager: brine, operation: Apply, fieldsType: FieldsV1, fieldsV1: {f:spec: {f:template: {}}}}]}`
	}
	for name, want := range map[string]State{bundle.FieldManager: Ready, "queue": NotReady} {
		u := bundletest.Object(t, strings.Replace(fmt.Sprintf(job, "true", ""), ", metadata: {name: a}", owns(name), 1))
		rules, _, _ := Compile([]*bundle.Object{{ID: bundle.ID{GroupKind: bundle.JobKind, Name: "a"}, Content: u}}, nil)
		if got := Of(u, rules[bundle.ID{GroupKind: bundle.JobKind, Name: "a"}], Hints{}); got.State != want {
			t.Errorf("a live one that %s suspends: %v", name, got)
		}
	}
	for name, test := range map[string]struct {
		wants, conditions string
		want              State
	}{
		"the bundle asks for it":         {wants: "true", want: Ready},
		"it does not":                    {wants: "false", want: NotReady},
		"it does not, and it had run":    {wants: "false", conditions: `{type: Complete, status: "True"}`, want: Ready},
		"it does not, and it has failed": {wants: "false", conditions: `{type: Failed, status: "True"}`, want: Failed},
	} {
		o := &bundle.Object{ID: bundle.ID{GroupKind: bundle.JobKind, Name: "a"}, Content: bundletest.Object(t, fmt.Sprintf(job, test.wants, ""))}
		skips, err := ReadTable("r.yaml", []byte("Job.batch: {timeout: 5m}"))
		if err != nil {
			t.Fatal(err)
		}
		for _, kinds := range []Table{nil, skips} {
			rules, _, _ := Compile([]*bundle.Object{o}, kinds)
			if got := Of(live(test.conditions), rules[o.ID], Hints{}); got.State != test.want {
				t.Errorf("%s: %v", name, got)
			}
		}
	}
}
