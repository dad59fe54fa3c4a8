// Package outputtest has runs for the tests of printers, and compares with golden files.
package outputtest

import (
	"bytes"
	"flag"
	"fmt"
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
	"brine/cmd/brine/output/wording"
)

// LargePreview is a preview of 300 objects, one of which tries to break out of the page.
func LargePreview() *report.Result {
	r := &report.Result{
		Command: "preview", DryRun: "server", Inventory: report.Inventory{Namespace: "shop", Name: "all", ID: "all-1"},
		Warnings: []string{"careful </script><script>alert(1)</script>"}, Errors: []string{"bad.yaml:3: spec.x: unknown"},
		MissingRights: []string{"patch deployments.apps in namespace shop"}, ExitCode: report.ExitFailed,
	}
	actions := []plan.Action{plan.Created, plan.Configured, plan.Pruned, plan.Unchanged, plan.Recreated}
	for i := range 300 {
		o := &report.ObjectResult{
			Group: "apps", Version: "v1", Kind: "Deployment", Namespace: fmt.Sprintf("ns-%d", i%7), Name: fmt.Sprintf("app-%03d", i),
			Action: actions[i%len(actions)], Verified: "server", Source: bundle.Source{File: "all.yaml", Line: i + 1},
		}
		if i%3 == 0 {
			o.Group, o.Kind = "", "ConfigMap"
		}
		if i%10 == 0 {
			o.Namespace, o.Kind, o.Group = "", "Namespace", ""
		}
		switch o.Action {
		case plan.Created:
			o.Diff = "--- /dev/null\n+++ applied\n@@ -0,0 +1,400 @@\n"
			for n := range 400 {
				o.Diff += fmt.Sprintf("+line %d of object %d: %x\n", n, i, i*n*7919)
			}
			o.Verified = "server (surrogate namespace)"
		case plan.Configured:
			o.Diff = fmt.Sprintf("--- live\n+++ applied\n@@ -1,3 +1,3 @@\n kind: Deployment\n-  replicas: %d\n+  replicas: %d\n", i, i+1)
			o.Changes = []diff.Change{{Path: "spec.replicas", Old: i, New: i + 1}}
		}
		if i > 0 {
			on := r.Objects[(i-1)/2]
			o.Needs = []report.Need{{Reference: bundle.ReferTo(on.ID()), Want: "applied", Reason: "tree"}}
		}
		r.Objects = append(r.Objects, o)
	}
	evil := r.Objects[1]
	evil.Name, evil.Reason, evil.Verified = `"><img src=x onerror=alert(1)>`, "</details></script><script>alert(2)</script>", "not verified: <b>why</b>"
	evil.Diff = "--- live\n+++ applied\n-</pre><script>alert(3)</script>\n"
	r.Summary = report.Summary{Created: 60, Configured: 60, Pruned: 60, Unchanged: 60, Recreated: 60, Requests: map[string]int{"patch": 300}}
	return r
}

var update = flag.Bool("update", false, "write the golden files again")

// The Secret in the run and its value before and after; leak looks for them.
const (
	valueBefore = "hunter2-before"
	valueAfter  = "hunter2-after"
)

// Base is when the runs begin.
var Base = time.Date(2026, 7, 1, 1, 2, 3, 0, time.UTC)

// Run is a made-up run that has all there is: every action, retries, warnings,
// late, failed and skipped objects, a Secret.
type Run struct {
	Preview bool
	Events  []report.Event
	Objects []*report.ObjectResult
}

// Object adds an object.
func (r *Run) Object(group, version, kind, namespace, name string, line int) *report.ObjectResult {
	o := &report.ObjectResult{Group: group, Version: version, Kind: kind, Namespace: namespace, Name: name}
	if line > 0 {
		o.Source = bundle.Source{File: "bundle.yaml", Line: line}
	}
	r.Objects = append(r.Objects, o)
	return o
}

// At adds an event; the object is copied, as it is at that time.
func (r *Run) At(seconds float64, e report.Event) {
	e.Elapsed = time.Duration(seconds * float64(time.Second))
	e.Time = Base.Add(e.Elapsed)
	e.Total, e.Run, e.Preview = 11, "r1", r.Preview
	for _, o := range r.Objects {
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
	r.Events = append(r.Events, e)
}

// Acted adds the event that the server answered.
func (r *Run) Acted(seconds float64, o *report.ObjectResult, a plan.Action, reason string) {
	o.Action, o.Reason, o.ActedAt = a, reason, seconds
	r.At(seconds, report.Event{Payload: report.Acted{Object: o}})
}

func secret(value string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret",
		"metadata":   map[string]any{"name": "login", "namespace": "shop"},
		"stringData": map[string]any{"password": value, "user": "admin-" + valueBefore},
	}}
}

// RichRun is the run; dryRun is "none" or "server".
func RichRun(dryRun string) []report.Event {
	r := &Run{Preview: dryRun != "none"}
	command := "apply"
	if dryRun != "none" {
		command = "preview"
	}
	header := &report.Result{
		APIVersion: "brine.dev/v1", Kind: "Result", Command: command, DryRun: report.DryRun(dryRun),
		Inventory: report.Inventory{Namespace: "brine", Name: "shop", ID: "shop-1"},
	}
	r.At(0, report.Event{Payload: report.Started{Result: header}})
	ns := r.Object("", "v1", "Namespace", "", "shop", 1)
	login := r.Object("", "v1", "Secret", "shop", "login", 6)
	settings := r.Object("", "v1", "ConfigMap", "shop", "settings", 14)
	web := r.Object("apps", "v1", "Deployment", "shop", "web", 25)
	db := r.Object("apps", "v1", "StatefulSet", "shop", "db", 60)
	migrate := r.Object("batch", "v1", "Job", "shop", "migrate", 90)
	thing := r.Object("example.com", "v1", "Thing", "shop", "a", 120)
	hook := r.Object("", "v1", "Service", "shop", "hook", 130)
	after := r.Object("example.com", "v1", "Thing", "shop", "b", 140)
	old := r.Object("", "v1", "ConfigMap", "shop", "old", 0)
	kept := r.Object("", "v1", "PersistentVolumeClaim", "shop", "data", 0)
	web.Needs = []report.Need{{Reference: bundle.Reference{Kind: "Namespace", Name: "shop"}, Want: "applied", Reason: "namespace shop"}}

	r.At(0.1, report.Event{Payload: report.Acting{Object: ns}})
	ns.Ready = "ready"
	r.Acted(0.2, ns, plan.Unchanged, "")
	r.At(0.2, report.Event{Payload: report.BecameReady{Object: ns}})
	d := diff.Objects(secret(valueBefore), secret(valueAfter), nil)
	login.Diff, login.Changes, login.Verified = d.Unified, d.Changes, "server"
	login.Ready = "ready"
	r.Acted(0.25, login, plan.Configured, "")
	settings.Diff, settings.Verified = "--- live\n+++ /dev/null\n@@ -1,2 +1,2 @@\n a: 1\n-b: 2\n+b: 3\n", "server"
	settings.Ready = "ready"
	r.Acted(0.3, settings, plan.Recreated, "field is immutable when `immutable` is set")
	web.Diff, web.Verified = "--- /dev/null\n+++ applied\n@@ -0,0 +1,2 @@\n+apiVersion: apps/v1\n+kind: Deployment\n", "server (surrogate namespace)"
	r.Acted(0.42, web, plan.Created, "")
	r.At(0.5, report.Event{Payload: report.Waiting{Object: web, Reason: "Available: 0/1"}})
	r.Acted(0.6, db, plan.Created, "")
	r.At(0.6, report.Event{Payload: report.Waiting{Object: db, Reason: "0 of 1 ready"}})
	r.At(0.7, report.Event{Payload: report.Retrying{Object: hook, Error: "etcdserver: leader changed", Attempt: 1}})
	r.At(0.9, report.Event{Payload: report.Retrying{Object: hook, Error: "etcdserver: leader changed", Attempt: 2}})
	hook.Ready = "ready"
	r.Acted(1.1, hook, plan.Created, "")
	r.At(1.1, report.Event{Payload: report.BecameReady{Object: hook}})
	r.At(1.2, report.Event{Payload: report.Warning{Message: "policy/v1beta1 PodDisruptionBudget is deprecated in v1.21+"}})
	r.At(1.2, report.Event{Payload: report.Warning{Message: "policy/v1beta1 PodDisruptionBudget is deprecated in v1.21+"}})
	r.Acted(1.4, migrate, plan.Created, "")
	thing.Error = "apply patch: the server refused it: spec.size: Invalid value: 0: must be positive\nset spec.size to 1 or more"
	r.Acted(1.5, thing, plan.Failed, "")
	r.Acted(1.5, after, plan.Skipped, "needs Thing.example.com shop/a, which failed")
	if dryRun == "none" {
		migrate.Ready = "failed"
		migrate.Why = []string{"Pod shop/migrate-x: container migrate: exit code 1", "its last log line: \x1b[31mno such table\x1b[0m"}
		r.At(3.1, report.Event{Payload: report.NotReady{Object: migrate, Reason: "Failed: BackoffLimitExceeded: Job has reached the specified backoff limit"}})
		migrate.Reason = "Failed: BackoffLimitExceeded: Job has reached the specified backoff limit"
		r.At(8, report.Event{Payload: report.Waiting{Object: db, Reason: "0 of 1 ready"}})
		pending := []report.Pending{{Object: web.ID(), Reason: "Available: 0/1", Since: Base.Add(500 * time.Millisecond)}}
		for range 6 {
			pending = append(pending, report.Pending{Object: db.ID(), Reason: "0 of 1 ready", Since: Base.Add(600 * time.Millisecond)})
		}
		r.At(10.6, report.Event{Payload: report.Heartbeat{Pending: pending}})
		r.At(11, report.Event{Payload: report.Heartbeat{Pending: pending}}) // too soon after the last
		db.Ready = "ready"
		r.At(12, report.Event{Payload: report.BecameReady{Object: db}})
		r.At(15, report.Event{Payload: report.Waiting{Object: web, Reason: "Available=False MinimumReplicasUnavailable"}})
		web.Ready, web.Reason = "not-ready", "Available=False MinimumReplicasUnavailable: Deployment does not have minimum availability."
		web.Why = []string{"Pod shop/web-5d: container app is waiting: ImagePullBackOff"}
		r.At(20, report.Event{Payload: report.NotReady{Object: web, Reason: web.Reason}})
	}
	old.Diff, old.Verified = "--- live\n+++ /dev/null\n@@ -1 +0,0 @@\n-apiVersion: v1\n", "server"
	r.Acted(20.1, old, plan.Pruned, "no longer in the bundle")
	r.At(20.1, report.Event{Payload: report.Waiting{Object: old, Reason: "held by finalizer example.com/x"}})
	r.At(20.3, report.Event{Payload: report.BecameReady{Object: old}})
	r.Acted(20.4, kept, plan.Detached, "annotation client.lifecycle.config.k8s.io/deletion: detach")

	result := *header
	result.Objects = r.Objects
	result.Summary = report.Summary{
		Created: 4, Configured: 1, Unchanged: 1, Recreated: 1, Pruned: 1, Detached: 1, Skipped: 1, Failed: 1,
		Ready: 5, NotReady: 2, Requests: map[string]int{"patch": 9, "list": 4, "delete": 2, "watch": 2}, Seconds: 20.5,
	}
	if dryRun != "none" {
		result.Summary.Ready, result.Summary.NotReady = 0, 0
		name := func(o *report.ObjectResult) []bundle.Reference {
			return []bundle.Reference{bundle.ReferTo(o.ID())}
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
	r.At(20.5, report.Event{Payload: report.Finished{Result: &result}})
	return r.Events
}

// GoodRun is a run without anything to complain about.
func GoodRun() []report.Event {
	r := &Run{}
	o := r.Object("apps", "v1", "Deployment", "shop", "web", 25)
	r.At(0, report.Event{Payload: report.Started{}})
	r.Acted(0.1, o, plan.Created, "")
	o.Ready = "ready"
	r.At(1, report.Event{Payload: report.BecameReady{Object: o}})
	r.At(1, report.Event{Payload: report.Finished{Result: &report.Result{Objects: r.Objects, Summary: report.Summary{Created: 1, Ready: 1, Seconds: 1}}}})
	return r.Events
}

// InterruptedRun is a run that a signal ended, and that had nothing done yet.
func InterruptedRun() []report.Event {
	r := &Run{}
	r.At(0, report.Event{Payload: report.Started{}})
	o := r.Object("apps", "v1", "Deployment", "shop", "web", 25)
	r.Acted(0.1, o, plan.Skipped, "interrupted")
	r.At(0.2, report.Event{Payload: report.Finished{Result: &report.Result{Objects: r.Objects, Summary: report.Summary{Skipped: 1, Seconds: 0.2}, Interrupted: "SIGTERM", ExitCode: 1}}})
	return r.Events
}

// CheckNoSecret looks for the values of the Secret in RichRun.
func CheckNoSecret(t *testing.T, text string) {
	t.Helper()
	for i, v := range []string{valueBefore, valueAfter, "aHVudGVyMi", "hunter2"} {
		if strings.Contains(text, v) {
			t.Errorf("the Secret's value number %d is shown", i)
		}
	}
}

// CompareGolden compares a text with a file of testdata; -update writes it.
func CompareGolden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if got == "" {
			_ = os.Remove(file)
			return
		}
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil && (!os.IsNotExist(err) || got != "") {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is not what is shown (go test -update writes it again):\n%s", file, udiff.Unified("want", "got", string(want), got))
	}
}

// Show is what a printer writes of some events: to Out, and to Err.
func Show[P wording.Printer](t *testing.T, create func(wording.Options) P, o wording.Options, events []report.Event) (out, err string) {
	t.Helper()
	var x, y bytes.Buffer
	o.Out, o.Err = &x, &y
	p := create(o)
	for _, e := range events {
		p.Event(e)
	}
	if e := p.Close(); e != nil {
		t.Fatal(e)
	}
	return x.String(), y.String()
}

// BrokenWriter is a writer whose reader is gone.
type BrokenWriter struct{}

func (BrokenWriter) Write([]byte) (int, error) { return 0, syscall.EPIPE }

// Object is the result of an object.
func Object(kind, name string, a plan.Action) *report.ObjectResult {
	return &report.ObjectResult{Version: "v1", Kind: kind, Namespace: "shop", Name: name, Action: a, StartedAt: 1, ActedAt: 1.5}
}
