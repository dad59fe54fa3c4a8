package output

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aymanbagabas/go-udiff"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/bundle/diff"
	"brine/bundle/plan"
	"brine/bundle/report"
	"brine/bundle/review"
)

var update = flag.Bool("update", false, "write the golden files anew")

// The Secret in the run and its value before and after; leak looks for them.
const (
	valueBefore = "hunter2-before"
	valueAfter  = "hunter2-after"
)

var base = time.Date(2026, 7, 1, 1, 2, 3, 0, time.UTC)

// run is a made-up run that has all there is: every action, retries, warnings,
// late, failed and skipped objects, a Secret.
type run struct {
	events  []report.Event
	objects []*report.ObjectResult
}

func (r *run) object(group, version, kind, namespace, name string, line int) *report.ObjectResult {
	o := &report.ObjectResult{Group: group, Version: version, Kind: kind, Namespace: namespace, Name: name}
	if line > 0 {
		o.Source = bundle.Source{File: "bundle.yaml", Line: line}
	}
	r.objects = append(r.objects, o)
	return o
}

// at adds an event; the object is copied, as it is at that time.
func (r *run) at(seconds float64, e report.Event) {
	e.Elapsed = time.Duration(seconds * float64(time.Second))
	e.Time = base.Add(e.Elapsed)
	e.Total = 11
	for _, o := range r.objects {
		if o.Action != "" && (o.Ready != "" || o.Action != plan.Created) {
			e.Done++
		}
	}
	if about := e.Object(); about != nil {
		o, p := *about, reflect.New(reflect.TypeOf(e.Payload)).Elem()
		p.Set(reflect.ValueOf(e.Payload))
		p.FieldByName("Object").Set(reflect.ValueOf(&o))
		e.Payload, _ = reflect.TypeAssert[report.Payload](p)
	}
	r.events = append(r.events, e)
}

func (r *run) acted(seconds float64, o *report.ObjectResult, a plan.Action, reason string) {
	o.Action, o.Reason, o.ActedAt = a, reason, seconds
	r.at(seconds, report.Event{Payload: report.Acted{Object: o}})
}

func secret(value string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret",
		"metadata":   map[string]any{"name": "login", "namespace": "shop"},
		"stringData": map[string]any{"password": value, "user": "admin-" + valueBefore},
	}}
}

// rich is the run; dryRun is "none" or "server".
func rich(dryRun string) []report.Event {
	r := &run{}
	command := "apply"
	if dryRun != "none" {
		command = "preview"
	}
	header := &report.Result{
		APIVersion: "brine.dev/v1", Kind: "Result", Command: command, DryRun: report.DryRun(dryRun),
		Inventory: report.Inventory{Namespace: "brine", Name: "shop", ID: "shop-1"},
	}
	r.at(0, report.Event{Payload: report.Started{Result: header}})
	ns := r.object("", "v1", "Namespace", "", "shop", 1)
	login := r.object("", "v1", "Secret", "shop", "login", 6)
	settings := r.object("", "v1", "ConfigMap", "shop", "settings", 14)
	web := r.object("apps", "v1", "Deployment", "shop", "web", 25)
	db := r.object("apps", "v1", "StatefulSet", "shop", "db", 60)
	migrate := r.object("batch", "v1", "Job", "shop", "migrate", 90)
	thing := r.object("example.com", "v1", "Thing", "shop", "a", 120)
	hook := r.object("", "v1", "Service", "shop", "hook", 130)
	after := r.object("example.com", "v1", "Thing", "shop", "b", 140)
	old := r.object("", "v1", "ConfigMap", "shop", "old", 0)
	kept := r.object("", "v1", "PersistentVolumeClaim", "shop", "data", 0)
	web.Needs = []report.Need{{Kind: "Namespace", Name: "shop", Want: "applied", Reason: "namespace shop"}}

	r.at(0.1, report.Event{Payload: report.Acting{Object: ns}})
	ns.Ready = "ready"
	r.acted(0.2, ns, plan.Unchanged, "")
	r.at(0.2, report.Event{Payload: report.BecameReady{Object: ns}})
	d := diff.Objects(secret(valueBefore), secret(valueAfter), nil)
	login.Diff, login.Changes, login.Verified = d.Unified, d.Changes, "server"
	login.Ready = "ready"
	r.acted(0.25, login, plan.Configured, "")
	settings.Diff, settings.Verified = "--- live\n+++ /dev/null\n@@ -1,2 +1,2 @@\n a: 1\n-b: 2\n+b: 3\n", "server"
	settings.Ready = "ready"
	r.acted(0.3, settings, plan.Recreated, "field is immutable when `immutable` is set")
	web.Diff, web.Verified = "--- /dev/null\n+++ applied\n@@ -0,0 +1,2 @@\n+apiVersion: apps/v1\n+kind: Deployment\n", "server (surrogate namespace)"
	r.acted(0.42, web, plan.Created, "")
	r.at(0.5, report.Event{Payload: report.Waiting{Object: web, Reason: "Available: 0/1"}})
	r.acted(0.6, db, plan.Created, "")
	r.at(0.6, report.Event{Payload: report.Waiting{Object: db, Reason: "0 of 1 ready"}})
	r.at(0.7, report.Event{Payload: report.Retrying{Object: hook, Error: "etcdserver: leader changed", Attempt: 1}})
	r.at(0.9, report.Event{Payload: report.Retrying{Object: hook, Error: "etcdserver: leader changed", Attempt: 2}})
	hook.Ready = "ready"
	r.acted(1.1, hook, plan.Created, "")
	r.at(1.1, report.Event{Payload: report.BecameReady{Object: hook}})
	r.at(1.2, report.Event{Payload: report.Warning{Message: "policy/v1beta1 PodDisruptionBudget is deprecated in v1.21+"}})
	r.at(1.2, report.Event{Payload: report.Warning{Message: "policy/v1beta1 PodDisruptionBudget is deprecated in v1.21+"}})
	r.acted(1.4, migrate, plan.Created, "")
	thing.Error = "apply patch: the server refused it: spec.size: Invalid value: 0: must be positive\nset spec.size to 1 or more"
	r.acted(1.5, thing, plan.Failed, "")
	r.acted(1.5, after, plan.Skipped, "needs Thing.example.com shop/a, which failed")
	if dryRun == "none" {
		migrate.Ready = "failed"
		migrate.Why = []string{"Pod shop/migrate-x: container migrate: exit code 1", "its last log line: \x1b[31mno such table\x1b[0m"}
		r.at(3.1, report.Event{Payload: report.NotReady{Object: migrate, Reason: "Failed: BackoffLimitExceeded: Job has reached the specified backoff limit"}})
		migrate.Reason = "Failed: BackoffLimitExceeded: Job has reached the specified backoff limit"
		r.at(8, report.Event{Payload: report.Waiting{Object: db, Reason: "0 of 1 ready"}})
		pending := []report.Pending{{Object: web.ID(), Reason: "Available: 0/1", Since: base.Add(500 * time.Millisecond)}}
		for range 6 {
			pending = append(pending, report.Pending{Object: db.ID(), Reason: "0 of 1 ready", Since: base.Add(600 * time.Millisecond)})
		}
		r.at(10.6, report.Event{Payload: report.Heartbeat{Pending: pending}})
		r.at(11, report.Event{Payload: report.Heartbeat{Pending: pending}}) // too soon after the last
		db.Ready = "ready"
		r.at(12, report.Event{Payload: report.BecameReady{Object: db}})
		r.at(15, report.Event{Payload: report.Waiting{Object: web, Reason: "Available=False MinimumReplicasUnavailable"}})
		web.Ready, web.Reason = "not-ready", "Available=False MinimumReplicasUnavailable: Deployment does not have minimum availability."
		web.Why = []string{"Pod shop/web-5d: container app is waiting: ImagePullBackOff"}
		r.at(20, report.Event{Payload: report.NotReady{Object: web, Reason: web.Reason}})
	}
	old.Diff, old.Verified = "--- live\n+++ /dev/null\n@@ -1 +0,0 @@\n-apiVersion: v1\n", "server"
	r.acted(20.1, old, plan.Pruned, "no longer in the bundle")
	r.at(20.1, report.Event{Payload: report.Waiting{Object: old, Reason: "held by finalizer example.com/x"}})
	r.at(20.3, report.Event{Payload: report.BecameReady{Object: old}})
	r.acted(20.4, kept, plan.Detached, "annotation client.lifecycle.config.k8s.io/deletion: detach")

	result := *header
	result.Objects = r.objects
	result.Summary = report.Summary{
		Created: 4, Configured: 1, Unchanged: 1, Recreated: 1, Pruned: 1, Detached: 1, Skipped: 1, Failed: 1,
		Ready: 5, NotReady: 2, Requests: map[string]int{"patch": 9, "list": 4, "delete": 2, "watch": 2}, Seconds: 20.5,
	}
	if dryRun != "none" {
		result.Summary.Ready, result.Summary.NotReady = 0, 0
		name := func(o *report.ObjectResult) []review.Object {
			return []review.Object{{Group: o.Group, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}}
		}
		result.Review = &review.Review{
			Risks: []review.Risk{
				{Type: review.Recreated, Objects: name(settings), Text: "deleted and created again"},
				{Type: review.Restart, Objects: name(web), Text: "all 3 pods restart", Pods: 3, Details: []string{"PodDisruptionBudget web allows no disruption now"}},
				{Type: review.Rights, Subject: "ServiceAccount shop/web", Severe: true, Objects: name(hook), Text: "may in the whole cluster: read Secrets", Details: []string{"get: secrets"}},
				{Type: review.Rights, Subject: "ServiceAccount shop/a", Objects: name(hook), Text: "may in namespace shop: get: pods"},
				{Type: review.Rights, Subject: "ServiceAccount shop/b", Objects: name(hook), Text: "may in namespace shop: get: pods"},
				{Type: review.Unverified, Objects: append(name(web), name(hook)...), Text: "a <webhook> cannot be asked"},
			},
			Starts:      []review.Start{{Object: name(web)[0], Pods: 2}, {Object: name(db)[0], Note: "one on each node that it selects"}},
			Clear:       []review.Type{review.Data, review.API},
			Unchecked:   []review.Unchecked{{What: "whether what pods name is there: Secret shop/<key>", Why: "no right to get secrets"}},
			Unversioned: 3,
			Images:      []review.ImageChange{{Image: "registry/web", From: "1", To: "2", Objects: name(web)}, {Image: "registry/new", To: "3", Guess: true, Objects: name(db)}},
			Versions:    []review.VersionChange{{Component: "web", ChartFrom: "1.0", ChartTo: "1.1", From: "1", To: "2", Objects: 4, Action: plan.Configured}, {Component: "db", To: "7", Objects: 1, Action: plan.Created}},
			Same:        []review.Same{{Labels: true, Fields: []diff.Change{{Path: `metadata.labels["helm.sh/chart"]`, Old: "web-1.0", New: "web-1.1"}}, Objects: append(name(login), name(web)...)}},
		}
	}
	result.Errors = []string{
		"bundle.yaml:120: Thing.example.com shop/a: " + thing.Error, // told with the object
		"inventory brine/shop: the lock was lost to another run\nlook who holds it: brine status --name shop",
	}
	result.Warnings = []string{"policy/v1beta1 PodDisruptionBudget is deprecated in v1.21+", "2 edges were dropped: they closed a cycle"}
	result.ExitCode, result.Revision = 1, 7
	r.at(20.5, report.Event{Payload: report.Finished{Result: &result}})
	return r.events
}

// good is a run without anything to complain about.
func good() []report.Event {
	r := &run{}
	o := r.object("apps", "v1", "Deployment", "shop", "web", 25)
	r.at(0, report.Event{Payload: report.Started{}})
	r.acted(0.1, o, plan.Created, "")
	o.Ready = "ready"
	r.at(1, report.Event{Payload: report.BecameReady{Object: o}})
	r.at(1, report.Event{Payload: report.Finished{Result: &report.Result{Objects: r.objects, Summary: report.Summary{Created: 1, Ready: 1, Seconds: 1}}}})
	return r.events
}

// interrupted is a run that a signal ended, and that had nothing done yet.
func interrupted() []report.Event {
	r := &run{}
	r.at(0, report.Event{Payload: report.Started{}})
	o := r.object("apps", "v1", "Deployment", "shop", "web", 25)
	r.acted(0.1, o, plan.Skipped, "interrupted")
	r.at(0.2, report.Event{Payload: report.Finished{Result: &report.Result{Objects: r.objects, Summary: report.Summary{Skipped: 1, Seconds: 0.2}, Interrupted: "SIGTERM", ExitCode: 1}}})
	return r.events
}

func show(t *testing.T, o Options, events []report.Event) (out, err string) {
	t.Helper()
	var x, y bytes.Buffer
	o.Out, o.Err = &x, &y
	p, e := New(o)
	if e != nil {
		t.Fatal(e)
	}
	for _, ev := range events {
		p.Event(ev)
	}
	if e := p.Close(); e != nil {
		t.Fatal(e)
	}
	return x.String(), y.String()
}

func TestGolden(t *testing.T) {
	beat, at := 5*time.Second, func() time.Time { return base }
	previous := "brine_exit_code{command=\"apply\",inventory=\"brine/shop\"} 0\nbrine_last_success_timestamp_seconds{command=\"apply\",inventory=\"brine/shop\"} 1700000000\n" +
		"brine_last_success_timestamp_seconds{command=\"apply\",inventory=\"brine/other\"} 1\n"
	for name, test := range map[string]struct {
		o      Options
		events []report.Event
	}{
		"text":             {Options{Heartbeat: beat}, rich("none")},
		"text-verbose":     {Options{Heartbeat: beat, Verbose: true, Diff: true}, rich("none")},
		"text-quiet":       {Options{Heartbeat: beat, Quiet: true}, rich("none")},
		"text-color":       {Options{Heartbeat: beat, Color: true, ErrColor: true, Diff: true}, rich("none")},
		"text-good":        {Options{Heartbeat: beat}, good()},
		"text-interrupted": {Options{Heartbeat: beat}, interrupted()},
		"json":             {Options{Format: "json", Heartbeat: beat}, rich("none")},
		"json-empty":       {Options{Format: "json", Quiet: true}, []report.Event{{Payload: report.Finished{Result: &report.Result{}}}}},
		"events":           {Options{Format: "events"}, rich("none")},
		"preview":          {Options{Diff: true}, rich("server")},
		"preview-color":    {Options{Diff: true, Color: true}, rich("server")},
		"preview-json":     {Options{Format: "json"}, rich("server")},
		"preview-markdown": {Options{Format: "md", Now: at}, rich("server")},
		"preview-github":   {Options{Format: "github", Now: at}, rich("server")},
		"preview-gitlab":   {Options{Format: "gitlab", Now: at}, rich("server")},
		"junit":            {Options{Format: "xml", Now: at}, rich("none")},
		"junit-good":       {Options{Format: "xml", Now: at}, good()},
		"metrics":          {Options{Format: "prom", Now: at, Previous: previous}, rich("none")},
		"metrics-good":     {Options{Format: "prom", Now: at, Previous: previous}, good()},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := show(t, test.o, test.events)
			leak(t, out+err)
			golden(t, name+".out", out)
			golden(t, name+".err", err)
		})
	}
}

func leak(t *testing.T, text string) {
	t.Helper()
	for i, v := range []string{valueBefore, valueAfter, "aHVudGVyMi", "hunter2"} {
		if strings.Contains(text, v) {
			t.Errorf("the Secret's value number %d is shown", i)
		}
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if got == "" {
			_ = os.Remove(file)
			return
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil && (!os.IsNotExist(err) || got != "") {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is not what is shown (go test -update writes it anew):\n%s", file, udiff.Unified("want", "got", string(want), got))
	}
}

func TestJSONIsOneDocumentWithoutNulls(t *testing.T) {
	for _, events := range [][]report.Event{rich("none"), {{Payload: report.Finished{Result: &report.Result{}}}}} {
		out, _ := show(t, Options{Format: "json"}, events)
		var doc map[string]any
		if err := json.Unmarshal([]byte(out), &doc); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(out, ": null") {
			t.Error("there is a null in the document")
		}
		for _, f := range []string{"summary", "objects", "errors", "warnings"} {
			if _, ok := doc[f]; !ok {
				t.Errorf("no %q in the document", f)
			}
		}
	}
}

func TestEventsAreOneObjectALineAndEndWithTheResult(t *testing.T) {
	var w lines
	p, err := New(Options{Format: "events", Out: &w})
	if err != nil {
		t.Fatal(err)
	}
	events := rich("none")
	for i, e := range events {
		p.Event(e)
		if len(w) != i+1 {
			t.Fatalf("event %d was not written at once: %d writes", i, len(w))
		}
	}
	p.Event(report.Event{Payload: report.Warning{Message: "late"}})
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	var last struct {
		Type   string
		Result *report.Result
	}
	for i, line := range w {
		if strings.Count(line, "\n") != 1 || !json.Valid([]byte(line)) {
			t.Errorf("line %d is not one JSON object", i)
		}
	}
	if err := json.Unmarshal([]byte(w[len(w)-1]), &last); err != nil || last.Type != "finished" || len(last.Result.Objects) != 11 {
		t.Errorf("the last line does not hold the result: %v", err)
	}
}

// lines keeps each write.
type lines []string

func (l *lines) Write(p []byte) (int, error) {
	*l = append(*l, string(p))
	return len(p), nil
}

func TestWriteErrorsAreToldAtTheEnd(t *testing.T) {
	for _, format := range Formats {
		p, err := New(Options{Format: format, Out: broken{}, Err: &bytes.Buffer{}})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range good() {
			p.Event(e)
		}
		if err := p.Close(); err == nil || !strings.Contains(err.Error(), "broken pipe") {
			t.Errorf("%s: Close says %v", format, err)
		}
	}
	if _, err := New(Options{Format: "yaml"}); err == nil || !strings.Contains(err.Error(), "text, json, events") {
		t.Errorf("an unknown format: %v", err)
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, syscall.EPIPE }
