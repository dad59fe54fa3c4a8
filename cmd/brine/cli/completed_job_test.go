package cli

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"brine/bundle/cluster/clustertest"
	"brine/bundle/plan"
)

func jobOf(image string) string {
	return strings.Replace(job("once", "ttlSecondsAfterFinished: 0"), "pause:3.10", "pause:"+image, 1)
}

func (s *fixture) expired(name string) {
	s.Helper()
	s.eventually("the Job is gone", func() bool { return s.live("batch/v1/jobs", s.ns, name) == nil })
}

func (s *fixture) deleteJob(name string) {
	s.Helper()
	background := metav1.DeletePropagationBackground
	if err := s.resources("batch/v1/jobs").Namespace(s.ns).Delete(s.Context(), name, metav1.DeleteOptions{PropagationPolicy: &background}); err != nil {
		s.Fatal(err)
	}
	s.expired(name)
}

// A Job that completed and was removed by its TTL runs again only for another spec.
func TestCompletedJobStaysDone(t *testing.T) {
	s := newFixture(t)
	after := configMap("after", dependsOn("batch/namespaces/{ns}/Job/once"))
	text := documents(jobOf("3.9"), after)
	s.apply(text).want(t, 0).did(t, "Job", "once", plan.Created)
	s.expired("once")

	p := s.proxied()
	if o := s.apply(text).want(t, 0).did(t, "Job", "once", plan.Unchanged); o.Reason != "completed" || o.Ready != "ready" {
		t.Errorf("it is %q: %s", o.Ready, o.Reason)
	}
	if w := p.Writes(); len(w) != 2 { // the lock
		t.Errorf("it wrote %v", describe(w))
	}
	if o := s.preview(text).want(t, 0).did(t, "Job", "once", plan.Unchanged); o.Reason != "completed" || o.Verified != "inventory (completed)" {
		t.Errorf("the preview says %q, verified: %q", o.Reason, o.Verified)
	}
	if o := s.status().want(t, 0).object(t, "Job", "once"); o.Reason != "completed" || o.Ready != "ready" {
		t.Errorf("the status is %q: %s", o.Ready, o.Reason)
	}
	file := filepath.Join(t.TempDir(), "plan.json")
	s.preview(text, "--plan-out", file).want(t, 0)
	s.apply(text, "--plan", file).want(t, 0).did(t, "Job", "once", plan.Unchanged)
	s.apply(documents(strings.Replace(jobOf("3.9"), "{name: once,", "{name: once, labels: {chart: two},", 1), after)).want(t, 0).did(t, "Job", "once", plan.Unchanged)

	s.preview(documents(jobOf("3.10"), after)).want(t, 0).did(t, "Job", "once", plan.Created)
	s.apply(documents(jobOf("3.10"), after)).want(t, 0).did(t, "Job", "once", plan.Created)
	s.expired("once")
	s.rollback().want(t, 0).did(t, "Job", "once", plan.Created)
	s.expired("once")
	if did := s.destroy().want(t, 0); len(did.result.Warnings) > 0 {
		t.Errorf("it warns: %q", did.result.Warnings)
	}
}

func TestJobThatWasNotSeenCompleteRunsAgain(t *testing.T) {
	s := newFixture(t)
	gated := strings.Replace(jobOf("3.9"), "      restartPolicy", "      schedulingGates: [{name: example.com/wait}]\n      restartPolicy", 1)
	s.apply(gated, "--wait=applied").want(t, 0)
	s.deleteJob("once")
	s.status().want(t, 4)
	s.apply(gated, "--wait=applied").want(t, 0).did(t, "Job", "once", plan.Created)
	s.deleteJob("once")
	// Nor does one without a TTL stay done that somebody deleted.
	s.apply(job("kept", "backoffLimit: 1")).want(t, 0)
	s.deleteJob("kept")
	s.apply(job("kept", "backoffLimit: 1")).want(t, 0).did(t, "Job", "kept", plan.Created)
}

// A run that is killed before it recorded that a Job completed leaves no memory of
// an earlier spec.
func TestJobOfAKilledRunRunsAgain(t *testing.T) {
	s := newFixture(t)
	s.apply(jobOf("3.9")).want(t, 0)
	s.expired("once")
	p := s.proxied()
	ran := false
	p.Intercept(func(r clustertest.Request) clustertest.Action {
		ran = ran || r.IsWrite() && strings.Contains(r.Path, "/jobs")
		if ran && r.IsWrite() && strings.Contains(r.Path, "-fingerprints-") {
			return clustertest.Action{Status: http.StatusForbidden}
		}
		return clustertest.Action{}
	})
	s.apply(jobOf("3.10")).want(t, 0).prints(t, "fingerprints").did(t, "Job", "once", plan.Created)
	s.expired("once")
	p.Intercept(nil)
	s.apply(jobOf("3.9")).want(t, 0).did(t, "Job", "once", plan.Created)
	s.expired("once")
	s.apply(jobOf("3.9")).want(t, 0).did(t, "Job", "once", plan.Unchanged)
}

func TestJobThatRunsAlways(t *testing.T) {
	always := func(name, spec string) string {
		return strings.Replace(job(name, spec), "metadata: {", "metadata: {annotations: {brine.dev/run: always}, ", 1)
	}
	s := newFixture(t)
	text := documents(always("stands", "backoffLimit: 1"), always("once", "ttlSecondsAfterFinished: 0"))
	first := s.apply(text).want(t, 0)
	first.did(t, "Job", "stands", plan.Created)
	s.expired("once")
	s.status().want(t, 0)
	uid := s.live("batch/v1/jobs", s.ns, "stands").GetUID()
	previewed := s.preview(text).want(t, 0)
	previewed.did(t, "Job", "stands", plan.Recreated)
	previewed.did(t, "Job", "once", plan.Created)
	again := s.apply(text).want(t, 0)
	if o := again.did(t, "Job", "stands", plan.Recreated); o.Ready != "ready" {
		t.Errorf("it is %q: %s", o.Ready, o.Reason)
	}
	again.did(t, "Job", "once", plan.Created)
	s.expired("once")
	if s.live("batch/v1/jobs", s.ns, "stands").GetUID() == uid {
		t.Error("it is the same Job as before")
	}
	file := filepath.Join(t.TempDir(), "plan.json")
	s.preview(text, "--plan-out", file).want(t, 0)
	s.apply(text, "--plan", file).want(t, 0).did(t, "Job", "stands", plan.Recreated)
	s.apply(configMap("a", "annotations: {brine.dev/run: always}")).want(t, 3).prints(t, "only a Job can have this annotation")
	s.apply(strings.Replace(text, "run: always", "run: never", 1)).want(t, 3).prints(t, `invalid value "never": use always`)
}
