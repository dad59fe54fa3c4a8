package main

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"brine/bundle/cluster/clustertest"
	"brine/bundle/plan"
	"brine/inventory"
)

// The scenarios of cli-utils' end-to-end suite (its test/e2e, v0.37.2), each
// named after its file there.

func pod(name string, metadata ...string) string {
	return podWith(name, "", metadata...)
}

// podWith has more fields in its spec, in flow style.
func podWith(name, spec string, metadata ...string) string {
	text := "apiVersion: v1\nkind: Pod\nmetadata:\n  name: " + name + "\n  namespace: {ns}\n"
	for _, m := range metadata {
		text += "  " + m + "\n"
	}
	text += "spec:\n  terminationGracePeriodSeconds: 0\n"
	if spec != "" {
		text += "  " + spec + "\n"
	}
	return text + "  containers: [{name: c, image: registry.k8s.io/pause:3.10, ports: [{containerPort: 80}]}]\n"
}

func annotations(pairs ...string) string {
	return "annotations: {" + strings.Join(pairs, ", ") + "}"
}

func dependsOn(ref string) string {
	return annotations(`config.kubernetes.io/depends-on: "` + ref + `"`)
}

// widgets is a CRD of a group of the scene's own, and a resource of it.
const widgets = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.{ns}.example.com}
spec:
  group: "{ns}.example.com"
  scope: Namespaced
  names: {plural: widgets, kind: Widget}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

const widget = `apiVersion: "{ns}.example.com/v1"
kind: Widget
metadata: {name: one, namespace: "{ns}"}
spec: {size: 1}
`

func replicas(t testing.TB, u *unstructured.Unstructured) int64 {
	t.Helper()
	n, _, err := unstructured.NestedInt64(u.Object, "spec", "replicas")
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestInventoryPolicyMustMatch(t *testing.T) {
	s := newScene(t)
	s.apply(deployment("web", 2, "1m")).want(t, 0)
	s.other("second").apply(deployment("web", 3, "1m"), "--inventory-policy=must-match").want(t, 1).
		tells(t, "it belongs to inventory").did(t, "Deployment", "web", plan.Failed)
	if n := replicas(t, s.live("apps/v1/deployments", s.ns, "web")); n != 2 {
		t.Errorf("it has %d replicas: the other inventory changed it", n)
	}
	// Nor an object of nobody.
	s.create("v1/configmaps", configMap("alone"))
	s.other("second").apply(configMap("alone"), "--inventory-policy=must-match").want(t, 1).did(t, "ConfigMap", "alone", plan.Failed)
	if got := s.other("second").members(); len(got) != 0 {
		t.Errorf("the second inventory holds %v, none of which it may have", got)
	}
}

func TestInventoryPolicyAdoptIfNoInventory(t *testing.T) {
	s := newScene(t)
	s.create("apps/v1/deployments", deployment("web", 2, "1m"))
	result := s.apply(deployment("web", 3, "1m"), "--force-conflicts").want(t, 0)
	live := s.live("apps/v1/deployments", s.ns, "web")
	if n := replicas(t, live); n != 3 {
		t.Errorf("it has %d replicas, want 3", n)
	}
	if got := live.GetAnnotations()[inventory.OwningInventory]; got != result.result.Inventory.ID {
		t.Errorf("it is owned by %q, want %q", got, result.result.Inventory.ID)
	}
	s.other("second").apply(deployment("web", 4, "1m")).want(t, 1).did(t, "Deployment", "web", plan.Failed)
}

func TestInventoryPolicyAdoptAll(t *testing.T) {
	s := newScene(t)
	s.apply(deployment("web", 2, "1m")).want(t, 0)
	second := s.other("second")
	second.apply(deployment("web", 3, "1m"), "--inventory-policy=adopt-all").want(t, 0)
	if n := replicas(t, s.live("apps/v1/deployments", s.ns, "web")); n != 3 {
		t.Errorf("it has %d replicas, want 3", n)
	}
	// The first inventory does not delete what is not its own any more.
	s.destroy().want(t, 0).did(t, "Deployment", "web", plan.Detached)
	s.exists("apps/v1/deployments", "web")
}

func TestDeletionPrevention(t *testing.T) {
	s := newScene(t)
	kept := documents(
		pod("by-lifecycle", annotations("client.lifecycle.config.k8s.io/deletion: detach")),
		pod("by-remove", annotations("cli-utils.sigs.k8s.io/on-remove: keep")))
	s.apply(documents(deployment("web", 1, "1m"), kept)).want(t, 0)

	preview := s.preview(deployment("web", 1, "1m")).want(t, 0)
	preview.did(t, "Pod", "by-lifecycle", plan.Detached)
	if got := s.live("v1/pods", s.ns, "by-remove").GetAnnotations()[inventory.OwningInventory]; got == "" {
		t.Error("the preview took the owner off")
	}
	if got := s.members(); len(got) != 3 {
		t.Errorf("the preview changed the inventory to %v", got)
	}

	s.apply(deployment("web", 1, "1m")).want(t, 0)
	for _, name := range []string{"by-lifecycle", "by-remove"} {
		live := s.live("v1/pods", s.ns, name)
		if live == nil {
			t.Fatalf("pod %s was deleted", name)
		}
		if got := live.GetAnnotations()[inventory.OwningInventory]; got != "" {
			t.Errorf("pod %s is still owned by %q", name, got)
		}
	}
	if got := s.members(); len(got) != 1 {
		t.Errorf("the inventory holds %v, want the Deployment alone", got)
	}
}

func TestDependencyFilter(t *testing.T) {
	s := newScene(t)
	dependent := pod("a", dependsOn("/namespaces/{ns}/Pod/b"))
	s.apply(documents(dependent, pod("b"))).want(t, 0)
	// b is not in the bundle any more, but a still needs it.
	result := s.apply(dependent).want(t, 0)
	result.did(t, "Pod", "b", plan.Skipped)
	result.tells(t, "depends on it")
	s.exists("v1/pods", "a", "b")
	if got := s.members(); len(got) != 2 {
		t.Errorf("the inventory holds %v, want both pods", got)
	}
	s.destroy().want(t, 0)
	s.missing("v1/pods", "a", "b")
}

func TestDependsOnAcrossNamespaces(t *testing.T) {
	s := newScene(t)
	text := documents(
		strings.ReplaceAll(pod("front", dependsOn("/namespaces/{ns}-back/Pod/back")), "namespace: {ns}\n", "namespace: {ns}-front\n"),
		strings.ReplaceAll(pod("back"), "namespace: {ns}\n", "namespace: {ns}-back\n"),
		"apiVersion: v1\nkind: Namespace\nmetadata: {name: \"{ns}-front\"}\n",
		"apiVersion: v1\nkind: Namespace\nmetadata: {name: \"{ns}-back\"}\n")
	result := s.apply(text).want(t, 0)
	if front, back := result.object(t, "Pod", "front"), result.object(t, "Pod", "back"); front.StartedAt < back.ReadyAt {
		t.Errorf("front was applied at %v, before back was ready at %v", front.StartedAt, back.ReadyAt)
	}
	result = s.destroy().want(t, 0)
	if front, back := result.object(t, "Pod", "front"), result.object(t, "Pod", "back"); back.StartedAt < front.ReadyAt {
		t.Errorf("back was deleted at %v, before front was gone at %v", back.StartedAt, front.ReadyAt)
	}
}

func TestLocalNamespaces(t *testing.T) {
	s := newScene(t)
	namespace := "apiVersion: v1\nkind: Namespace\nmetadata: {name: \"{ns}-local\"}\n"
	inside := strings.ReplaceAll(configMap("inside"), "namespace: {ns}\n", "namespace: {ns}-local\n")
	s.goneAfter("v1/namespaces", s.ns+"-local")
	s.apply(documents(namespace, inside)).want(t, 0)
	// A namespace that the bundle's objects live in is not pruned.
	result := s.apply(inside).want(t, 0)
	if o := result.did(t, "Namespace", s.ns+"-local", plan.Skipped); !strings.Contains(o.Reason, "in use") {
		t.Errorf("the reason is %q", o.Reason)
	}
	if s.live("v1/namespaces", "", s.ns+"-local").GetDeletionTimestamp() != nil {
		t.Fatal("the namespace is being deleted")
	}
	s.destroy().want(t, 0)
	if s.live("v1/namespaces", "", s.ns+"-local") != nil {
		t.Error("the namespace was not destroyed")
	}
}

func TestCurrentUID(t *testing.T) {
	s := newScene(t)
	// cli-utils does it with Ingress, which has had one group only for a while;
	// Events are still served under two, and are the same objects.
	event := `apiVersion: v1
kind: Event
metadata: {name: twice, namespace: "{ns}"}
involvedObject: {kind: Namespace, name: "{ns}", namespace: "{ns}", apiVersion: v1}
reason: Tested
message: the same object under two groups
type: Normal
reportingComponent: brine.dev/test
reportingInstance: test-1
action: Test
eventTime: "2024-01-01T00:00:00.000000Z"
`
	moved := `apiVersion: events.k8s.io/v1
kind: Event
metadata: {name: twice, namespace: "{ns}"}
regarding: {kind: Namespace, name: "{ns}", namespace: "{ns}", apiVersion: v1}
reason: Tested
note: the same object under two groups
type: Normal
reportingController: brine.dev/test
reportingInstance: test-1
action: Test
eventTime: "2024-01-01T00:00:00.000000Z"
`
	s.apply(event).want(t, 0)
	uid := s.live("v1/events", s.ns, "twice").GetUID()
	result := s.apply(moved).want(t, 0)
	if live := s.live("v1/events", s.ns, "twice"); live == nil || live.GetUID() != uid {
		t.Fatalf("the object was deleted under its old group: %s", clip(result.stdout))
	}
	if got := s.members(); !slices.Equal(got, []string{"Event.events.k8s.io " + s.ns + "/twice"}) {
		t.Errorf("the inventory holds %v", got)
	}
	s.destroy().want(t, 0)
	s.missing("v1/events", "twice")
}

func TestPruneRetrievalError(t *testing.T) {
	s := newScene(t)
	s.apply(pod("one")).want(t, 0)
	zero := int64(0)
	if err := s.resources("v1/pods").Namespace(s.ns).Delete(t.Context(), "one", metav1.DeleteOptions{GracePeriodSeconds: &zero}); err != nil {
		t.Fatal(err)
	}
	s.eventually("pod one is gone", func() bool { return s.live("v1/pods", s.ns, "one") == nil })
	if got := s.members(); len(got) != 1 {
		t.Errorf("the inventory holds %v, want the pod that was deleted outside", got)
	}
	// What was deleted outside leaves the inventory.
	s.apply(pod("two")).want(t, 0).tells(t, "gone from the cluster")
	if got, want := s.members(), []string{"Pod " + s.ns + "/two"}; !slices.Equal(got, want) {
		t.Errorf("the inventory holds %v, want %v", got, want)
	}
	s.destroy().want(t, 0)
	s.missing("v1/pods", "two")
	s.missing("v1/configmaps", "inv")
}

func TestDestroyHeldByFinalizer(t *testing.T) {
	s := newScene(t)
	s.apply(documents(configMap("held", "finalizers: [example.com/hold]"), configMap("free"))).want(t, 0)
	result := s.destroy("--timeout=3s").want(t, 4)
	result.tells(t, "held by finalizers: example.com/hold")
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
	s := newScene(t)
	// kstatus calls it failed after 15 seconds. brine tells at once what is wrong,
	// and waits: a node may still come. The run ends with the same exit code.
	result := s.apply(documents(podWith("nowhere", "nodeSelector: {foo: bar}"), configMap("other")), "--timeout=4s").want(t, 4)
	if o := result.object(t, "Pod", "nowhere"); o.Ready != "not-ready" {
		t.Errorf("the pod is %q: %s", o.Ready, o.Reason)
	}
	result.tells(t, "Unschedulable").did(t, "ConfigMap", "other", plan.Created)
}

func TestReconcileTimeout(t *testing.T) {
	s := newScene(t)
	// kwok's pods pull any image: one held by a scheduling gate is as late.
	result := s.apply(podWith("late", "schedulingGates: [{name: example.com/wait}]"), "--timeout=3s").want(t, 4)
	if o := result.object(t, "Pod", "late"); o.Ready != "not-ready" {
		t.Errorf("the pod is %q: %s", o.Ready, o.Reason)
	}
	result.tells(t, "time ran out")
	if got := s.members(); len(got) != 1 {
		t.Errorf("the inventory holds %v, want the pod", got)
	}
}

// invalidBundle has every kind of invalid object that cli-utils' test has, and
// more.
func invalidBundle() string {
	return documents(
		pod("one"),
		deployment("web", 1, "1m", dependsOn("/namespaces/{ns}/Pod/one")),
		pod("external", dependsOn("/namespaces/{ns}/Pod/nowhere")),
		pod("cycle-a", dependsOn("/namespaces/{ns}/Pod/cycle-b")),
		pod("cycle-b", dependsOn("/namespaces/{ns}/Pod/cycle-a")),
		pod("mutated", "annotations:\n    config.kubernetes.io/apply-time-mutation: |\n      - {sourceRef: {kind: Pod, name: absent}, sourcePath: $.status.podIP, targetPath: $.spec.nodeName}"),
		"apiVersion: v1\nkind: Pod\nmetadata: {namespace: \"{ns}\"}\nspec: {containers: [{name: c, image: i}]}\n",
		"apiVersion: nobody.example.com/v1\nkind: Unheard\nmetadata: {name: of, namespace: \"{ns}\"}\n",
		pod("rules", annotations(`brine.dev/ready-when: "object.status.("`)),
		pod("depends-on-invalid", dependsOn("/namespaces/{ns}/Pod/external")),
	)
}

func TestSkipInvalid(t *testing.T) {
	s := newScene(t)
	s.apply(configMap("earlier")).want(t, 0)
	result := s.apply(invalidBundle(), "--validation=skip-invalid").want(t, 1)
	result.did(t, "Pod", "one", plan.Created)
	result.did(t, "Deployment", "web", plan.Created)
	for _, name := range []string{"external", "cycle-a", "cycle-b", "mutated", "rules", "depends-on-invalid", ""} {
		if o := result.did(t, "Pod", name, plan.Skipped); !strings.Contains(o.Reason, "invalid: ") {
			t.Errorf("the reason of %q is %q", name, o.Reason)
		}
	}
	result.did(t, "Unheard", "of", plan.Skipped)
	// Nothing is pruned, and nothing forgotten, while something is invalid.
	result.did(t, "ConfigMap", "earlier", plan.Skipped)
	s.exists("v1/configmaps", "earlier")
	s.exists("v1/pods", "one")
	s.missing("v1/pods", "external", "cycle-a", "cycle-b", "mutated", "rules")
	if got := s.members(); len(got) != 3 {
		t.Errorf("the inventory holds %v, want three", got)
	}
	// A live annotation that became invalid does not keep an object: brine
	// deletes what cli-utils would leave behind.
	if _, err := s.resources("apps/v1/deployments").Namespace(s.ns).Patch(t.Context(), "web", types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"config.kubernetes.io/depends-on":"invalid"}}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	s.destroy().want(t, 0)
	s.missing("apps/v1/deployments", "web")
}

func TestExitEarly(t *testing.T) {
	s := newScene(t)
	p := s.proxied()
	for _, flags := range [][]string{nil, {"--validation=exit-early"}} {
		s.apply(invalidBundle(), flags...).want(t, 3)
		if w := p.Writes(); len(w) > 0 {
			t.Errorf("it wrote %v", w)
		}
	}
	s.missing("v1/pods", "one")
}

func TestInventoryIDMismatch(t *testing.T) {
	s := newScene(t)
	s.apply(configMap("a"), "--inventory-id=first-"+s.ns).want(t, 0)
	p := s.proxied()
	s.apply(configMap("b"), "--inventory-id=second-"+s.ns).want(t, 1).tells(t, "first-"+s.ns, "second-"+s.ns)
	if w := p.Writes(); len(w) > 0 {
		t.Errorf("it wrote %v", w)
	}
	s.missing("v1/configmaps", "b")
}

func TestApplyTimeMutation(t *testing.T) {
	s := newScene(t)
	text := documents(
		`apiVersion: v1
kind: Pod
metadata:
  name: pod-a
  namespace: {ns}
  annotations:
    config.kubernetes.io/apply-time-mutation: |
      - sourceRef: {kind: Pod, name: pod-b}
        sourcePath: $.status.podIP
        targetPath: $.spec.containers[?(@.name=="c")].env[?(@.name=="SERVICE_HOST")].value
        token: ${pob-b-ip}
      - sourceRef: {kind: Pod, name: pod-b}
        sourcePath: $.spec.containers[?(@.name=="c")].ports[?(@.name=="http")].containerPort
        targetPath: $.spec.containers[?(@.name=="c")].env[?(@.name=="SERVICE_HOST")].value
        token: ${pob-b-port}
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - name: c
    image: registry.k8s.io/pause:3.10
    env: [{name: SERVICE_HOST, value: "${pob-b-ip}:${pob-b-port}"}]
`,
		strings.Replace(pod("pod-b"), "[{containerPort: 80}]", "[{name: http, containerPort: 80}]", 1))
	s.apply(text).want(t, 0)
	ip, _, _ := unstructured.NestedString(s.live("v1/pods", s.ns, "pod-b").Object, "status", "podIP")
	body, _ := s.live("v1/pods", s.ns, "pod-a").MarshalJSON()
	if ip == "" || !strings.Contains(string(body), `"value":"`+ip+`:80"`) {
		t.Errorf("pod-a does not hold %s:80", ip)
	}
	// Again: the same values, nothing to change; and then the other way round.
	s.apply(text).want(t, 0).did(t, "Pod", "pod-a", plan.Unchanged)
	result := s.destroy().want(t, 0)
	if a, b := result.object(t, "Pod", "pod-a"), result.object(t, "Pod", "pod-b"); b.StartedAt < a.ReadyAt {
		t.Errorf("pod-b was deleted at %v, before pod-a was gone at %v", b.StartedAt, a.ReadyAt)
	}
}

func TestApplyTimeMutationFollowsItsSourceAndHidesSecrets(t *testing.T) {
	s := newScene(t)
	const first, second = "Zmlyc3QtdmFsdWU=", "c2Vjb25kLXZhbHVl" // first-value, second-value
	bundle := func(value string) string {
		return documents(
			"apiVersion: v1\nkind: Secret\nmetadata: {name: source, namespace: \"{ns}\"}\ndata: {token: "+value+"}\n",
			`apiVersion: v1
kind: ConfigMap
metadata:
  name: target
  namespace: {ns}
  annotations:
    config.kubernetes.io/apply-time-mutation: |
      - {sourceRef: {kind: Secret, name: source}, sourcePath: $.data.token, targetPath: $.data.token}
data: {token: filled when applied}
`)
	}
	s.apply(bundle(first)).want(t, 0)
	result := s.apply(bundle(second), "-v").want(t, 0)
	// The target's own text did not change, its source did.
	result.did(t, "ConfigMap", "target", plan.Configured)
	live, _, _ := unstructured.NestedString(s.live("v1/configmaps", s.ns, "target").Object, "data", "token")
	if live != second {
		t.Error("the target does not hold the source's new value")
	}
	if strings.Contains(result.stdout+result.stderr, first) || strings.Contains(result.stdout+result.stderr, second) {
		t.Error("a Secret's value is shown")
	}
}

func TestEmptySet(t *testing.T) {
	s := newScene(t)
	s.apply("# nothing\n", "--allow-empty").want(t, 0)
	if s.live("v1/configmaps", s.ns, "inv") == nil {
		t.Error("there is no inventory")
	}
	s.destroy().want(t, 0)
	s.missing("v1/configmaps", "inv")
}

func TestCRDAndResourceTogether(t *testing.T) {
	s := newScene(t)
	// The resource stands first, and is deleted first.
	result := s.apply(documents(widget, widgets)).want(t, 0)
	crdName := "widgets." + s.ns + ".example.com"
	result.did(t, "Widget", "one", plan.Created)
	if crd, w := result.object(t, "CustomResourceDefinition", crdName), result.object(t, "Widget", "one"); w.StartedAt < crd.ReadyAt {
		t.Errorf("the resource was applied at %v, before its CRD was ready at %v", w.StartedAt, crd.ReadyAt)
	}
	result = s.destroy().want(t, 0)
	result.did(t, "Widget", "one", plan.Pruned)
	if crd, w := result.object(t, "CustomResourceDefinition", crdName), result.object(t, "Widget", "one"); crd.StartedAt < w.ReadyAt {
		t.Errorf("the CRD was deleted at %v, before its resource was gone at %v", crd.StartedAt, w.ReadyAt)
	}
	if s.live("apiextensions.k8s.io/v1/customresourcedefinitions", "", crdName) != nil {
		t.Error("the CRD is there")
	}
}

func TestContinueOnError(t *testing.T) {
	s := newScene(t)
	// Two versions, neither of them stored: the server refuses.
	invalid := strings.Replace(widgets, "storage: true", "storage: false", 1)
	s.goneAfter("apiextensions.k8s.io/v1/customresourcedefinitions", "widgets."+s.ns+".example.com")
	result := s.apply(documents(invalid, pod("one"))).want(t, 1)
	result.did(t, "CustomResourceDefinition", "widgets."+s.ns+".example.com", plan.Failed)
	result.did(t, "Pod", "one", plan.Created)
	result.tells(t, "must have exactly one version marked as storage version")
}

func TestServerSideApplyOfDeploymentAndAPIService(t *testing.T) {
	s := newOwnScene(t)
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
	s := newScene(t)
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
