package write_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle/cluster/clustertest"
	"brine/bundle/plan"
	"brine/bundle/report"
	"brine/cmd/brine/clitest"
)

// immutable is a ConfigMap that can only be recreated.
func immutable(data string) string {
	return clitest.ConfigMapOf("web", data, "annotations: {brine.dev/on-immutable: recreate}") + "immutable: true\n"
}

// refuseNew refuses new ConfigMaps of the fixture whose data has the key "bad".
// Updates are let through.
func refuseNew(s *clitest.Fixture) {
	s.Helper()
	s.Cluster.Needs(s.TB, 30, "ValidatingAdmissionPolicies")
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
	s.GoneAfter(group+"validatingadmissionpolicies", s.NS)
	s.GoneAfter(group+"validatingadmissionpolicybindings", s.NS)
	s.Create(group+"validatingadmissionpolicies", policy)
	s.Create(group+"validatingadmissionpolicybindings", binding)
	s.Everywhere("the policy refuses", func() bool {
		u := s.Parsed(clitest.ConfigMapOf("web", "{bad: x}"))
		_, err := s.Resources("v1/configmaps").Namespace(s.NS).Create(s.Context(), u, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err != nil && strings.Contains(err.Error(), "nothing bad")
	})
}

func TestRecreateIsRefusedBeforeItDeletes(t *testing.T) {
	s := clitest.New(t)
	s.Apply(immutable("{good: a}")).Want(t, 0)
	uid := s.ConfigMap("web").GetUID()
	refuseNew(s)
	s.Preview(immutable("{bad: b}")).Want(t, 1).Prints(t, "nothing bad is let in").Did(t, "ConfigMap", "web", plan.Failed)
	p := s.Proxied()
	s.Apply(immutable("{bad: b}")).Want(t, 1).Prints(t, "nothing bad is let in", "it is kept as it is").Did(t, "ConfigMap", "web", plan.Failed)
	if live := s.ConfigMap("web"); live == nil || live.GetUID() != uid {
		t.Error("the object was deleted for one that is refused")
	}
	if slices.ContainsFunc(p.Writes(), func(r clustertest.Request) bool {
		return r.Method == http.MethodDelete && strings.HasSuffix(r.Path, "/web")
	}) {
		t.Error("a deletion was sent")
	}
	s.Apply(immutable("{good: b}")).Want(t, 0).Did(t, "ConfigMap", "web", plan.Recreated)
}

// What the server filled in belongs to nobody, so no apply takes it away: where it stands in
// the way of a strategy, the object is recreated, if that is allowed, and its pods may stay.
func TestDefaultsThatAnApplyLeaves(t *testing.T) {
	s := clitest.New(t)
	for _, c := range []struct{ kind, strategy string }{
		{"Deployment", "strategy: {type: Recreate}"}, {"StatefulSet", "updateStrategy: {type: OnDelete}"},
	} {
		workload := func(more string) string {
			return "apiVersion: apps/v1\nkind: " + c.kind + "\nmetadata: {name: web, namespace: '{ns}'}\nspec:\n  replicas: 0\n  " + more + `
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: 'registry.k8s.io/pause:3.10'}]}
`
		}
		s.Apply(workload("")).Want(t, 0)
		changed, orphan := workload(c.strategy), "--recreate="+c.kind+":orphan"
		for _, run := range []clitest.Outcome{s.Preview(changed), s.Apply(changed)} {
			run.Want(t, report.ExitFailed).Prints(t, "rollingUpdate is not in the bundle; the object on the cluster has it", "--recreate="+c.kind+".apps").Did(t, c.kind, "web", plan.Failed)
		}
		s.Preview(changed, orphan).Want(t, 0).Did(t, c.kind, "web", plan.Recreated)
		s.Apply(changed, orphan).Want(t, 0).Did(t, c.kind, "web", plan.Recreated)
		s.Apply(changed).Want(t, 0).Did(t, c.kind, "web", plan.Unchanged)
	}
}

func TestRecreatePutsTheOldOneBack(t *testing.T) {
	s := clitest.New(t)
	s.Apply(immutable("{good: a}")).Want(t, 0)
	old := s.ConfigMap("web")
	p := s.Proxied()
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
	s.Apply(immutable("{good: b}")).Want(t, 1).Prints(t, "not any more", "the old one was restored").Did(t, "ConfigMap", "web", plan.Failed)
	live := s.ConfigMap("web")
	if data := clitest.DataOf(live); data["good"] != "a" || live.GetUID() == old.GetUID() {
		t.Errorf("it holds %v", data)
	}
	if fmt.Sprint(live.GetAnnotations(), live.GetLabels()) != fmt.Sprint(old.GetAnnotations(), old.GetLabels()) {
		t.Errorf("it was put back with %v %v", live.GetAnnotations(), live.GetLabels())
	}
	if len(s.Members()) != 1 {
		t.Errorf("the inventory holds %v", s.Members())
	}
	p.Intercept(nil)
	s.Apply(immutable("{good: b}")).Want(t, 0).Did(t, "ConfigMap", "web", plan.Recreated)
	s.Apply(immutable("{good: b}")).Want(t, 0).Did(t, "ConfigMap", "web", plan.Unchanged)
}

func TestRecreateFindsTheNameTaken(t *testing.T) {
	for name, act := range map[string]func(s *clitest.Fixture, second *clitest.Fixture){
		"adopted": func(s *clitest.Fixture, second *clitest.Fixture) {
			second.Apply(clitest.ConfigMapOf("web", "{good: a}")+"immutable: true\n", "--inventory-policy=adopt-all").Want(s, 0)
		},
		"kept": func(s *clitest.Fixture, _ *clitest.Fixture) {
			s.PatchAs("somebody", "v1/configmaps", "web", `{"metadata":{"annotations":{"cli-utils.sigs.k8s.io/on-remove":"keep"}}}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := clitest.New(t)
			s.Apply(immutable("{good: a}")).Want(t, 0)
			uid := s.ConfigMap("web").GetUID()
			second := s.Other("second")
			before(s.Proxied(), http.MethodDelete, "/configmaps/web", func() { act(s, second) })
			s.Apply(immutable("{good: b}")).Want(t, 1).Did(t, "ConfigMap", "web", plan.Failed)
			if live := s.ConfigMap("web"); live == nil || live.GetUID() != uid {
				t.Error("it was deleted nevertheless")
			}
		})
	}
}

// What another client makes under the name, before the deletion or after it, is never
// deleted, and never taken for a loss.
func TestRecreateNeverDeletesAnothersNewObject(t *testing.T) {
	replace := func(s *clitest.Fixture) {
		if live := s.ConfigMap("web"); live != nil {
			s.DeleteConfigMap("web")
		}
		s.Create("v1/configmaps", clitest.ConfigMapOf("web", "{theirs: x}")+"immutable: true\n")
	}
	for _, how := range []string{"recreate", "orphan"} {
		for _, method := range []string{http.MethodDelete, http.MethodPatch} {
			t.Run(how+" "+method, func(t *testing.T) {
				s := clitest.New(t)
				text := func(data string) string { return strings.Replace(immutable(data), "recreate", how, 1) }
				s.Apply(text("{good: a}")).Want(t, 0)
				p := s.Proxied()
				var deleted atomic.Bool
				p.Intercept(func(r clustertest.Request) (a clustertest.Action) {
					switch {
					case r.DryRun || !strings.HasSuffix(r.Path, "/configmaps/web"):
					case r.Method == http.MethodDelete && method == http.MethodDelete && deleted.CompareAndSwap(false, true):
						a.Before = func() { replace(s) }
					case r.Method == http.MethodDelete:
						deleted.Store(true)
					case r.Method == http.MethodPatch && method == http.MethodPatch && deleted.CompareAndSwap(true, false):
						a.Before = func() { replace(s) }
					}
					return a
				})
				o := s.Apply(text("{good: b}")).Want(t, 1).Did(t, "ConfigMap", "web", plan.Failed)
				if !strings.Contains(o.Error, "another client") || strings.Contains(o.Error, "lost") {
					t.Errorf("it says %s", o.Error)
				}
				if data := s.Data("web"); data["theirs"] != "x" {
					t.Errorf("it holds %v", data)
				}
			})
		}
	}
}

// A Job is not created as it is read, and a quota counts the old object too.
func TestRecreatePutsAJobBackUnderAQuota(t *testing.T) {
	s := clitest.New(t)
	annotations := "  annotations: {brine.dev/on-immutable: recreate}\n"
	text := func(image string) string {
		return "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: once\n  namespace: {ns}\n" + annotations +
			"spec:\n  suspend: true\n  template: {spec: {restartPolicy: Never, containers: [{name: c, image: " + image + "}]}}\n"
	}
	s.Apply(text("example.com/a"), "--wait=applied").Want(t, 0)
	s.Create("v1/resourcequotas", "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: one, namespace: \"{ns}\"}\nspec: {hard: {count/jobs.batch: 1}}\n")
	s.Eventually("the quota counts", func() bool {
		used, _ := s.Live("v1/resourcequotas", s.NS, "one").Object["status"].(map[string]any)["used"].(map[string]any)
		return fmt.Sprint(used["count/jobs.batch"]) == "1"
	})
	p := s.Proxied()
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
	s.Apply(text("example.com/b"), "--wait=applied").Want(t, 1).Prints(t, "the old one was restored", "exceeded quota")
	job := s.Live("batch/v1/jobs", s.NS, "once")
	if job == nil || !strings.Contains(fmt.Sprint(job.Object["spec"]), "example.com/a") {
		t.Fatalf("the Job is %v", job)
	}
	p.Intercept(nil)
	s.Apply(text("example.com/b"), "--wait=applied").Want(t, 0).Did(t, "Job", "once", plan.Recreated)
}

// A run that is interrupted while the old object still ends does not leave it lost.
func TestInterruptedWhileTheOldOneEnds(t *testing.T) {
	s := clitest.New(t)
	s.Apply(immutable("{good: a}")).Want(t, 0)
	s.PatchConfigMap("web", `{"metadata":{"finalizers":["example.com/slow"]}}`)
	ctx, interrupt := context.WithCancelCause(t.Context())
	p := s.Proxied()
	var deleted, reads atomic.Int32
	p.Intercept(func(r clustertest.Request) clustertest.Action {
		switch {
		case !strings.HasSuffix(r.Path, "/configmaps/web") || r.DryRun:
		case r.Method == http.MethodDelete:
			return clustertest.Action{After: func() { deleted.Add(1); interrupt(report.ErrTerminated) }}
		case r.Method == http.MethodGet && deleted.Load() > 0 && reads.Add(1) == 2:
			return clustertest.Action{Before: func() { s.PatchConfigMap("web", `{"metadata":{"finalizers":null}}`) }}
		}
		return clustertest.Action{}
	})
	clitest.RunContext(ctx, t, s.Kubeconfig, "apply", "--inventory", s.Inventory, "--namespace", s.NS, "-f", s.File(immutable("{good: b}"))).
		Want(t, report.ExitTerminated).Prints(t, "the old one was restored")
	live := s.ConfigMap("web")
	if live == nil || live.GetDeletionTimestamp() != nil {
		t.Fatalf("it is lost: %v", live)
	}
	if data, _, _ := unstructured.NestedStringMap(live.Object, "data"); data["good"] != "a" {
		t.Errorf("it holds %v", data)
	}
}

// Nor where the answer to its deletion was lost.
func TestInterruptedWhileTheOldOneEndsAfterALostAnswer(t *testing.T) {
	s := clitest.New(t)
	s.Apply(immutable("{good: a}")).Want(t, 0)
	s.PatchConfigMap("web", `{"metadata":{"finalizers":["example.com/slow"]}}`)
	ctx, interrupt := context.WithCancelCause(t.Context())
	p := s.Proxied()
	var deleted, reads atomic.Int32
	p.Intercept(func(r clustertest.Request) clustertest.Action {
		switch {
		case !strings.HasSuffix(r.Path, "/configmaps/web") || r.DryRun:
		case r.Method == http.MethodDelete && deleted.Add(1) == 1:
			return clustertest.Action{CutAfter: true}
		case r.Method == http.MethodGet && deleted.Load() > 0:
			switch reads.Add(1) {
			case 2:
				return clustertest.Action{After: func() { interrupt(report.ErrTerminated) }}
			case 4:
				return clustertest.Action{Before: func() { s.PatchConfigMap("web", `{"metadata":{"finalizers":null}}`) }}
			}
		}
		return clustertest.Action{}
	})
	clitest.RunContext(ctx, t, s.Kubeconfig, "apply", "--inventory", s.Inventory, "--namespace", s.NS, "-f", s.File(immutable("{good: b}"))).
		Want(t, report.ExitTerminated).Prints(t, "the old one was restored")
	if live := s.ConfigMap("web"); live == nil || live.GetDeletionTimestamp() != nil {
		t.Fatalf("it is lost: %v", live)
	}
}
