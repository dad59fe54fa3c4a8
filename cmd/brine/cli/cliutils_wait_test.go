package cli

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"brine/bundle/cluster/clustertest"
	"brine/bundle/plan"
)

// Scenarios of cli-utils' end-to-end suite (its test/e2e, v0.37.2), each named
// after its file there: what becomes ready late, or never, or is only looked at.

func TestDestroyHeldByFinalizer(t *testing.T) {
	s := newFixture(t)
	s.apply(documents(configMap("held", "finalizers: [example.com/hold]"), configMap("free"))).want(t, 0)
	result := s.destroy("--timeout=3s").want(t, 4)
	result.prints(t, "held by finalizers: example.com/hold")
	if got := s.members(); !slices.Equal(got, []string{"ConfigMap " + s.ns + "/held"}) {
		t.Errorf("the inventory holds %v, want what still stands", got)
	}
	if _, err := s.resources("v1/configmaps").Namespace(s.ns).Patch(t.Context(), "held", types.MergePatchType,
		[]byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	s.destroy().want(t, 0)
	s.missing("v1/configmaps", "held", "inv")
}

func TestReconcileFailed(t *testing.T) {
	s := newFixture(t)
	// kstatus calls it failed after 15 seconds. brine tells at once what is wrong,
	// and waits: a node may still come. The run ends with the same exit code.
	result := s.apply(documents(podWith("nowhere", "nodeSelector: {foo: bar}"), configMap("other")), "--timeout=4s").want(t, 4)
	if o := result.object(t, "Pod", "nowhere"); o.Ready != "not-ready" {
		t.Errorf("the pod is %q: %s", o.Ready, o.Reason)
	}
	result.prints(t, "Unschedulable").did(t, "ConfigMap", "other", plan.Created)
}

func TestReconcileTimeout(t *testing.T) {
	s := newFixture(t)
	// kwok's pods pull any image: one held by a scheduling gate is as late.
	result := s.apply(podWith("late", "schedulingGates: [{name: example.com/wait}]"), "--timeout=3s").want(t, 4)
	if o := result.object(t, "Pod", "late"); o.Ready != "not-ready" {
		t.Errorf("the pod is %q: %s", o.Ready, o.Reason)
	}
	result.prints(t, "time ran out")
	if got := s.members(); len(got) != 1 {
		t.Errorf("the inventory holds %v, want the pod", got)
	}
}

func TestServerSideApplyOfDeploymentAndAPIService(t *testing.T) {
	s := newOwnFixture(t)
	service := `apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: "v1.{ns}.example.com"}
spec: {group: "{ns}.example.com", version: v1, groupPriorityMinimum: 100, versionPriority: 100, insecureSkipTLSVerify: true, service: {name: absent, namespace: "{ns}"}}
`
	s.goneAfter("apiregistration.k8s.io/v1/apiservices", "v1."+s.ns+".example.com")
	// cli-utils takes an APIService for ready at once; here it has no backend.
	result := s.apply(documents(deployment("web", 1, "1m"), service), "--timeout=6s").want(t, 4)
	result.did(t, "APIService", "v1."+s.ns+".example.com", plan.Created)
	result.did(t, "Deployment", "web", plan.Created)
	for _, u := range []*unstructured.Unstructured{s.live("apps/v1/deployments", s.ns, "web"), s.live("apiregistration.k8s.io/v1/apiservices", "", "v1."+s.ns+".example.com")} {
		if !slices.ContainsFunc(u.GetManagedFields(), func(f metav1.ManagedFieldsEntry) bool {
			return f.Manager == "brine" && f.Operation == metav1.ManagedFieldsOperationApply
		}) {
			t.Errorf("%s is not managed by a server-side apply of brine", u.GetName())
		}
	}
	s.destroy().want(t, 0)
}

func TestDryRunChangesNothing(t *testing.T) {
	s := newFixture(t)
	s.apply(documents(configMap("old"), configMap("stays"))).want(t, 0)
	p := s.proxied()
	changed := documents(configMap("new"), strings.Replace(configMap("stays"), "key: value", "key: changed", 1))
	result := s.apply(changed, "--dry-run=server").want(t, 0)
	result.did(t, "ConfigMap", "new", plan.Created)
	result.did(t, "ConfigMap", "stays", plan.Configured)
	result.did(t, "ConfigMap", "old", plan.Pruned)
	s.apply(changed, "--dry-run=client")
	if w := p.Writes(); len(w) > 0 {
		t.Errorf("a dry run wrote %v", describe(w))
	}
	s.exists("v1/configmaps", "old", "stays")
	s.missing("v1/configmaps", "new")
}

func describe(requests []clustertest.Request) []string {
	var lines []string
	for _, r := range requests {
		lines = append(lines, r.Method+" "+r.Path)
	}
	return lines
}
