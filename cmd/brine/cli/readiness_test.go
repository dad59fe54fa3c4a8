package cli

import (
	"context"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"brine/bundle/plan"
)

func TestCRDGainsAVersion(t *testing.T) {
	s := newFixture(t)
	s.apply(documents(widgets, widget)).want(t, 0)
	more := widgets + `  - name: v2
    served: true
    storage: false
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`
	second := strings.NewReplacer("example.com/v1", "example.com/v2", "name: one", "name: two").Replace(widget)
	result := s.apply(documents(second, more, widget)).want(t, 0)
	result.did(t, "Widget", "two", plan.Created)
	result.did(t, "Widget", "one", plan.Unchanged)
	s.destroy().want(t, 0)
}

func job(name, spec string) string {
	return "apiVersion: batch/v1\nkind: Job\nmetadata: {name: " + name + ", namespace: \"{ns}\"}\nspec:\n  " + spec + `
  template:
    spec:
      restartPolicy: Never
      containers: [{name: c, image: registry.k8s.io/pause:3.10}]
`
}

func TestRunningJobIsNotReady(t *testing.T) {
	s := newFixture(t)
	running := strings.Replace(job("running", "backoffLimit: 1"), "      restartPolicy", "      schedulingGates: [{name: example.com/wait}]\n      restartPolicy", 1)
	result := s.apply(documents(running, job("suspended", "suspend: true"), job("done", "backoffLimit: 1")), "--timeout=20s").want(t, 4)
	if o := result.object(t, "Job", "running"); o.Ready != "not-ready" || !strings.Contains(o.Reason, "0 of 1 succeeded") {
		t.Errorf("the running one is %q: %s", o.Ready, o.Reason)
	}
	for _, name := range []string{"suspended", "done"} {
		if o := result.object(t, "Job", name); o.Ready != "ready" {
			t.Errorf("%s is %q: %s", name, o.Ready, o.Reason)
		}
	}
}

func TestJobDeletedByItsTTL(t *testing.T) {
	s := newFixture(t)
	text := job("short-lived", "ttlSecondsAfterFinished: 0")
	result := s.apply(documents(text, configMap("after", dependsOn("batch/namespaces/{ns}/Job/short-lived")))).want(t, 0)
	result.did(t, "ConfigMap", "after", plan.Created)
	s.eventually("the Job is gone", func() bool { return s.live("batch/v1/jobs", s.ns, "short-lived") == nil })
	// One that is deleted before it has finished is no success.
	gated := strings.Replace(job("deleted", "ttlSecondsAfterFinished: 0"), "      restartPolicy", "      schedulingGates: [{name: example.com/wait}]\n      restartPolicy", 1)
	go func() {
		for range 100 {
			background := metav1.DeletePropagationBackground
			if s.resources("batch/v1/jobs").Namespace(s.ns).Delete(context.Background(), "deleted", metav1.DeleteOptions{PropagationPolicy: &background}) == nil {
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
	}()
	if o := s.apply(gated).want(t, 4).object(t, "Job", "deleted"); o.Ready != "failed" {
		t.Errorf("the deleted one is %q: %s", o.Ready, o.Reason)
	}
}

func TestClaimThatWaitsForItsConsumerBlocksNobody(t *testing.T) {
	s := newFixture(t)
	class := `apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: "{ns}-late"}
provisioner: example.com/none
volumeBindingMode: WaitForFirstConsumer
`
	claim := `apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: "{ns}"}
spec: {storageClassName: "{ns}-late", accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
`
	s.goneAfter("storage.k8s.io/v1/storageclasses", s.ns+"-late")
	result := s.apply(documents(configMap("after", dependsOn("/namespaces/{ns}/PersistentVolumeClaim/data")), claim, class)).want(t, 0)
	result.did(t, "ConfigMap", "after", plan.Created)
	s.destroy().want(t, 0)
}

func TestObjectDeletedWhileWaitedFor(t *testing.T) {
	s := newFixture(t)
	go func() {
		zero := int64(0)
		for range 100 {
			if s.resources("v1/pods").Namespace(s.ns).Delete(context.Background(), "late", metav1.DeleteOptions{GracePeriodSeconds: &zero}) == nil {
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
	}()
	result := s.apply(podWith("late", "schedulingGates: [{name: example.com/wait}]"), "--timeout=50s").want(t, 4)
	if o := result.object(t, "Pod", "late"); o.Ready != "failed" || !strings.Contains(o.Reason, "deleted") {
		t.Errorf("the pod is %q: %s", o.Ready, o.Reason)
	}
	if result.result.Summary.Seconds > 40 {
		t.Errorf("it was waited for, for %v seconds", result.result.Summary.Seconds)
	}
}

func TestLiveDependencyThatIsGone(t *testing.T) {
	s := newFixture(t)
	s.apply(documents(configMap("a", dependsOn("/namespaces/{ns}/ConfigMap/b")), configMap("b"))).want(t, 0)
	if err := s.resources("v1/configmaps").Namespace(s.ns).Delete(t.Context(), "b", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.apply(configMap("c")).want(t, 0).did(t, "ConfigMap", "a", plan.Pruned)
	s.missing("v1/configmaps", "a")
}
