package apply_test

import (
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"brine/bundle"
	"brine/bundle/cluster/clustertest"
	"brine/bundle/plan"
	"brine/bundle/report"
	"brine/cmd/brine/clitest"
)

// outsider creates a ConfigMap that belongs to no inventory, and is ready when its data
// say so.
func outsider(s *clitest.Fixture, state string, more map[string]any) {
	s.Helper()
	meta := map[string]any{"name": "outside", "namespace": s.NS, "annotations": map[string]any{"brine.dev/ready-when": `self.data.state == "done"`}}
	maps.Copy(meta, more)
	if _, err := s.Resources("v1/configmaps").Namespace(s.NS).Create(s.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": map[string]any{"state": state},
	}}, metav1.CreateOptions{}); err != nil {
		s.Fatal(err)
	}
}

func patchOutsider(s *clitest.Fixture, patch string) {
	if _, err := s.Resources("v1/configmaps").Namespace(s.NS).Patch(s.Context(), "outside", types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "somebody"}); err != nil {
		s.Error(err)
	}
}

// onSecondRead acts when the object outside is read again: it is waited for then.
func onSecondRead(s *clitest.Fixture, act func()) *clustertest.Proxy {
	s.Helper()
	p := s.Proxied()
	var reads atomic.Int32
	p.Intercept(func(r clustertest.Request) clustertest.Action {
		if r.Method == http.MethodGet && strings.HasSuffix(r.Path, "/configmaps/outside") && reads.Add(1) == 2 {
			return clustertest.Action{Before: act}
		}
		return clustertest.Action{}
	})
	return p
}

func needsOutside(name string) string {
	return clitest.ConfigMap(name, clitest.DependsOn("/namespaces/{ns}/ConfigMap/outside"))
}

func outsideOf(t *testing.T, o clitest.Outcome) *report.ObjectResult {
	t.Helper()
	if o.Result == nil || len(o.Result.Outside) != 1 {
		t.Fatalf("the result has no object outside the bundle:\n%s\n%s", o.Stderr, clitest.Clip(o.Stdout))
	}
	return o.Result.Outside[0]
}

func TestObjectOutsideTheBundleIsWaitedFor(t *testing.T) {
	s := clitest.New(t)
	outsider(s, "busy", nil)
	p := onSecondRead(s, func() { patchOutsider(s, `{"data":{"state":"done"}}`) })
	text := clitest.Documents(needsOutside("late"), clitest.ConfigMap("early"))
	result := s.Apply(text).Want(t, 0)
	late, outside := result.Did(t, "ConfigMap", "late", plan.Created), outsideOf(t, result)
	early := result.Did(t, "ConfigMap", "early", plan.Created)
	if outside.Action != plan.Awaited || outside.Ready != report.StateReady || len(outside.Waits) == 0 || late.StartedAt < outside.ReadyAt {
		t.Errorf("outside: %+v, the object that depends on it: %+v", outside, late)
	}
	if late.After == nil || late.After.Name != "outside" || !slices.ContainsFunc(late.Needs, func(n report.Need) bool { return n.Name == "outside" && n.Want == "ready" }) {
		t.Errorf("it came after %+v, and needs %+v", late.After, late.Needs)
	}
	// The path ends with the object that ended last: on a slow machine that may be the other.
	if path := result.Result.CriticalPath.Steps; late.ReadyAt > early.ReadyAt && !slices.ContainsFunc(path, func(s report.PathStep) bool { return s.Name == "outside" && s.Waiting > 0 }) {
		t.Errorf("the critical path is %+v", path)
	}
	if n := result.Result.Summary; n.Created != 2 || n.Ready != 2 || n.NotReady != 0 {
		t.Errorf("%+v", n)
	}
	s.Holds("ConfigMap early", "ConfigMap late")
	live := s.ConfigMap("outside")
	for _, f := range live.GetManagedFields() {
		if f.Manager == bundle.FieldManager {
			t.Error("brine wrote the object outside the bundle")
		}
	}
	// Nothing waits for it where nothing is sent.
	patchOutsider(s, `{"data":{"state":"busy"}}`)
	before := len(p.Requests())
	if again := s.Apply(text).Want(t, 0); again.Result.Summary.Unchanged != 2 || len(again.Result.Outside) != 0 {
		t.Errorf("%+v, outside %v", again.Result.Summary, again.Result.Outside)
	}
	reads := slices.DeleteFunc(p.Requests()[before:], func(r clustertest.Request) bool { return !strings.HasSuffix(r.Path, "/configmaps/outside") })
	if len(reads) != 1 {
		t.Errorf("it was read %d times, want once", len(reads))
	}
	s.Destroy().Want(t, 0)
	s.Exists("v1/configmaps", "outside")
}

func TestObjectOutsideTheBundleIsAbsent(t *testing.T) {
	s := clitest.New(t)
	p := s.Proxied()
	text := clitest.Documents(clitest.ConfigMap("early"), needsOutside("late"))
	says := []string{"bundle.yaml:13: ", "/late: ", "depends on ConfigMap " + s.NS + "/outside, which is neither in the bundle nor on the cluster: apply it first"}
	s.Apply(text).Want(t, report.ExitBadBundle).Prints(t, says...)
	s.Preview(text).Want(t, report.ExitBadBundle).Prints(t, says...)
	s.Apply(text, "--only", "ConfigMap/late").Want(t, report.ExitBadBundle).Prints(t, says...)
	s.Apply(clitest.Documents(clitest.Widgets, clitest.ConfigMap("late", clitest.DependsOn("{ns}.example.com/namespaces/{ns}/Widget/one")))).
		Want(t, report.ExitBadBundle).Prints(t, "the bundle has its CRD (", "Add the object")
	if writes := p.Writes(); len(writes) > 0 {
		t.Errorf("it wrote: %v", clitest.Describe(writes))
	}
	s.Apply(text, "--only", "ConfigMap/early").Want(t, 0)
	s.Apply(text, "--validation=skip-invalid").Want(t, report.ExitFailed).Did(t, "ConfigMap", "late", plan.Skipped)
}

func TestObjectOutsideTheBundleIsUnknown(t *testing.T) {
	s := clitest.New(t)
	outsider(s, "done", nil)
	p := s.Proxied()
	p.Intercept(func(r clustertest.Request) clustertest.Action {
		if strings.HasSuffix(r.Path, "/configmaps/outside") {
			return clustertest.Action{Status: http.StatusForbidden, Message: "not for you"}
		}
		return clustertest.Action{}
	})
	says := []string{"bundle.yaml:6: ", "cannot be read from the cluster: ", "not for you", "Grant the right"}
	s.Apply(needsOutside("late")).Want(t, report.ExitUnreachable).Prints(t, says...)
	s.Preview(needsOutside("late")).Want(t, report.ExitUnreachable).Prints(t, says...)
	s.Apply(needsOutside("late"), "--validation=skip-invalid").Want(t, report.ExitUnreachable)
	if writes := p.Writes(); len(writes) > 0 {
		t.Errorf("it wrote: %v", clitest.Describe(writes))
	}
}

func TestObjectOutsideTheBundleIsDeletedMeanwhile(t *testing.T) {
	s := clitest.New(t)
	outsider(s, "busy", nil)
	s.Apply(clitest.ConfigMap("old")).Want(t, 0)
	onSecondRead(s, func() {
		if err := s.Resources("v1/configmaps").Namespace(s.NS).Delete(s.Context(), "outside", metav1.DeleteOptions{}); err != nil {
			s.Error(err)
		}
	})
	result := s.Apply(needsOutside("late")).Want(t, report.ExitNotReady)
	if o := outsideOf(t, result); o.Ready != report.StateFailed || !strings.Contains(o.Reason, "was deleted while it was waited for") {
		t.Errorf("%+v", o)
	}
	if o := result.Did(t, "ConfigMap", "late", plan.Skipped); !strings.Contains(o.Reason, "outside ready (depends-on annotation), which is not ready: was deleted") {
		t.Errorf("the reason is %q", o.Reason)
	}
	result.Did(t, "ConfigMap", "old", plan.Skipped)
}

func TestObjectOutsideTheBundleIsNotReadyInTime(t *testing.T) {
	for name, c := range map[string]struct {
		more   map[string]any
		delete bool
		flags  []string
		reason string
	}{
		"for the whole run": {flags: []string{"--timeout=10s"}, reason: "ready-when does not hold"},
		"for its own time":  {more: map[string]any{"annotations": map[string]any{"brine.dev/ready-when": "false", "brine.dev/timeout": "1s"}}, reason: "not ready after 1s: ready-when does not hold"},
		"terminating":       {more: map[string]any{"annotations": map[string]any{}, "finalizers": []any{"example.com/hold"}}, delete: true, flags: []string{"--timeout=10s"}, reason: "example.com/hold"},
	} {
		t.Run(name, func(t *testing.T) {
			s := clitest.New(t)
			outsider(s, "busy", c.more)
			if c.delete {
				if err := s.Resources("v1/configmaps").Namespace(s.NS).Delete(t.Context(), "outside", metav1.DeleteOptions{}); err != nil {
					t.Fatal(err)
				}
				defer patchOutsider(s, `{"metadata":{"finalizers":null}}`)
			}
			result := s.Apply(needsOutside("late"), c.flags...).Want(t, report.ExitNotReady)
			if o := outsideOf(t, result); o.Ready != report.StateNotReady || !strings.Contains(o.Reason, c.reason) {
				t.Errorf("%+v", o)
			}
			if o := result.Did(t, "ConfigMap", "late", plan.Skipped); !strings.Contains(o.Reason, "needs ConfigMap "+s.NS+"/outside ready") {
				t.Errorf("the reason is %q", o.Reason)
			}
			if members := s.Members(); len(members) != 0 {
				t.Errorf("the inventory holds %v", members)
			}
		})
	}
}

// Nobody needs it any more: the run does not wait for the object of somebody else.
func TestObjectOutsideTheBundleIsNotWaitedForInVain(t *testing.T) {
	s := clitest.New(t)
	outsider(s, "busy", nil)
	bad := clitest.RefusedService("bad")
	late := clitest.ConfigMap("late", clitest.DependsOn("/namespaces/{ns}/ConfigMap/outside, /namespaces/{ns}/Service/bad"))
	result := s.Apply(clitest.Documents(late, bad), "--timeout=10m").Want(t, report.ExitFailed)
	result.Did(t, "ConfigMap", "late", plan.Skipped)
	if o := outsideOf(t, result); o.Ready != "" {
		t.Errorf("%+v", o)
	}
}

func TestPreviewOfAnObjectOutsideTheBundle(t *testing.T) {
	s := clitest.New(t)
	outsider(s, "busy", nil)
	result := s.Preview(needsOutside("late")).Want(t, 0)
	if o := outsideOf(t, result); o.Ready != report.StateNotReady {
		t.Errorf("%+v", o)
	}
	s.Preview(needsOutside("late"), "-o", "text").Want(t, 0).Prints(t, "To wait for, not in the bundle (1):", "on the cluster, not ready: ready-when does not hold", "needed by ConfigMap "+s.NS+"/late")
	saved := filepath.Join(t.TempDir(), "plan.json")
	s.Preview(needsOutside("late"), "--plan-out", saved).Want(t, 0)
	onSecondRead(s, func() { patchOutsider(s, `{"data":{"state":"done"}}`) })
	result = s.Apply(needsOutside("late"), "--plan", saved).Want(t, 0)
	result.Did(t, "ConfigMap", "late", plan.Created)
	// It is part of no drift.
	if err := s.Resources("v1/configmaps").Namespace(s.NS).Delete(t.Context(), "outside", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.Run("drift", nil).Want(t, 0)
}

// An object that another inventory holds is waited for, and stays with that.
func TestObjectOfAnotherInventoryIsWaitedFor(t *testing.T) {
	s := clitest.New(t)
	other := s.Other("other")
	other.Apply(clitest.PodWith("base", "schedulingGates: [{name: example.com/wait}]"), "--timeout=10s").Want(t, report.ExitNotReady)
	p := s.Proxied()
	var reads atomic.Int32
	p.Intercept(func(r clustertest.Request) clustertest.Action {
		if r.Method != http.MethodGet || !strings.HasSuffix(r.Path, "/pods/base") || reads.Add(1) != 2 {
			return clustertest.Action{}
		}
		return clustertest.Action{Before: func() {
			if _, err := s.Resources("v1/pods").Namespace(s.NS).Patch(s.Context(), "base", types.MergePatchType, []byte(`{"spec":{"schedulingGates":null}}`), metav1.PatchOptions{}); err != nil {
				s.Error(err)
			}
		}}
	})
	result := s.Apply(clitest.ConfigMap("late", clitest.DependsOn("/namespaces/{ns}/Pod/base"))).Want(t, 0)
	if o := outsideOf(t, result); o.Ready != report.StateReady || result.Object(t, "ConfigMap", "late").StartedAt < o.ReadyAt {
		t.Errorf("%+v", o)
	}
	s.Holds("ConfigMap late")
	s.Destroy().Want(t, 0)
	s.Exists("v1/pods", "base")
	other.Destroy().Want(t, 0)
}

// An API whose server is down says nothing of its objects.
func TestObjectOutsideTheBundleWhoseAPIIsDown(t *testing.T) {
	s := clitest.NewAlone(t)
	group := s.NS + ".example.com"
	if _, err := s.Resources("apiregistration.k8s.io/v1/apiservices").Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": map[string]any{"name": "v1." + group},
		"spec": map[string]any{"group": group, "version": "v1", "groupPriorityMinimum": int64(100), "versionPriority": int64(100), "insecureSkipTLSVerify": true,
			"service": map[string]any{"name": "absent", "namespace": s.NS}},
	}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	p := s.Proxied()
	s.Apply(clitest.ConfigMap("late", clitest.DependsOn(group+"/namespaces/{ns}/Thing/one"))).Want(t, report.ExitUnreachable).
		Prints(t, "bundle.yaml:6: ", "cannot be read from the cluster: ", "Run it again when its API is available")
	if writes := p.Writes(); len(writes) > 0 {
		t.Errorf("it wrote: %v", clitest.Describe(writes))
	}
}
