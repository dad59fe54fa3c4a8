package apply_test

import (
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"brine/bundle/cluster/clustertest"
	"brine/bundle/plan"
	"brine/cmd/brine/clitest"
)

func jobOf(image string) string {
	return strings.Replace(clitest.Job("once", "ttlSecondsAfterFinished: 0"), "pause:3.10", "pause:"+image, 1)
}

func expired(s *clitest.Fixture, name string) {
	s.Helper()
	s.Eventually("the Job is gone", func() bool { return s.Live("batch/v1/jobs", s.NS, name) == nil })
}

func deleteJob(s *clitest.Fixture, name string) {
	s.Helper()
	background := metav1.DeletePropagationBackground
	if err := s.Resources("batch/v1/jobs").Namespace(s.NS).Delete(s.Context(), name, metav1.DeleteOptions{PropagationPolicy: &background}); err != nil {
		s.Fatal(err)
	}
	expired(s, name)
}

// A Job that completed and was removed by its TTL runs again only for another spec.
func TestCompletedJobStaysDone(t *testing.T) {
	s := clitest.New(t)
	after := clitest.ConfigMap("after", clitest.DependsOn("batch/namespaces/{ns}/Job/once"))
	text := clitest.Documents(jobOf("3.9"), after)
	s.Apply(text).Want(t, 0).Did(t, "Job", "once", plan.Created)
	expired(s, "once")

	p := s.Proxied()
	if o := s.Apply(text).Want(t, 0).Did(t, "Job", "once", plan.Unchanged); o.Reason != "completed" || o.Ready != "ready" {
		t.Errorf("it is %q: %s", o.Ready, o.Reason)
	}
	if w := p.Writes(); len(w) != 0 {
		t.Errorf("it wrote %v", clitest.Describe(w))
	}
	if o := s.Preview(text).Want(t, 0).Did(t, "Job", "once", plan.Unchanged); o.Reason != "completed" || o.Verified != "inventory (completed)" {
		t.Errorf("the preview says %q, verified: %q", o.Reason, o.Verified)
	}
	if o := s.Status().Want(t, 0).Object(t, "Job", "once"); o.Reason != "completed" || o.Ready != "ready" {
		t.Errorf("the status is %q: %s", o.Ready, o.Reason)
	}
	file := filepath.Join(t.TempDir(), "plan.json")
	s.Preview(text, "--plan-out", file).Want(t, 0)
	s.Apply(text, "--plan", file).Want(t, 0).Did(t, "Job", "once", plan.Unchanged)
	s.Apply(clitest.Documents(strings.Replace(jobOf("3.9"), "{name: once,", "{name: once, labels: {chart: two},", 1), after)).Want(t, 0).Did(t, "Job", "once", plan.Unchanged)

	s.Preview(clitest.Documents(jobOf("3.10"), after)).Want(t, 0).Did(t, "Job", "once", plan.Created)
	s.Apply(clitest.Documents(jobOf("3.10"), after)).Want(t, 0).Did(t, "Job", "once", plan.Created)
	expired(s, "once")
	s.Rollback().Want(t, 0).Did(t, "Job", "once", plan.Created)
	expired(s, "once")
	if did := s.Destroy().Want(t, 0); len(did.Result.Warnings) > 0 {
		t.Errorf("it warns: %q", did.Result.Warnings)
	}
}

func TestJobThatWasNotSeenCompleteRunsAgain(t *testing.T) {
	s := clitest.New(t)
	gated := strings.Replace(jobOf("3.9"), "      restartPolicy", "      schedulingGates: [{name: example.com/wait}]\n      restartPolicy", 1)
	s.Apply(gated, "--wait=applied").Want(t, 0)
	deleteJob(s, "once")
	s.Status().Want(t, 4)
	s.Apply(gated, "--wait=applied").Want(t, 0).Did(t, "Job", "once", plan.Created)
	deleteJob(s, "once")
	// Nor does one without a TTL stay done that somebody deleted.
	s.Apply(clitest.Job("kept", "backoffLimit: 1")).Want(t, 0)
	deleteJob(s, "kept")
	s.Apply(clitest.Job("kept", "backoffLimit: 1")).Want(t, 0).Did(t, "Job", "kept", plan.Created)
}

// A run that is killed before it recorded that a Job completed leaves no memory of
// an earlier spec.
func TestJobOfAKilledRunRunsAgain(t *testing.T) {
	s := clitest.New(t)
	s.Apply(jobOf("3.9")).Want(t, 0)
	expired(s, "once")
	p := s.Proxied()
	var ran atomic.Bool // requests are concurrent
	p.Intercept(func(r clustertest.Request) clustertest.Action {
		if r.IsWrite() && strings.Contains(r.Path, "/jobs") {
			ran.Store(true)
		}
		if ran.Load() && r.IsWrite() && strings.Contains(r.Path, "-fingerprints-") {
			return clustertest.Action{Status: http.StatusForbidden}
		}
		return clustertest.Action{}
	})
	s.Apply(jobOf("3.10")).Want(t, 0).Prints(t, "fingerprints").Did(t, "Job", "once", plan.Created)
	expired(s, "once")
	p.Intercept(nil)
	s.Apply(jobOf("3.9")).Want(t, 0).Did(t, "Job", "once", plan.Created)
	expired(s, "once")
	s.Apply(jobOf("3.9")).Want(t, 0).Did(t, "Job", "once", plan.Unchanged)
}

func TestJobThatRunsAlways(t *testing.T) {
	always := func(name, spec string) string {
		return strings.Replace(clitest.Job(name, spec), "metadata: {", "metadata: {annotations: {brine.dev/run: always}, ", 1)
	}
	s := clitest.New(t)
	text := clitest.Documents(always("stands", "backoffLimit: 1"), always("once", "ttlSecondsAfterFinished: 0"))
	first := s.Apply(text).Want(t, 0)
	first.Did(t, "Job", "stands", plan.Created)
	expired(s, "once")
	s.Status().Want(t, 0)
	uid := s.Live("batch/v1/jobs", s.NS, "stands").GetUID()
	previewed := s.Preview(text).Want(t, 0)
	previewed.Did(t, "Job", "stands", plan.Recreated)
	previewed.Did(t, "Job", "once", plan.Created)
	again := s.Apply(text).Want(t, 0)
	if o := again.Did(t, "Job", "stands", plan.Recreated); o.Ready != "ready" {
		t.Errorf("it is %q: %s", o.Ready, o.Reason)
	}
	again.Did(t, "Job", "once", plan.Created)
	expired(s, "once")
	if s.Live("batch/v1/jobs", s.NS, "stands").GetUID() == uid {
		t.Error("it is the same Job as before")
	}
	file := filepath.Join(t.TempDir(), "plan.json")
	s.Preview(text, "--plan-out", file).Want(t, 0)
	s.Apply(text, "--plan", file).Want(t, 0).Did(t, "Job", "stands", plan.Recreated)
	s.Apply(clitest.ConfigMap("a", "annotations: {brine.dev/run: always}")).Want(t, 3).Prints(t, "only a Job can have this annotation")
	s.Apply(strings.Replace(text, "run: always", "run: never", 1)).Want(t, 3).Prints(t, `invalid value "never": use always`)
}

// An object that nobody waits for holds up neither its dependents, nor pruning, nor
// the end of the run.
func TestObjectThatIsNotWaitedFor(t *testing.T) {
	s := clitest.New(t)
	never := strings.Replace(clitest.Job("never", "backoffLimit: 1"), "      restartPolicy", "      schedulingGates: [{name: example.com/wait}]\n      restartPolicy", 1)
	never = strings.Replace(never, "metadata: {", "metadata: {annotations: {brine.dev/wait: skip}, ", 1)
	after := clitest.ConfigMap("after", clitest.DependsOn("batch/namespaces/{ns}/Job/never"))
	s.Apply(clitest.ConfigMap("old")).Want(t, 0)
	for range 2 { // also when it is unchanged
		got := s.Apply(clitest.Documents(never, after)).Want(t, 0)
		if o := got.Object(t, "Job", "never"); o.Ready != "" || !strings.HasPrefix(o.Reason, "not waited for: running: 0 of 1 succeeded") && !strings.HasPrefix(o.Reason, "not waited for: not started") {
			t.Errorf("it is %q: %s", o.Ready, o.Reason)
		}
	}
	s.Exists("v1/configmaps", "after")
	s.Missing("v1/configmaps", "old")
	s.Apply(strings.Replace(never, "wait: skip", "wait: never", 1)).Want(t, 3).Prints(t, `invalid value "never": use skip`)
}
