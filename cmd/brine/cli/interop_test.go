package cli

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"brine/bundle/cluster/clustertest"
	"brine/bundle/plan"
	"brine/inventory"
)

// kapply is cli-utils' own command line (scripts/peers/kapply), and a folder
// with a bundle for it.
type kapply struct {
	*fixture
	program string
	id      string
}

func newKapply(t *testing.T, s *fixture, id string) *kapply {
	t.Helper()
	var printed bytes.Buffer
	build := exec.Command(filepath.Join(root(t), "scripts", "peers", "build"), "kapply")
	build.Stderr = &printed
	out, err := build.Output()
	if err != nil {
		if os.Getenv("BRINE_TEST_REQUIRED") == "1" {
			t.Fatalf("build kapply: %v: %s", err, &printed)
		}
		t.Skipf("NO KAPPLY, NOTHING WAS TESTED (BRINE_TEST_REQUIRED=1 makes this a failure): %v: %s", err, &printed)
	}
	return &kapply{fixture: s, program: strings.TrimSpace(string(out)), id: id}
}

// run gives it the inventory, as its users do, beside the bundle.
func (k *kapply) run(command, text string, flags ...string) string {
	k.Helper()
	dir := k.TempDir()
	namespace, name, _ := strings.Cut(k.inventory, "/")
	head := "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: " + name + "\n  namespace: " + namespace +
		"\n  labels: {" + inventory.Label + ": " + k.id + "}\n"
	for file, content := range map[string]string{"inventory.yaml": head, "bundle.yaml": strings.ReplaceAll(text, "{ns}", k.ns)} {
		if content == "" {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o600); err != nil {
			k.Fatal(err)
		}
	}
	cmd := exec.Command(k.program, append([]string{command, dir, "--kubeconfig", k.kubeconfig, "--cache-dir", k.TempDir()}, flags...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		k.Fatalf("kapply %s: %v\n%s", command, err, out)
	}
	return string(out)
}

func TestKapplyShowsPrunesAndDestroysWhatBrineApplied(t *testing.T) {
	s := newFixture(t)
	// A name with "_" is one that cli-utils cannot read back (cli-utils#487): it
	// must not see it, and brine must not lose it.
	unseen := role("ClusterRole", "{ns}_x")
	id := s.apply(documents(configMap("a"), configMap("b"), role("ClusterRole", "{ns}:x"), deployment("web", 1, "1m"), unseen)).want(t, 0).result.Inventory.ID
	k := newKapply(t, s, id)

	status := k.run("status", "", "--poll-until=known")
	for _, want := range []string{"configmap/" + s.ns + "/a", "configmap/" + s.ns + "/b", "deployment.apps/" + s.ns + "/web", "clusterrole.rbac.authorization.k8s.io//" + s.ns + ":x"} {
		if !strings.Contains(strings.ToLower(status), want) {
			t.Errorf("kapply does not show %s:\n%s", want, status)
		}
	}

	flags := []string{"--server-side", "--force-conflicts", "--reconcile-timeout=1m", "--prune-timeout=1m"}
	out := k.run("apply", documents(configMap("a"), role("ClusterRole", "{ns}:x"), deployment("web", 1, "1m")), flags...)
	s.missing("v1/configmaps", "b")
	s.exists("v1/configmaps", "a")
	if t.Failed() {
		t.Log(out)
	}
	// brine goes on from there.
	if got := s.members(); len(got) != 4 {
		t.Errorf("after kapply's run the inventory holds %v", got)
	}
	s.apply(documents(configMap("a"), deployment("web", 1, "1m"), unseen)).want(t, 0).did(t, "ClusterRole", s.ns+":x", plan.Pruned)

	k.run("destroy", "")
	s.missing("v1/configmaps", "a", "inv")
	s.missing("apps/v1/deployments", "web")
	// What kapply could not see, brine destroys.
	s.destroy().want(t, 0).did(t, "ClusterRole", s.ns+"_x", plan.Pruned)
}

func TestBrineTakesOverWhatKapplyApplied(t *testing.T) {
	s := newFixture(t)
	k := newKapply(t, s, "kapply-"+s.ns)
	text := documents(configMap("a"), configMap("b"), role("Role", "x:y"), deployment("web", 1, "1m"))
	k.run("apply", text, "--reconcile-timeout=1m", "--server-side")

	shown := s.status().want(t, 0)
	if shown.result.Inventory.ID != k.id || len(shown.result.Objects) != 4 {
		t.Errorf("brine shows %v of %s", s.members(), shown.result.Inventory.ID)
	}
	// Fields that kapply set and the bundle has no more are removed.
	changed := strings.Replace(configMap("a"), "key: value", "other: value", 1)
	s.apply(documents(changed, role("Role", "x:y"), deployment("web", 2, "1m")), "--take-over-from=kubectl").
		want(t, 0).did(t, "ConfigMap", "b", plan.Pruned)
	data, _, _ := unstructured.NestedStringMap(s.live("v1/configmaps", s.ns, "a").Object, "data")
	if len(data) != 1 || data["other"] != "value" {
		t.Errorf("a holds %v", data)
	}
	s.missing("v1/configmaps", "b")
	for _, u := range []*unstructured.Unstructured{s.live("v1/configmaps", s.ns, "a"), s.live("apps/v1/deployments", s.ns, "web")} {
		if u.GetAnnotations()[inventory.OwningInventory] != k.id {
			t.Errorf("%s belongs to %q", u.GetName(), u.GetAnnotations()[inventory.OwningInventory])
		}
	}
	s.destroy().want(t, 0)
	s.missing("v1/configmaps", "a", "inv")
}

func TestBrineDestroysWhatKapplyApplied(t *testing.T) {
	s := newFixture(t)
	k := newKapply(t, s, "kapply-"+s.ns)
	k.run("apply", documents(configMap("a"), configMap("b"), role("Role", "x:y")), "--reconcile-timeout=1m")
	s.destroy().want(t, 0).did(t, "Role", "x:y", plan.Pruned)
	s.missing("v1/configmaps", "a", "b", "inv")
}

func TestKubectlFindsAllMembers(t *testing.T) {
	s := newFixture(t)
	away := "apiVersion: v1\nkind: Namespace\nmetadata: {name: \"{ns}-away\"}\n"
	s.apply(documents(configMap("a"), strings.ReplaceAll(configMap("b"), "namespace: {ns}\n", "namespace: {ns}-away\n"), away,
		role("ClusterRole", "{ns}:x"), deployment("web", 1, "1m"), widgets, widget)).want(t, 0)
	t.Cleanup(func() { brine(t, s.kubeconfig, "destroy", "--inventory", s.inventory) })

	kinds := "configmaps,namespaces,clusterroles,deployments,customresourcedefinitions,widgets." + s.ns + ".example.com"
	cmd := exec.Command(filepath.Join(root(t), "scripts", "cluster"), "kubectl", "--kubeconfig", s.kubeconfig, "get", kinds, "-A",
		"-l", inventory.PartOf+"="+inventory.ApplySetID(s.ns, "inv"), "-o", "name")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("kubectl: %v: %s", err, out)
	}
	if got := strings.Fields(string(out)); len(got) != 7 {
		t.Errorf("kubectl finds %v, want seven", got)
	}
}

func TestTakeOverFrom(t *testing.T) {
	for manager, operation := range map[string]string{"OpenAPI-Generator": "update", "kubectl-client-side-apply": "update", "kubectl": "apply", "Swagger-Codegen": "update"} {
		t.Run(manager, func(t *testing.T) {
			s := newFixture(t)
			client := s.resources("v1/configmaps").Namespace(s.ns)
			u := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "v1", "kind": "ConfigMap",
				"metadata": map[string]any{"name": "a", "labels": map[string]any{"extra": "label"},
					"annotations": map[string]any{lastAppliedKey: `{"kind":"ConfigMap"}`}},
				"data": map[string]any{"key": "theirs", "extra": "theirs"},
			}}
			var err error
			if operation == "apply" {
				_, err = client.Apply(t.Context(), "a", u, metav1.ApplyOptions{FieldManager: manager})
			} else {
				_, err = client.Create(t.Context(), u, metav1.CreateOptions{FieldManager: manager})
			}
			if err != nil {
				t.Fatal(err)
			}
			// Without it a field is in conflict, and what is not set stays.
			s.apply(configMap("a")).want(t, 1).prints(t, "conflict", manager, "--take-over-from")
			// What a preview shows is what then happens.
			s.preview(configMap("a"), "--take-over-from=other,"+manager).want(t, 0).did(t, "ConfigMap", "a", plan.Configured)
			s.apply(configMap("a"), "--take-over-from=other,"+manager).want(t, 0).did(t, "ConfigMap", "a", plan.Configured)

			live := s.live("v1/configmaps", s.ns, "a")
			data, _, _ := unstructured.NestedStringMap(live.Object, "data")
			if len(data) != 1 || data["key"] != "value" || live.GetLabels()["extra"] != "" || live.GetAnnotations()[lastAppliedKey] != "" {
				t.Errorf("it is left with %v, %v, %v", data, live.GetLabels(), live.GetAnnotations())
			}
			if plan.Manages(live, []string{manager}) {
				t.Errorf("%s still owns fields: %v", manager, live.GetManagedFields())
			}
			// Nothing is left to be done.
			s.apply(configMap("a"), "--take-over-from=other,"+manager).want(t, 0).did(t, "ConfigMap", "a", plan.Unchanged)
		})
	}
}

const lastAppliedKey = "kubectl.kubernetes.io/last-applied-configuration"

func TestTakeOverLosesARaceAndTriesAgain(t *testing.T) {
	s := newFixture(t)
	client := s.resources("v1/configmaps").Namespace(s.ns)
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": "a"}, "data": map[string]any{"key": "theirs", "extra": "theirs"}}}
	if _, err := client.Create(t.Context(), u, metav1.CreateOptions{FieldManager: "OpenAPI-Generator"}); err != nil {
		t.Fatal(err)
	}
	p := s.proxied()
	var once sync.Once
	p.Intercept(func(r clustertest.Request) clustertest.Action {
		if r.Method == http.MethodPatch && strings.HasSuffix(r.Path, "/configmaps/a") {
			once.Do(func() { // just before it arrives
				_, _ = client.Patch(context.Background(), "a", types.MergePatchType, []byte(`{"data":{"late":"theirs"}}`), metav1.PatchOptions{FieldManager: "OpenAPI-Generator"})
			})
		}
		return clustertest.Action{}
	})
	s.apply(configMap("a"), "--take-over-from=OpenAPI-Generator").want(t, 0)
	data, _, _ := unstructured.NestedStringMap(s.live("v1/configmaps", s.ns, "a").Object, "data")
	if len(data) != 1 || data["key"] != "value" {
		t.Errorf("it is left with %v", data)
	}
}
