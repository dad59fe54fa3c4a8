package ready_test

import (
	"context"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"brine/bundle/plan"
	"brine/cmd/brine/clitest"
)

func TestCRDGainsAVersion(t *testing.T) {
	s := clitest.New(t)
	s.Apply(clitest.Documents(clitest.Widgets, clitest.Widget)).Want(t, 0)
	more := clitest.Widgets + `  - name: v2
    served: true
    storage: false
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`
	second := strings.NewReplacer("example.com/v1", "example.com/v2", "name: one", "name: two").Replace(clitest.Widget)
	result := s.Apply(clitest.Documents(second, more, clitest.Widget)).Want(t, 0)
	result.Did(t, "Widget", "two", plan.Created)
	result.Did(t, "Widget", "one", plan.Unchanged)
	s.Destroy().Want(t, 0)
}

func TestRunningJobIsNotReady(t *testing.T) {
	s := clitest.New(t)
	running := strings.Replace(clitest.Job("running", "backoffLimit: 1"), "      restartPolicy", "      schedulingGates: [{name: example.com/wait}]\n      restartPolicy", 1)
	result := s.Apply(clitest.Documents(running, clitest.Job("suspended", "suspend: true"), clitest.Job("done", "backoffLimit: 1")), "--timeout=20s").Want(t, 4)
	if o := result.Object(t, "Job", "running"); o.Ready != "not-ready" || !strings.Contains(o.Reason, "0 of 1 succeeded") {
		t.Errorf("the running one is %q: %s", o.Ready, o.Reason)
	}
	for _, name := range []string{"suspended", "done"} {
		if o := result.Object(t, "Job", name); o.Ready != "ready" {
			t.Errorf("%s is %q: %s", name, o.Ready, o.Reason)
		}
	}
}

func TestJobDeletedByItsTTL(t *testing.T) {
	s := clitest.New(t)
	text := clitest.Job("short-lived", "ttlSecondsAfterFinished: 0")
	result := s.Apply(clitest.Documents(text, clitest.ConfigMap("after", clitest.DependsOn("batch/namespaces/{ns}/Job/short-lived")))).Want(t, 0)
	result.Did(t, "ConfigMap", "after", plan.Created)
	s.Eventually("the Job is gone", func() bool { return s.Live("batch/v1/jobs", s.NS, "short-lived") == nil })
	// One that is deleted before it has finished is no success.
	gated := strings.Replace(clitest.Job("deleted", "ttlSecondsAfterFinished: 0"), "      restartPolicy", "      schedulingGates: [{name: example.com/wait}]\n      restartPolicy", 1)
	go func() {
		for s.Context().Err() == nil {
			background := metav1.DeletePropagationBackground
			if s.Resources("batch/v1/jobs").Namespace(s.NS).Delete(context.Background(), "deleted", metav1.DeleteOptions{PropagationPolicy: &background}) == nil {
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
	}()
	if o := s.Apply(gated).Want(t, 4).Object(t, "Job", "deleted"); o.Ready != "failed" {
		t.Errorf("the deleted one is %q: %s", o.Ready, o.Reason)
	}
}

// Somebody else suspends a Job, as a queue does: it is waited for, unless the bundle asks for that itself. One
// with generateName is waited for under the name that the server gave it.
func TestJobThatSomebodyElseSuspends(t *testing.T) {
	s := clitest.New(t)
	gated := strings.Replace(clitest.Job("queued", "backoffLimit: 1"), "      restartPolicy", "      schedulingGates: [{name: example.com/wait}]\n      restartPolicy", 1)
	s.Apply(gated, "--wait=applied").Want(t, 0)
	s.Merge("batch/v1/jobs", s.NS, "queued", `{"spec": {"suspend": true}}`)
	held := s.Apply(gated, "--timeout=3s").Want(t, 4)
	if o := held.Object(t, "Job", "queued"); o.Ready != "not-ready" || !strings.HasSuffix(o.Reason, ": suspended, which the bundle does not ask for") {
		t.Errorf("it is %q: %s", o.Ready, o.Reason)
	}
	generated := strings.Replace(clitest.Job("name", "backoffLimit: 1"), "{name: name,", "{generateName: once-,", 1)
	out := s.Apply(clitest.Documents(generated, gated), "--allow-generate-name", "--timeout=20s").Want(t, 4)
	if o := out.Object(t, "Job", ""); o.Ready != "ready" {
		t.Errorf("the one with generateName is %q: %s", o.Ready, o.Reason)
	}
}
