package cli

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"brine/bundle/plan"
	"brine/bundle/report"
	"brine/inventory"
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
				// After the run's time nothing is pruned, whatever the flags.
				if remedy := strings.Contains(o.Reason, "--prune-anyway"); remedy != (c.flag == "") {
					t.Errorf("%s: the reason is %q", name, o.Reason)
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
