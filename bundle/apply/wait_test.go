package apply_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"brine/bundle/plan"
	"brine/cmd/brine/clitest"
)

// Scenarios of cli-utils' end-to-end suite (its test/e2e, v0.37.2:
// destroy_reconciliation_failure, reconcile_failed_timeout, serverside_apply).

func TestDestroyHeldByFinalizer(t *testing.T) {
	s := clitest.New(t)
	s.Apply(clitest.Documents(clitest.ConfigMap("held", "finalizers: [example.com/hold]"), clitest.ConfigMap("free"))).Want(t, 0)
	result := s.Destroy("--timeout=10s").Want(t, 4)
	result.Prints(t, "held by finalizers: example.com/hold")
	if got := s.Members(); !slices.Equal(got, []string{"ConfigMap " + s.NS + "/held"}) {
		t.Errorf("the inventory holds %v, want what still stands", got)
	}
	if _, err := s.Resources("v1/configmaps").Namespace(s.NS).Patch(t.Context(), "held", types.MergePatchType,
		[]byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	s.Destroy().Want(t, 0)
	s.Missing("v1/configmaps", "held", "inv")
}

func TestUnschedulablePodIsReportedAndNotReady(t *testing.T) {
	s := clitest.New(t)
	// kstatus calls it failed after 15 seconds. brine tells at once what is wrong,
	// and waits: a node may still come. The run ends with the same exit code.
	result := s.Apply(clitest.Documents(clitest.PodWith("nowhere", "nodeSelector: {foo: bar}"), clitest.ConfigMap("other")), "--timeout=10s").Want(t, 4)
	if o := result.Object(t, "Pod", "nowhere"); o.Ready != "not-ready" {
		t.Errorf("the pod is %q: %s", o.Ready, o.Reason)
	}
	result.Prints(t, "Unschedulable").Did(t, "ConfigMap", "other", plan.Created)
}

func TestObjectThatIsLateIsNotReadyAndAMember(t *testing.T) {
	s := clitest.New(t)
	// kwok's pods pull any image: one held by a scheduling gate is as late.
	result := s.Apply(clitest.PodWith("late", "schedulingGates: [{name: example.com/wait}]"), "--timeout=10s").Want(t, 4)
	if o := result.Object(t, "Pod", "late"); o.Ready != "not-ready" {
		t.Errorf("the pod is %q: %s", o.Ready, o.Reason)
	}
	result.Prints(t, "time ran out")
	if got := s.Members(); len(got) != 1 {
		t.Errorf("the inventory holds %v, want the pod", got)
	}
}

func TestServerSideApplyOfDeploymentAndAPIService(t *testing.T) {
	s := clitest.NewAlone(t)
	service := `apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: "v1.{ns}.example.com"}
spec: {group: "{ns}.example.com", version: v1, groupPriorityMinimum: 100, versionPriority: 100, insecureSkipTLSVerify: true, service: {name: absent, namespace: "{ns}"}}
`
	s.GoneAfter("apiregistration.k8s.io/v1/apiservices", "v1."+s.NS+".example.com")
	// cli-utils takes an APIService for ready at once; here it has no backend.
	result := s.Apply(clitest.Documents(clitest.Deployment("web", 1, "1m"), service), "--timeout=6s").Want(t, 4)
	result.Did(t, "APIService", "v1."+s.NS+".example.com", plan.Created)
	result.Did(t, "Deployment", "web", plan.Created)
	for _, u := range []*unstructured.Unstructured{s.Live("apps/v1/deployments", s.NS, "web"), s.Live("apiregistration.k8s.io/v1/apiservices", "", "v1."+s.NS+".example.com")} {
		if !slices.ContainsFunc(u.GetManagedFields(), func(f metav1.ManagedFieldsEntry) bool {
			return f.Manager == "brine" && f.Operation == metav1.ManagedFieldsOperationApply
		}) {
			t.Errorf("%s is not managed by a server-side apply of brine", u.GetName())
		}
	}
	s.Destroy().Want(t, 0)
}

func TestClaimThatWaitsForItsConsumerBlocksNobody(t *testing.T) {
	s := clitest.New(t)
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
	s.GoneAfter("storage.k8s.io/v1/storageclasses", s.NS+"-late")
	result := s.Apply(clitest.Documents(clitest.ConfigMap("after", clitest.DependsOn("/namespaces/{ns}/PersistentVolumeClaim/data")), claim, class)).Want(t, 0)
	result.Did(t, "ConfigMap", "after", plan.Created)
	s.Destroy().Want(t, 0)
}

func TestObjectDeletedWhileWaitedFor(t *testing.T) {
	s := clitest.New(t)
	go func() {
		zero := int64(0)
		for s.Context().Err() == nil {
			if s.Resources("v1/pods").Namespace(s.NS).Delete(context.Background(), "late", metav1.DeleteOptions{GracePeriodSeconds: &zero}) == nil {
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
	}()
	result := s.Apply(clitest.PodWith("late", "schedulingGates: [{name: example.com/wait}]"), "--timeout=50s").Want(t, 4)
	if o := result.Object(t, "Pod", "late"); o.Ready != "failed" || !strings.Contains(o.Reason, "deleted") {
		t.Errorf("the pod is %q: %s", o.Ready, o.Reason)
	}
	if result.Result.Summary.Seconds > 40 {
		t.Errorf("it was waited for, for %v seconds", result.Result.Summary.Seconds)
	}
}

func TestLiveDependencyThatIsGone(t *testing.T) {
	s := clitest.New(t)
	s.Apply(clitest.Documents(clitest.ConfigMap("a", clitest.DependsOn("/namespaces/{ns}/ConfigMap/b")), clitest.ConfigMap("b"))).Want(t, 0)
	if err := s.Resources("v1/configmaps").Namespace(s.NS).Delete(t.Context(), "b", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.Apply(clitest.ConfigMap("c")).Want(t, 0).Did(t, "ConfigMap", "a", plan.Pruned)
	s.Missing("v1/configmaps", "a")
}
