package cli

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"brine/bundle/cluster/clustertest"
	"brine/bundle/plan"
)

// immutable is a ConfigMap that can only be recreated.
func immutable(data string) string {
	return configMapOf("web", data, "annotations: {brine.dev/on-immutable: recreate}") + "immutable: true\n"
}

// refuseNew refuses new ConfigMaps of the fixture whose data has the key "bad".
// Updates are let through.
func (s *fixture) refuseNew() {
	s.Helper()
	policy := `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: "{ns}"}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]}
  validations: [{expression: "!has(object.data.bad) || object.metadata.name != 'web'", message: "nothing bad is let in"}]
`
	binding := `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: "{ns}"}
spec:
  policyName: "{ns}"
  validationActions: [Deny]
  matchResources: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: "{ns}"}}}
`
	const group = "admissionregistration.k8s.io/v1/"
	s.goneAfter(group+"validatingadmissionpolicies", s.ns)
	s.goneAfter(group+"validatingadmissionpolicybindings", s.ns)
	s.create(group+"validatingadmissionpolicies", policy)
	s.create(group+"validatingadmissionpolicybindings", binding)
	s.eventually("the policy refuses", func() bool {
		u := s.parsed(configMapOf("web", "{bad: x}"))
		_, err := s.resources("v1/configmaps").Namespace(s.ns).Create(s.Context(), u, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err != nil && strings.Contains(err.Error(), "nothing bad")
	})
}

func TestRecreateIsRefusedBeforeItDeletes(t *testing.T) {
	s := newFixture(t)
	s.apply(immutable("{good: a}")).want(t, 0)
	uid := s.live("v1/configmaps", s.ns, "web").GetUID()
	s.refuseNew()
	s.preview(immutable("{bad: b}")).want(t, 1).prints(t, "nothing bad is let in").did(t, "ConfigMap", "web", plan.Failed)
	p := s.proxied()
	s.apply(immutable("{bad: b}")).want(t, 1).prints(t, "nothing bad is let in", "it is kept as it is").did(t, "ConfigMap", "web", plan.Failed)
	if live := s.live("v1/configmaps", s.ns, "web"); live == nil || live.GetUID() != uid {
		t.Error("the object was deleted for one that is refused")
	}
	if slices.ContainsFunc(p.Writes(), func(r clustertest.Request) bool {
		return r.Method == http.MethodDelete && strings.HasSuffix(r.Path, "/web")
	}) {
		t.Error("a deletion was sent")
	}
	s.apply(immutable("{good: b}")).want(t, 0).did(t, "ConfigMap", "web", plan.Recreated)
}

func TestRecreatePutsTheOldOneBack(t *testing.T) {
	s := newFixture(t)
	s.apply(immutable("{good: a}")).want(t, 0)
	old := s.live("v1/configmaps", s.ns, "web")
	p := s.proxied()
	var deleted atomic.Bool
	p.Intercept(func(r clustertest.Request) clustertest.Action {
		switch {
		case !r.IsWrite() || !strings.HasSuffix(r.Path, "/configmaps/web"):
		case r.Method == http.MethodDelete:
			deleted.Store(true)
		case r.Method == http.MethodPatch && deleted.CompareAndSwap(true, false):
			return clustertest.Action{Status: http.StatusForbidden, Message: "not any more"}
		}
		return clustertest.Action{}
	})
	s.apply(immutable("{good: b}")).want(t, 1).prints(t, "not any more", "the old one was restored").did(t, "ConfigMap", "web", plan.Failed)
	live := s.live("v1/configmaps", s.ns, "web")
	if data := dataOf(t, live); data["good"] != "a" || live.GetUID() == old.GetUID() {
		t.Errorf("it holds %v", data)
	}
	if fmt.Sprint(live.GetAnnotations(), live.GetLabels()) != fmt.Sprint(old.GetAnnotations(), old.GetLabels()) {
		t.Errorf("it was put back with %v %v", live.GetAnnotations(), live.GetLabels())
	}
	if len(s.members()) != 1 {
		t.Errorf("the inventory holds %v", s.members())
	}
	p.Intercept(nil)
	s.apply(immutable("{good: b}")).want(t, 0).did(t, "ConfigMap", "web", plan.Recreated)
	s.apply(immutable("{good: b}")).want(t, 0).did(t, "ConfigMap", "web", plan.Unchanged)
}

func TestRecreateFindsTheNameTaken(t *testing.T) {
	for name, act := range map[string]func(s *fixture, second *fixture){
		"adopted": func(s *fixture, second *fixture) {
			second.apply(configMapOf("web", "{good: a}")+"immutable: true\n", "--inventory-policy=adopt-all").want(s, 0)
		},
		"kept": func(s *fixture, _ *fixture) {
			s.patchAs("somebody", "v1/configmaps", "web", `{"metadata":{"annotations":{"cli-utils.sigs.k8s.io/on-remove":"keep"}}}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t)
			s.apply(immutable("{good: a}")).want(t, 0)
			uid := s.live("v1/configmaps", s.ns, "web").GetUID()
			second := s.other("second")
			before(s.proxied(), http.MethodDelete, "/configmaps/web", func() { act(s, second) })
			s.apply(immutable("{good: b}")).want(t, 1).did(t, "ConfigMap", "web", plan.Failed)
			if live := s.live("v1/configmaps", s.ns, "web"); live == nil || live.GetUID() != uid {
				t.Error("it was deleted all the same")
			}
		})
	}
}

// A Job is not created as it is read, and a quota counts the old object too.
func TestRecreatePutsAJobBackUnderAQuota(t *testing.T) {
	s := newFixture(t)
	annotations := "  annotations: {brine.dev/on-immutable: recreate}\n"
	text := func(image string) string {
		return "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: once\n  namespace: {ns}\n" + annotations +
			"spec:\n  suspend: true\n  template: {spec: {restartPolicy: Never, containers: [{name: c, image: " + image + "}]}}\n"
	}
	s.apply(text("example.com/a"), "--wait=applied").want(t, 0)
	s.create("v1/resourcequotas", "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: one, namespace: \"{ns}\"}\nspec: {hard: {count/jobs.batch: 1}}\n")
	s.eventually("the quota counts", func() bool {
		used, _ := s.live("v1/resourcequotas", s.ns, "one").Object["status"].(map[string]any)["used"].(map[string]any)
		return fmt.Sprint(used["count/jobs.batch"]) == "1"
	})
	p := s.proxied()
	var deleted atomic.Bool
	p.Intercept(func(r clustertest.Request) clustertest.Action {
		switch {
		case !r.IsWrite() || !strings.HasSuffix(r.Path, "/jobs/once"):
		case r.Method == http.MethodDelete:
			deleted.Store(true)
		case r.Method == http.MethodPatch && deleted.CompareAndSwap(true, false):
			return clustertest.Action{Status: http.StatusForbidden, Message: "not any more"}
		}
		return clustertest.Action{}
	})
	s.apply(text("example.com/b"), "--wait=applied").want(t, 1).prints(t, "the old one was restored", "exceeded quota")
	job := s.live("batch/v1/jobs", s.ns, "once")
	if job == nil || !strings.Contains(fmt.Sprint(job.Object["spec"]), "example.com/a") {
		t.Fatalf("the Job is %v", job)
	}
	p.Intercept(nil)
	s.apply(text("example.com/b"), "--wait=applied").want(t, 0).did(t, "Job", "once", plan.Recreated)
}
