package apply_test

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle/plan"
	"brine/bundle/report"
	"brine/cmd/brine/clitest"
)

// What is old serves until what is new does: a new object that failed, or is not
// ready within its own time, keeps all that would be pruned.
func TestNothingIsPrunedUntilAllIsReady(t *testing.T) {
	failed := clitest.ConfigMap("renamed", `annotations: {brine.dev/failed-when: "has(self.data)"}`)
	late := clitest.PodWith("late", "schedulingGates: [{name: example.com/wait}]", "annotations: {brine.dev/timeout: 1s}")
	for _, c := range []struct {
		name, bundle, flag, exitReason string
		keeps                          bool
	}{
		{"failed", clitest.Documents(clitest.ConfigMap("stays"), failed), "", "ConfigMap {ns}/renamed is not ready", true},
		{"its own time-out", clitest.Documents(clitest.ConfigMap("stays"), late), "", "Pod {ns}/late is not ready", true},
		{"two", clitest.Documents(clitest.ConfigMap("stays"), failed, late), "", "1 more object are not ready", true},
		{"the run's time-out", clitest.Documents(clitest.ConfigMap("stays"), strings.Replace(late, "1s", `"0"`, 1)), "--timeout=10s", "Pod {ns}/late is not ready", true},
		{"applied is enough", clitest.Documents(clitest.ConfigMap("stays"), failed), "--wait=applied", "", false},
		{"anyway", clitest.Documents(clitest.ConfigMap("stays"), failed), "--prune-anyway", "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := clitest.New(t)
			s.Apply(clitest.Documents(clitest.ConfigMap("stays"), clitest.ConfigMap("user", clitest.DependsOn("/namespaces/{ns}/ConfigMap/old")), clitest.ConfigMap("old"))).Want(t, 0)
			var flags []string
			if c.flag != "" {
				flags = append(flags, c.flag)
			}
			result := s.Apply(c.bundle, flags...)
			if c.flag != "--wait=applied" { // which may have ended before anybody saw it fail
				result.Want(t, report.ExitNotReady)
			}
			if !c.keeps {
				result.Did(t, "ConfigMap", "old", plan.Pruned)
				s.Missing("v1/configmaps", "old", "user")
				return
			}
			for _, name := range []string{"old", "user"} {
				o := result.Did(t, "ConfigMap", name, plan.Skipped)
				if want := strings.ReplaceAll(c.exitReason, "{ns}", s.NS); !strings.Contains(o.Reason, want) {
					t.Errorf("%s: the reason is %q, want %q", name, o.Reason, want)
				}
				// After the run's time nothing is pruned, whatever the flags.
				if remedy := strings.Contains(o.Reason, "--prune-anyway"); remedy != (c.flag == "") {
					t.Errorf("%s: the reason is %q", name, o.Reason)
				}
			}
			s.Exists("v1/configmaps", "old", "user")
			// Once all is ready they go.
			s.Apply(clitest.ConfigMap("stays"), "--timeout=60s").Want(t, 0).Did(t, "ConfigMap", "old", plan.Pruned)
			s.Missing("v1/configmaps", "old", "user")
		})
	}
}

// --prune-anyway is about readiness: what could not be applied keeps the old.
func TestPruneAnywayKeepsAfterAFailedApply(t *testing.T) {
	s := clitest.New(t)
	s.Apply(clitest.ConfigMap("old")).Want(t, 0)
	bad := clitest.RefusedService("bad")
	s.Apply(bad, "--prune-anyway").Want(t, report.ExitFailed).Did(t, "ConfigMap", "old", plan.Skipped)
	s.Exists("v1/configmaps", "old")
}

func TestApplyFailureStopsPruning(t *testing.T) {
	s := clitest.New(t)
	s.Apply(clitest.Documents(clitest.ConfigMap("a"), clitest.ConfigMap("b"))).Want(t, 0)
	bad := clitest.RefusedService("bad")
	result := s.Apply(clitest.Documents(clitest.ConfigMap("a"), bad)).Want(t, 1)
	result.Did(t, "Service", "bad", plan.Failed)
	if o := result.Did(t, "ConfigMap", "b", plan.Skipped); !strings.Contains(o.Reason, "could not be applied") {
		t.Errorf("the reason is %q", o.Reason)
	}
	s.Exists("v1/configmaps", "b")
	if got := s.Members(); !slices.Contains(got, "ConfigMap "+s.NS+"/b") {
		t.Errorf("the inventory holds %v", got)
	}
	// Once it is mended, what is not wanted goes.
	s.Apply(clitest.ConfigMap("a")).Want(t, 0).Did(t, "ConfigMap", "b", plan.Pruned)
}

func TestSkippedIsNotSuccess(t *testing.T) {
	s := clitest.New(t)
	bad := clitest.RefusedService("bad")
	result := s.Apply(clitest.Documents(bad, clitest.ConfigMap("a", clitest.DependsOn("/namespaces/{ns}/Service/bad")), clitest.ConfigMap("b", clitest.DependsOn("/namespaces/{ns}/ConfigMap/a")))).Want(t, 1)
	for _, name := range []string{"a", "b"} {
		if o := result.Did(t, "ConfigMap", name, plan.Skipped); o.Ready != "" || o.Reason == "" {
			t.Errorf("%s is %q: %q", name, o.Ready, o.Reason)
		}
	}
	data, _, _ := unstructured.NestedStringMap(s.ConfigMap("inv").Object, "data")
	for key, value := range data {
		if strings.Contains(value, "Succeeded") {
			t.Errorf("the inventory says %s of %s", value, key)
		}
	}
	// Nor does a destroy succeed that leaves something.
	namespace := "apiVersion: v1\nkind: Namespace\nmetadata: {name: \"{ns}-shared\"}\n"
	s.GoneAfter("v1/namespaces", s.NS+"-shared")
	s.Apply(namespace).Want(t, 0)
	s.Create("v1/configmaps", strings.ReplaceAll(clitest.ConfigMap("foreign"), "namespace: {ns}\n", "namespace: {ns}-shared\n"))
	s.Destroy().Want(t, 1).Prints(t, "outside this inventory").Did(t, "Namespace", s.NS+"-shared", plan.Skipped)
	if got := s.Members(); len(got) != 1 {
		t.Errorf("the inventory holds %v, want the namespace that stays", got)
	}
}
