package main

import (
	"strings"
	"testing"

	"brine/bundle/plan"
	"brine/bundle/report"
)

// What is old serves until what is new does: a new object that failed, or is not
// ready within its own time, keeps all that would be pruned.
func TestNothingIsPrunedUntilAllIsReady(t *testing.T) {
	failed := configMap("renamed", `annotations: {brine.dev/failed-when: "has(self.data)"}`)
	late := podWith("late", "schedulingGates: [{name: example.com/wait}]", "annotations: {brine.dev/timeout: 1s}")
	for _, c := range []struct {
		name, bundle, flag, exitReason string
		keeps                          bool
	}{
		{"failed", documents(configMap("stays"), failed), "", "ConfigMap {ns}/renamed is not ready", true},
		{"its own time-out", documents(configMap("stays"), late), "", "Pod {ns}/late is not ready", true},
		{"two", documents(configMap("stays"), failed, late), "", "1 more object are not ready", true},
		{"the run's time-out", documents(configMap("stays"), strings.Replace(late, "1s", `"0"`, 1)), "--timeout=3s", "Pod {ns}/late is not ready", true},
		{"applied is enough", documents(configMap("stays"), failed), "--wait=applied", "", false},
		{"anyway", documents(configMap("stays"), failed), "--prune-anyway", "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newFixture(t)
			s.apply(documents(configMap("stays"), configMap("user", dependsOn("/namespaces/{ns}/ConfigMap/old")), configMap("old"))).want(t, 0)
			var flags []string
			if c.flag != "" {
				flags = append(flags, c.flag)
			}
			result := s.apply(c.bundle, flags...)
			if c.flag != "--wait=applied" { // which may have ended before anybody saw it fail
				result.want(t, report.ExitNotReady)
			}
			if !c.keeps {
				result.did(t, "ConfigMap", "old", plan.Pruned)
				s.missing("v1/configmaps", "old", "user")
				return
			}
			for _, name := range []string{"old", "user"} {
				o := result.did(t, "ConfigMap", name, plan.Skipped)
				if want := strings.ReplaceAll(c.exitReason, "{ns}", s.ns); !strings.Contains(o.Reason, want) {
					t.Errorf("%s: the reason is %q, want %q", name, o.Reason, want)
				}
			}
			s.exists("v1/configmaps", "old", "user")
			// Once all is ready they go.
			s.apply(configMap("stays"), "--timeout=60s").want(t, 0).did(t, "ConfigMap", "old", plan.Pruned)
			s.missing("v1/configmaps", "old", "user")
		})
	}
}

// --prune-anyway is about readiness: what could not be applied keeps the old.
func TestPruneAnywayKeepsAfterAFailedApply(t *testing.T) {
	s := newFixture(t)
	s.apply(configMap("old")).want(t, 0)
	bad := "apiVersion: v1\nkind: Service\nmetadata: {name: bad, namespace: \"{ns}\"}\nspec: {ports: [{port: 99999}]}\n"
	s.apply(bad, "--prune-anyway").want(t, report.ExitFailed).did(t, "ConfigMap", "old", plan.Skipped)
	s.exists("v1/configmaps", "old")
}

// A bundle that has lost all its objects, and still names some as absent, is no
// less of a mistake than an empty one.
func TestOnlyAbsentEntriesPruneNothing(t *testing.T) {
	s := newFixture(t)
	s.apply(documents(configMap("a"), configMap("b"))).want(t, 0)
	absent := `x: {k8s: [object_absent, {kind: ConfigMap}, {apiVersion: v1}, {name: a}, {namespace: "{ns}"}]}` + "\n"
	p := s.proxied()
	s.apply(absent, "--input-format=high").want(t, report.ExitBadBundle).prints(t, "--allow-empty", "1 object of inventory")
	s.preview(absent, "--input-format=high").want(t, report.ExitBadBundle).prints(t, "--allow-empty")
	if w := p.Writes(); len(w) > 0 {
		t.Errorf("it wrote %v", describe(w))
	}
	s.exists("v1/configmaps", "a", "b")
	s.apply(absent, "--input-format=high", "--allow-empty").want(t, 0).did(t, "ConfigMap", "b", plan.Pruned)
	s.missing("v1/configmaps", "a", "b")
	// Members that are all named are meant.
	s.apply(configMap("a")).want(t, 0)
	s.apply(absent, "--input-format=high").want(t, 0).did(t, "ConfigMap", "a", plan.Pruned)
}
