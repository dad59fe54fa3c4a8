package main

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"brine/bundle/cluster/clustertest"
	"brine/bundle/plan"
	"brine/inventory"
)

// What other appliers lose, or get stuck on.

// role is an RBAC object whose name is not a DNS name.
func role(kind, name string) string {
	text := "apiVersion: rbac.authorization.k8s.io/v1\nkind: " + kind + "\nmetadata:\n  name: \"" + name + "\"\n"
	if !strings.HasPrefix(kind, "Cluster") {
		text += "  namespace: {ns}\n"
	}
	if strings.HasSuffix(kind, "Binding") {
		return text + "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}\nsubjects: []\n"
	}
	return text + "rules: []\n"
}

func TestRBACNames(t *testing.T) {
	s := newFixture(t)
	var names []string
	for _, name := range []string{"a:b", "a_b", "a__b", "a:_b", "a_:b", ":a", "_a", "a:", "a_", "__", "::", "system:a_b:c__d", "a-b.c"} {
		names = append(names, s.ns+name)
	}
	var texts, half []string
	for i, name := range names {
		for _, kind := range []string{"Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"} {
			texts = append(texts, role(kind, name))
			if i%2 == 0 {
				half = append(half, role(kind, name))
			}
		}
	}
	s.apply(documents(texts...)).want(t, 0)
	if got := s.members(); len(got) != len(texts) {
		t.Errorf("the inventory holds %d, want %d: %v", len(got), len(texts), got)
	}
	if result := s.apply(documents(half...)).want(t, 0); result.result.Summary.Pruned != len(texts)-len(half) {
		t.Errorf("%d were pruned, want %d", result.result.Summary.Pruned, len(texts)-len(half))
	}
	if got := s.members(); len(got) != len(half) {
		t.Errorf("the inventory holds %d, want %d: %v", len(got), len(half), got)
	}
	s.destroy().want(t, 0)
	left, err := s.resources("rbac.authorization.k8s.io/v1/clusterroles").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range left.Items {
		if strings.HasPrefix(u.GetName(), s.ns) {
			t.Errorf("ClusterRole %s is left", u.GetName())
		}
	}
}

func TestKeysThatAConfigMapCannotHold(t *testing.T) {
	s := newFixture(t)
	long := strings.Repeat("n", 253)
	s.apply(documents(configMap(long), configMap("short"))).want(t, 0)
	if got := s.members(); !slices.Contains(got, "ConfigMap "+s.ns+"/"+long) {
		t.Errorf("the inventory holds %v", got)
	}
	s.apply(configMap("short")).want(t, 0).did(t, "ConfigMap", long, plan.Pruned)
	s.missing("v1/configmaps", long)
}

func TestNoPruneForgetsNothing(t *testing.T) {
	s := newFixture(t)
	s.apply(documents(configMap("a"), configMap("b"))).want(t, 0)
	s.apply(configMap("a"), "--no-prune").want(t, 0).did(t, "ConfigMap", "b", plan.Skipped)
	s.exists("v1/configmaps", "b")
	if got := s.members(); len(got) != 2 {
		t.Errorf("the inventory holds %v, want both", got)
	}
	s.apply(configMap("a")).want(t, 0).did(t, "ConfigMap", "b", plan.Pruned)
	s.missing("v1/configmaps", "b")
}

func TestUnreadableInventoryStopsTheRun(t *testing.T) {
	for name, broken := range map[string]struct {
		request func(clustertest.Request) bool
		action  clustertest.Action
		exit    int
	}{
		"head forbidden": {func(r clustertest.Request) bool { return strings.HasSuffix(r.Path, "/configmaps/inv") },
			clustertest.Action{Status: http.StatusForbidden, Message: "not for you"}, 6},
		"sides forbidden": {func(r clustertest.Request) bool {
			return strings.HasSuffix(r.Path, "/configmaps") && r.Query.Has("labelSelector")
		}, clustertest.Action{Status: http.StatusForbidden, Message: "not for you"}, 6},
		"server error": {func(r clustertest.Request) bool { return strings.HasSuffix(r.Path, "/configmaps/inv") },
			clustertest.Action{Status: http.StatusInternalServerError, Message: "etcd is away"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t)
			s.apply(configMap("old")).want(t, 0)
			p := s.proxied()
			p.Intercept(func(r clustertest.Request) clustertest.Action {
				if r.Method == http.MethodGet && broken.request(r) {
					return broken.action
				}
				return clustertest.Action{}
			})
			s.apply(configMap("new"), "--retry-timeout=200ms").want(t, broken.exit).prints(t, "read inventory")
			if w := p.Writes(); len(w) > 0 {
				t.Errorf("it wrote %v", describe(w))
			}
			s.exists("v1/configmaps", "old")
			s.missing("v1/configmaps", "new")
		})
	}
}

func TestUnreadableKeyStopsTheRun(t *testing.T) {
	s := newFixture(t)
	s.apply(configMap("old")).want(t, 0)
	if _, err := s.resources("v1/configmaps").Namespace(s.ns).Patch(t.Context(), "inv", types.MergePatchType,
		[]byte(`{"data":{"no-object":""}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	p := s.proxied()
	s.apply(configMap("new")).want(t, 1).prints(t, "no-object")
	if w := p.Writes(); len(w) > 0 {
		t.Errorf("it wrote %v", describe(w))
	}
}

func TestApplyFailureStopsPruning(t *testing.T) {
	s := newFixture(t)
	s.apply(documents(configMap("a"), configMap("b"))).want(t, 0)
	bad := "apiVersion: v1\nkind: Service\nmetadata: {name: bad, namespace: \"{ns}\"}\nspec: {ports: [{port: 99999}]}\n"
	result := s.apply(documents(configMap("a"), bad)).want(t, 1)
	result.did(t, "Service", "bad", plan.Failed)
	if o := result.did(t, "ConfigMap", "b", plan.Skipped); !strings.Contains(o.Reason, "could not be applied") {
		t.Errorf("the reason is %q", o.Reason)
	}
	s.exists("v1/configmaps", "b")
	if got := s.members(); !slices.Contains(got, "ConfigMap "+s.ns+"/b") {
		t.Errorf("the inventory holds %v", got)
	}
	// Once it is mended, what is not wanted goes.
	s.apply(configMap("a")).want(t, 0).did(t, "ConfigMap", "b", plan.Pruned)
}

func TestSkippedIsNotSuccess(t *testing.T) {
	s := newFixture(t)
	bad := "apiVersion: v1\nkind: Service\nmetadata: {name: bad, namespace: \"{ns}\"}\nspec: {ports: [{port: 99999}]}\n"
	result := s.apply(documents(bad, configMap("a", dependsOn("/namespaces/{ns}/Service/bad")), configMap("b", dependsOn("/namespaces/{ns}/ConfigMap/a")))).want(t, 1)
	for _, name := range []string{"a", "b"} {
		if o := result.did(t, "ConfigMap", name, plan.Skipped); o.Ready != "" || o.Reason == "" {
			t.Errorf("%s is %q: %q", name, o.Ready, o.Reason)
		}
	}
	data, _, _ := unstructured.NestedStringMap(s.live("v1/configmaps", s.ns, "inv").Object, "data")
	for key, value := range data {
		if strings.Contains(value, "Succeeded") {
			t.Errorf("the inventory says %s of %s", value, key)
		}
	}
	// Nor does a destroy succeed that leaves something.
	namespace := "apiVersion: v1\nkind: Namespace\nmetadata: {name: \"{ns}-shared\"}\n"
	s.goneAfter("v1/namespaces", s.ns+"-shared")
	s.apply(namespace).want(t, 0)
	s.create("v1/configmaps", strings.ReplaceAll(configMap("foreign"), "namespace: {ns}\n", "namespace: {ns}-shared\n"))
	s.destroy().want(t, 1).prints(t, "outside this inventory").did(t, "Namespace", s.ns+"-shared", plan.Skipped)
	if got := s.members(); len(got) != 1 {
		t.Errorf("the inventory holds %v, want the namespace that stays", got)
	}
}

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

func TestTwoInventoriesWithOneID(t *testing.T) {
	s := newFixture(t)
	id := "--inventory-id=one-" + s.ns
	s.apply(configMap("a"), id).want(t, 0)
	second := s.other("second")
	second.apply(configMap("b"), id).want(t, 0)
	// Each knows its own members only.
	s.apply(configMap("a")).want(t, 0)
	s.exists("v1/configmaps", "a", "b")
	second.destroy().want(t, 0)
	s.exists("v1/configmaps", "a", "inv")
	s.missing("v1/configmaps", "b", "second")
	s.destroy().want(t, 0)
	s.missing("v1/configmaps", "a", "inv")
}

func TestDuplicatedObjects(t *testing.T) {
	s := newFixture(t)
	result := s.apply(documents(configMap("a"), configMap("a"))).want(t, 0)
	result.prints(t, "it is applied once")
	if result.result.Summary.Created != 1 {
		t.Errorf("%d were created", result.result.Summary.Created)
	}
	p := s.proxied()
	s.apply(documents(configMap("a"), strings.Replace(configMap("a"), "key: value", "key: other", 1))).want(t, 3).prints(t, "keep one of them", "bundle.yaml:1")
	if w := p.Writes(); len(w) > 0 {
		t.Errorf("it wrote %v", describe(w))
	}
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

func TestInventoryDeletedMidRun(t *testing.T) {
	s := newFixture(t)
	s.apply(configMap("a")).want(t, 0)
	p := s.proxied()
	p.Intercept(func(r clustertest.Request) clustertest.Action {
		if r.IsWrite() && strings.HasSuffix(r.Path, "/configmaps/b") {
			_ = s.resources("v1/configmaps").Namespace(s.ns).Delete(context.Background(), "inv", metav1.DeleteOptions{})
		}
		return clustertest.Action{}
	})
	// All that it held is known, so it is written again.
	s.apply(documents(configMap("a"), configMap("b"))).want(t, 0)
	p.Intercept(nil)
	if got := s.members(); len(got) != 2 {
		t.Errorf("the inventory holds %v", got)
	}
	s.destroy().want(t, 0)
	s.missing("v1/configmaps", "a", "b")
}

func TestObjectsNeverAppliedAreNotPruned(t *testing.T) {
	s := newFixture(t)
	bad := "apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: \"{ns}\"}\nspec: {ports: [{port: 99999}]}\n"
	s.apply(documents(bad, configMap("a"))).want(t, 1)
	// Now somebody else makes it.
	s.create("v1/services", strings.Replace(bad, "99999", "80", 1))
	s.apply(configMap("a")).want(t, 0)
	s.exists("v1/services", "web")
	if got := s.members(); len(got) != 1 {
		t.Errorf("the inventory holds %v", got)
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

func TestMembersOwnedByOthersStay(t *testing.T) {
	s := newFixture(t)
	s.apply(documents(configMap("a"), configMap("b"))).want(t, 0)
	if _, err := s.resources("v1/configmaps").Namespace(s.ns).Patch(t.Context(), "b", types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"`+inventory.OwningInventory+`":"somebody-else"}}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	s.apply(configMap("a")).want(t, 0).did(t, "ConfigMap", "b", plan.Detached)
	if got := s.live("v1/configmaps", s.ns, "b").GetAnnotations()[inventory.OwningInventory]; got != "somebody-else" {
		t.Errorf("its owner became %q", got)
	}
}

// The claims that a StatefulSet's controller made go with the namespace that
// goes, without its controller's two rounds of five seconds; those in a
// namespace that stays are left alone.
func TestClaimsAreDeletedWithTheirNamespaceOnly(t *testing.T) {
	s := newFixture(t)
	set := func(namespace string) string {
		return `apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: ` + namespace + `}
spec:
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: c, image: "registry.k8s.io/pause:3.10"}]}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], storageClassName: "{ns}-none", resources: {requests: {storage: 1Mi}}}
`
	}
	s.goneAfter("v1/namespaces", s.ns+"-going")
	s.apply(documents("apiVersion: v1\nkind: Namespace\nmetadata: {name: {ns}-going}\n", set("{ns}-going"), set("{ns}")), "--wait=applied").want(t, 0)
	for _, namespace := range []string{s.ns, s.ns + "-going"} {
		for s.live("v1/persistentvolumeclaims", namespace, "data-db-0") == nil {
			time.Sleep(50 * time.Millisecond)
		}
	}
	p := s.proxied()
	s.destroy().want(t, 0)
	var deleted []string
	for _, r := range p.Requests() {
		if r.Method == http.MethodDelete && (strings.HasSuffix(r.Path, "/namespaces/"+s.ns+"-going") || strings.Contains(r.Path, "persistentvolumeclaims")) {
			deleted = append(deleted, r.Path)
		}
	}
	if want := []string{"/api/v1/namespaces/" + s.ns + "-going", "/api/v1/namespaces/" + s.ns + "-going/persistentvolumeclaims/data-db-0"}; !slices.Equal(deleted, want) {
		t.Errorf("it deleted %v, want %v", deleted, want)
	}
	if s.live("v1/persistentvolumeclaims", s.ns, "data-db-0") == nil {
		t.Error("a claim went whose namespace stays")
	}
}
