package apply

import (
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"brine/bundle"
	"brine/bundle/bundletest"
	"brine/bundle/cluster"
	"brine/bundle/order"
	"brine/bundle/plan"
	"brine/bundle/ready"
	"brine/bundle/report"
	"brine/bundle/write"
	"brine/inventory"
)

// What a run makes of what it sees, without a cluster: the scheduler alone.

type judged struct {
	*scheduler
	events []report.Event
}

// judge is a scheduler with objects that a run has just written; before is what they were.
func judging(nodes ...*node) *judged {
	j := &judged{}
	j.scheduler = &scheduler{
		Input:     Input{Record: report.New(report.Header{}, func(e report.Event) { j.events = append(j.events, e) }), Plan: &plan.Plan{}, Writer: &write.Writer{Inventory: &inventory.Inventory{}}, Client: &cluster.Client{}},
		unwatched: map[string]bool{}, said: ready.SaidBy{}, nodes: nodes, dependents: make([][]dependent, len(nodes)),
	}
	for i, n := range nodes {
		n.index = i
		j.Plan.Steps = append(j.Plan.Steps, n.Step)
		j.counts[kindOf(n)][n.state]++
	}
	return j
}

func written(t *testing.T, action plan.Action, before, after string, rules *ready.Rules) (*node, *unstructured.Unstructured) {
	t.Helper()
	live := bundletest.Object(t, after)
	o := &bundle.Object{ID: bundle.IDOf(live), GVK: live.GroupVersionKind(), Content: live}
	n := &node{
		Outcome: Outcome{Step: &plan.Step{ID: o.ID, GVK: o.GVK, Object: o, Action: action, Member: action == plan.Unchanged}, Result: &report.ObjectResult{Action: action}},
		state:   acting, rules: rules, resource: cluster.Resource{Status: true}, stored: live,
	}
	if n.Latest = live; before != "" {
		n.Live = bundletest.Object(t, before)
	}
	return n, live
}

func deploymentAs(generation, observed, conditions string) string {
	return `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: a, uid: u, generation: ` + generation + `}, spec: {replicas: 1, progressDeadlineSeconds: 60},
  status: {observedGeneration: ` + observed + `, replicas: 2, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1, conditions: [{type: Available, status: "True"}, ` + conditions + `]}}`
}

// A Deployment of one replica goes back to a ReplicaSet that is still there: in the first status
// of its controller its old rollout is past its deadline, as before, and in the next it is through.
func TestFailureFromBeforeTheWrite(t *testing.T) {
	const late = `{type: Progressing, status: "False", reason: ProgressDeadlineExceeded, message: ReplicaSet "web-2" has timed out progressing.}`
	n, stored := written(t, plan.Configured, deploymentAs("2", "2", late), deploymentAs("3", "2", late), nil)
	j := judging(n)
	j.assess(n, stored)
	j.observe(n, bundletest.Object(t, deploymentAs("3", "3", late)), false)
	if open, hanging := j.count(); open != 1 || hanging != 0 {
		t.Fatalf("it is given up at once: state %d, %q", n.state, n.Result.Reason)
	}
	// Where nothing else comes, it is believed.
	n.since = n.since.Add(-time.Minute)
	j.clock()
	if open, hanging := j.count(); open != 0 || hanging != 1 {
		t.Errorf("it is never believed: state %d", n.state)
	}
	through := strings.Replace(deploymentAs("3", "3", `{type: Progressing, status: "True", reason: NewReplicaSetAvailable}`), "replicas: 2", "replicas: 1", 1)
	if j.observe(n, bundletest.Object(t, through), false); n.state != finished {
		t.Errorf("it is not ready: %s", n.Result.Reason)
	}
	// One that the write brought fails at once, and so does one that was not written.
	for action, before := range map[plan.Action]string{plan.Configured: deploymentAs("2", "2", `{type: Progressing, status: "True", reason: NewReplicaSetAvailable}`), plan.Unchanged: deploymentAs("3", "3", late)} {
		n, stored = written(t, action, before, deploymentAs("3", "3", late), nil)
		j = judging(n)
		j.assess(n, stored)
		if j.observe(n, stored, false); n.state != failing {
			t.Errorf("%s: state %d", action, n.state)
		}
	}
}

const (
	pumpUnseen = `{apiVersion: example.com/v1, kind: Pump, metadata: {name: p, namespace: a, uid: u, generation: 1}}`
	pumpLate   = `{apiVersion: example.com/v1, kind: Pump, metadata: {name: p, namespace: a, uid: u, generation: 1}, status: {conditions: [{type: Ready, status: "False", reason: R}]}}`
)

// brine.dev/wait: skip: also the first status is not waited for, nor what it says.
func TestSkippedObjectWithoutStatus(t *testing.T) {
	n, stored := written(t, plan.Created, "", pumpUnseen, &ready.Rules{Skip: true})
	j := judging(n)
	j.assess(n, stored)
	j.observe(n, bundletest.Object(t, pumpLate), false)
	if n.state != finished || n.Result.Ready != "" || n.Result.Reason != "not waited for: has no status yet" {
		t.Errorf("state %d, %q: %s", n.state, n.Result.Ready, n.Result.Reason)
	}
}

// With --wait=applied, what becomes of an object that no other needs is not looked at: neither
// its failure nor its own time limit is the run's.
func TestIdleObjectThatFails(t *testing.T) {
	const late = `{type: Progressing, status: "False", reason: ProgressDeadlineExceeded}`
	limit := time.Second
	for name, see := range map[string]func(*judged, *node){
		"it fails":       func(j *judged, n *node) { j.observe(n, n.stored, false) },
		"it is too slow": func(_ *judged, n *node) { n.since = n.since.Add(-time.Minute) },
		"it is deleted":  func(j *judged, n *node) { j.observe(n, n.stored, true) },
	} {
		n, stored := written(t, plan.Created, "", deploymentAs("1", "1", late), &ready.Rules{Timeout: &limit})
		j := judging(n)
		j.WaitApplied = true
		j.assess(n, stored)
		see(j, n)
		j.clock()
		if _, hanging := j.count(); hanging > 0 {
			j.giveUp()
		}
		if n.Result.Ready != "" || n.Result.Action != plan.Created {
			t.Errorf("%s: %q: %s", name, n.Result.Ready, n.Result.Reason)
		}
		for _, e := range j.events {
			if e.Type() == "ready" {
				t.Errorf("%s: an event says that it is ready", name)
			}
		}
	}
}

// A run that was interrupted before an object had its first status leaves that to the next one.
func TestUnchangedObjectWithoutStatus(t *testing.T) {
	for reconcile, want := range map[string]state{"Succeeded": finished, "Timeout": waiting, "": waiting} {
		n, _ := written(t, plan.Unchanged, pumpUnseen, pumpUnseen, nil)
		j := judging(n)
		j.Writer.Inventory.Members = map[bundle.ID]inventory.Status{n.ID: {Reconcile: reconcile}}
		if _, dropped := j.dropReady()[n.Step]; dropped != (want == finished) {
			t.Errorf("%q: dropped: %v", reconcile, dropped)
		}
		n.wasReady = want == finished
		n.Live = n.stored
		if j.settleUnchanged(n); n.state != want {
			t.Errorf("%q: state %d, %s", reconcile, n.state, n.Result.Reason)
		}
	}
}

// Why something counts as ready that one would not take for it is said.
func TestReasonOfWhatIsReady(t *testing.T) {
	const paused = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: a, generation: 1}, spec: {replicas: 3, paused: true}, status: {observedGeneration: 1}}`
	const reason = "paused: spec.paused holds its rollout (Replicas: 0/3)"
	for _, action := range []plan.Action{plan.Created, plan.Unchanged} {
		n, stored := written(t, action, paused, paused, nil)
		j := judging(n)
		if action == plan.Unchanged {
			n.ready, n.wasReady = j.dropReady()[n.Step], true
			n.Result.Reason = n.Reason
			j.settleUnchanged(n)
		} else {
			j.assess(n, stored)
		}
		if n.state != finished || n.Result.Ready != report.StateReady || n.Result.Reason != reason {
			t.Errorf("%s: %q: %q", action, n.Result.Ready, n.Result.Reason)
		}
		if told := len(j.events) == 1 && j.events[0].Type() == "ready"; told != (action == plan.Created) {
			t.Errorf("%s: the events are %v", action, j.events)
		}
	}
}

// What was ready, and is not any more while others are waited for, is waited for again: all are
// ready at the end, or the run does not say so.
func TestRelapse(t *testing.T) {
	web := func(version, ready string) *unstructured.Unstructured {
		return bundletest.Object(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: a, uid: u, generation: 1, resourceVersion: "`+version+`"}, spec: {replicas: 1, progressDeadlineSeconds: 60},
  status: {observedGeneration: 1, replicas: 1, updatedReplicas: 1, readyReplicas: `+ready+`, availableReplicas: `+ready+`, conditions: [{type: Available, status: "True"}, {type: Progressing, status: "True", reason: NewReplicaSetAvailable}]}}`)
	}
	n, _ := written(t, plan.Created, "", pumpUnseen, nil)
	n.Object.Content, n.stored, n.ID, n.GVK = web("10", "0"), web("10", "0"), bundle.IDOf(web("10", "0")), web("10", "0").GroupVersionKind()
	n.UID = "u"
	other, _ := written(t, plan.Created, "", pumpUnseen, nil)
	other.state, other.needs = blocked, 2
	j := judging(n, other)
	j.byID, j.lastSeen = map[bundle.ID]*node{n.ID: n}, map[schema.GroupKind]time.Time{}
	j.dependents[0] = []dependent{{node: other, need: plan.Need{Want: order.Ready}}}
	see := func(u *unstructured.Unstructured, want state) {
		t.Helper()
		if j.noticed(cluster.Seen{ID: n.ID, Live: u}); n.state != want {
			t.Fatalf("state %d, not %d: %s", n.state, want, n.Result.Reason)
		}
	}
	j.assess(n, n.stored)
	see(web("11", "1"), finished)
	see(web("9", "0"), finished) // a server that is behind
	see(web("12", "0"), waiting)
	if n.Result.Ready != "" || n.Result.Reason != "Available: 0/1" {
		t.Errorf("%q: %s", n.Result.Ready, n.Result.Reason)
	}
	see(web("13", "1"), finished)
	if n.Result.Ready != report.StateReady || other.needs != 1 {
		t.Errorf("%q: %s; the other one needs %d", n.Result.Ready, n.Result.Reason, other.needs)
	}
	j.WaitApplied = true
	see(web("14", "0"), finished)
	j.WaitApplied = false
	// One that the run does not change falls back when what it needs is changed.
	n.Action, n.state, n.Live, n.Member = plan.Unchanged, blocked, web("15", "1"), true
	n.ready, n.wasReady = j.dropReady()[n.Step], true
	j.settleUnchanged(n)
	see(web("15", "1"), finished)
	see(web("16", "0"), waiting)
	see(web("17", "1"), finished)
}

// What was ready, and is gone while others are waited for, is read: it may be there without the
// label that the watch goes by, or be another object by now.
func TestRelapseOfWhatIsGone(t *testing.T) {
	web := func(uid, version, ready string) *unstructured.Unstructured {
		u := bundletest.Object(t, strings.ReplaceAll(deploymentAs("1", "1", `{type: Progressing, status: "True", reason: NewReplicaSetAvailable}`), "uid: u", "uid: "+uid+", resourceVersion: \""+version+"\""))
		_ = unstructured.SetNestedField(u.Object, int64(1), "status", "replicas")
		if ready == "" {
			_ = unstructured.SetNestedField(u.Object, int64(0), "status", "availableReplicas")
		}
		return u
	}
	const gone = "was deleted while it was waited for"
	for name, test := range map[string]struct {
		read   *unstructured.Unstructured
		state  state
		reason string
	}{
		"deleted":                      {nil, lost, gone},
		"without its label":            {web("u", "12", "ready"), finished, ""},
		"created again":                {web("v", "12", "ready"), finished, ""},
		"created again, and not ready": {web("v", "12", ""), waiting, "Available: 0/1"},
	} {
		t.Run(name, func(t *testing.T) {
			n, _ := written(t, plan.Created, "", deploymentAs("1", "1", ""), nil)
			n.stored, n.Latest, n.UID = web("u", "10", "ready"), web("u", "10", "ready"), "u"
			j := judging(n)
			j.byID, j.lastSeen, j.polling = map[bundle.ID]*node{n.ID: n}, map[schema.GroupKind]time.Time{}, map[schema.GroupVersionResource]bool{}
			j.assess(n, n.stored)
			see := func(u *unstructured.Unstructured, want state) {
				t.Helper()
				if j.noticed(cluster.Seen{ID: n.ID, Live: u, Gone: true}); n.state != want {
					t.Fatalf("state %d, not %d: %s", n.state, want, n.Result.Reason)
				}
			}
			see(web("old", "9", "ready"), finished) // what this run has replaced
			j.WaitApplied = true
			see(web("u", "11", "ready"), finished)
			j.WaitApplied = false
			see(web("u", "11", "ready"), waiting)
			if len(j.jobs) != 1 {
				t.Errorf("%d requests begin", len(j.jobs))
			}
			if j.observed(n, test.read, nil); n.state != test.state || n.Result.Reason != test.reason {
				t.Errorf("state %d, %q: %s", n.state, n.Result.Ready, n.Result.Reason)
			}
			if n.state != finished {
				return
			}
			// It is this object that counts from then on.
			see(test.read, waiting)
			if j.observed(n, nil, nil); n.Result.Ready != report.StateFailed || n.Result.Reason != gone {
				t.Errorf("%q: %s", n.Result.Ready, n.Result.Reason)
			}
		})
	}
}

// What cannot be read any more is no longer said to be as it was seen last.
func TestReasonOfWhatCannotBeRead(t *testing.T) {
	n, stored := written(t, plan.Created, "", deploymentAs("1", "0", `{type: Progressing, status: "True"}`), nil)
	j := judging(n)
	j.assess(n, stored)
	j.observed(n, nil, apierrors.NewServiceUnavailable("for a moment"))
	if want := "its controller has not yet seen generation 1 (its status is of 0)"; n.Result.Reason != want {
		t.Errorf("got %q, want %q", n.Result.Reason, want)
	}
	j.observed(n, nil, apierrors.NewUnauthorized("the token has expired"))
	if want := "cannot be read any more: the token has expired"; n.Result.Reason != want {
		t.Errorf("got %q, want %q", n.Result.Reason, want)
	}
	j.observed(n, stored, nil)
	if want := "its controller has not yet seen generation 1 (its status is of 0)"; n.Result.Reason != want {
		t.Errorf("got %q, want %q", n.Result.Reason, want)
	}
}

// The status of a changed custom resource that does not say which generation it is about may be
// the one from before: it is believed once it has changed, or no controller writes one.
func TestStatusFromBeforeTheChange(t *testing.T) {
	db := func(generation, status string) string {
		return `{apiVersion: example.com/v1, kind: Database, metadata: {name: d, namespace: a, uid: u, generation: ` + generation + `}, status: ` + status + `}`
	}
	const was = `{phase: Running}`
	changed := func(stored string) (*judged, *node) {
		n, live := written(t, plan.Configured, db("1", was), stored, nil)
		j := judging(n)
		j.assess(n, live)
		return j, n
	}
	see := func(j *judged, n *node, status string) { j.observe(n, bundletest.Object(t, db("2", status)), false) }
	j, n := changed(db("2", was))
	if see(j, n, was); n.state != waiting || n.Result.Reason != "has no new status yet (counts as ready after 5s without one)" {
		t.Fatalf("state %d: %s", n.state, n.Result.Reason)
	}
	if see(j, n, `{phase: Updating}`); n.state != waiting || n.Result.Reason != "phase is Updating" {
		t.Errorf("state %d: %s", n.state, n.Result.Reason)
	}
	if see(j, n, `{phase: Running, nodes: 3}`); n.state != finished {
		t.Errorf("state %d: %s", n.state, n.Result.Reason)
	}
	j, n = changed(db("2", was))
	n.statusBy = n.statusBy.Add(-time.Minute)
	if j.clock(); n.state != finished || n.Result.Reason != "no new status after 0s, so it counts as ready" {
		t.Errorf("state %d: %s", n.state, n.Result.Reason)
	}
	for name, stored := range map[string]string{
		"only its labels changed": db("1", was), "it says its generation": db("2", `{observedGeneration: 2, phase: Running}`),
		"a condition does": db("2", `{conditions: [{type: Ready, status: "True", observedGeneration: 2}]}`),
		"that of a parent": db("2", `{parents: [{conditions: [{type: Accepted, status: "True", observedGeneration: 2}]}]}`),
	} {
		if _, n = changed(stored); n.state != finished {
			t.Errorf("%s: state %d: %s", name, n.state, n.Result.Reason)
		}
	}
}

// So may be that of an APIService, which has no generation: that its old backend answered says
// nothing of another one.
func TestAvailableFromBeforeTheChange(t *testing.T) {
	served := func(service, condition string) string {
		return `{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1.a, uid: u}, spec: {service: {name: ` + service + `, namespace: a}},
  status: {conditions: [{type: Available, lastTransitionTime: "2025-01-01T00:00:00Z", ` + condition + `}]}}`
	}
	const answers, silent = `status: "True", reason: Passed`, `status: "False", reason: FailedDiscoveryCheck`
	changed := func(service string) (*judged, *node) {
		n, live := written(t, plan.Configured, served("old", answers), served(service, answers), nil)
		j := judging(n)
		j.assess(n, live)
		return j, n
	}
	j, n := changed("new")
	if n.state != waiting || n.Result.Reason != "has no new status yet (counts as ready after 10s without one)" {
		t.Fatalf("state %d: %s", n.state, n.Result.Reason)
	}
	if j.observe(n, bundletest.Object(t, served("new", silent)), false); n.state != waiting || n.Result.Reason != "Available=False FailedDiscoveryCheck" {
		t.Errorf("state %d: %s", n.state, n.Result.Reason)
	}
	if j.observe(n, bundletest.Object(t, strings.Replace(served("new", answers), "2025", "2026", 1)), false); n.state != finished {
		t.Errorf("state %d: %s", n.state, n.Result.Reason)
	}
	j, n = changed("new")
	n.statusBy = n.statusBy.Add(-time.Minute)
	if j.clock(); n.state != finished {
		t.Errorf("it is never believed: %s", n.Result.Reason)
	}
	if _, n = changed("old"); n.state != finished {
		t.Errorf("its service is the same: %s", n.Result.Reason)
	}
}

// What another client puts in the place of what was applied is not what was applied.
func TestObjectOfAnotherUID(t *testing.T) {
	through := func(uid string) string {
		return strings.Replace(strings.Replace(deploymentAs("1", "1", `{type: Progressing, status: "True", reason: NewReplicaSetAvailable}`), "replicas: 2", "replicas: 1", 1), "uid: u", "uid: "+uid, 1)
	}
	for uid, want := range map[string]string{"u": report.StateReady, "another": report.StateFailed} {
		n, stored := written(t, plan.Created, "", deploymentAs("1", "0", `{type: Progressing, status: "True"}`), nil)
		j := judging(n)
		j.assess(n, stored)
		if j.observe(n, bundletest.Object(t, through(uid)), false); n.Result.Ready != want {
			t.Errorf("uid %s: %q: %s", uid, n.Result.Ready, n.Result.Reason)
		}
	}
}

// A Job that its TTL removed is what it was when it was deleted: its end may come with the event
// of the deletion only, or after it was seen to fail.
func TestLastStateOfARemovedJob(t *testing.T) {
	job := func(version, conditions string) *unstructured.Unstructured {
		return bundletest.Object(t, `{apiVersion: batch/v1, kind: Job, metadata: {name: once, namespace: a, uid: u, resourceVersion: "`+version+`"}, spec: {ttlSecondsAfterFinished: 0},
  status: {startTime: "2025-01-01T00:00:00Z", active: 1, conditions: [`+conditions+`]}}`)
	}
	const complete, failure = `{type: Complete, status: "True"}`, `{type: Failed, status: "True", reason: BackoffLimitExceeded}`
	for name, test := range map[string]struct {
		changed, deleted, state, reason string
	}{
		"complete":             {"", complete, report.StateReady, "complete, removed after its ttlSecondsAfterFinished"},
		"failed":               {"", failure, report.StateFailed, "Failed=True BackoffLimitExceeded"},
		"failed, and was seen": {failure, failure, report.StateFailed, "Failed=True BackoffLimitExceeded"},
		"not seen to end":      {"", "", report.StateFailed, "was deleted before its end was seen; it has ttlSecondsAfterFinished, so it may have finished"},
	} {
		t.Run(name, func(t *testing.T) {
			n, _ := written(t, plan.Created, "", pumpUnseen, nil)
			n.stored, n.Latest, n.UID = job("10", ""), job("10", ""), "u"
			n.ID, n.GVK = bundle.IDOf(n.stored), n.stored.GroupVersionKind()
			j := judging(n)
			j.byID, j.lastSeen = map[bundle.ID]*node{n.ID: n}, map[schema.GroupKind]time.Time{}
			j.assess(n, n.stored)
			if test.changed != "" {
				j.noticed(cluster.Seen{ID: n.ID, Live: job("11", test.changed)})
			}
			j.noticed(cluster.Seen{ID: n.ID, Live: job("12", test.deleted), Gone: true})
			if j.observed(n, nil, nil); n.Result.Ready != test.state || n.Result.Reason != test.reason {
				t.Errorf("%q: %s", n.Result.Ready, n.Result.Reason)
			}
			if n.SeenCompleted != (test.deleted == complete) {
				t.Errorf("seen completed: %v", n.SeenCompleted)
			}
		})
	}
}
