package store_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle/plan"
	"brine/cmd/brine/clitest"
	"brine/inventory"
)

// kapply is cli-utils' own command line (scripts/peers/kapply), and a folder
// with a bundle for it.
type kapply struct {
	*clitest.Fixture
	program string
	id      string
}

func newKapply(t *testing.T, s *clitest.Fixture, id string) *kapply {
	t.Helper()
	var printed bytes.Buffer
	build := exec.Command(filepath.Join(clitest.Root(t), "scripts", "peers", "build"), "kapply")
	build.Stderr = &printed
	out, err := build.Output()
	if err != nil {
		if os.Getenv("BRINE_TEST_REQUIRED") == "1" {
			t.Fatalf("build kapply: %v: %s", err, &printed)
		}
		t.Skipf("NO KAPPLY, NOTHING WAS TESTED (BRINE_TEST_REQUIRED=1 makes this a failure): %v: %s", err, &printed)
	}
	return &kapply{Fixture: s, program: strings.TrimSpace(string(out)), id: id}
}

// run gives it the inventory, as its users do, beside the bundle.
func (k *kapply) run(command, text string, flags ...string) string {
	k.Helper()
	dir := k.TempDir()
	namespace, name, _ := strings.Cut(k.Inventory, "/")
	head := "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: " + name + "\n  namespace: " + namespace +
		"\n  labels: {" + inventory.Label + ": " + k.id + "}\n"
	for file, content := range map[string]string{"inventory.yaml": head, "bundle.yaml": strings.ReplaceAll(text, "{ns}", k.NS)} {
		if content == "" {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o600); err != nil {
			k.Fatal(err)
		}
	}
	cmd := exec.Command(k.program, append([]string{command, dir, "--kubeconfig", k.Kubeconfig, "--cache-dir", k.TempDir()}, flags...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		k.Fatalf("kapply %s: %v\n%s", command, err, out)
	}
	return string(out)
}

func TestKapplyShowsPrunesAndDestroysWhatBrineApplied(t *testing.T) {
	s := clitest.New(t)
	// A name with "_" is one that cli-utils cannot read back (cli-utils#487): it
	// must not see it, and brine must not lose it.
	unseen := clitest.Role("ClusterRole", "{ns}_x")
	id := s.Apply(clitest.Documents(clitest.ConfigMap("a"), clitest.ConfigMap("b"), clitest.Role("ClusterRole", "{ns}:x"), clitest.Deployment("web", 1, "1m"), unseen)).Want(t, 0).Result.Inventory.ID
	k := newKapply(t, s, id)

	status := k.run("status", "", "--poll-until=known")
	for _, want := range []string{"configmap/" + s.NS + "/a", "configmap/" + s.NS + "/b", "deployment.apps/" + s.NS + "/web", "clusterrole.rbac.authorization.k8s.io//" + s.NS + ":x"} {
		if !strings.Contains(strings.ToLower(status), want) {
			t.Errorf("kapply does not show %s:\n%s", want, status)
		}
	}

	flags := []string{"--server-side", "--force-conflicts", "--reconcile-timeout=1m", "--prune-timeout=1m"}
	out := k.run("apply", clitest.Documents(clitest.ConfigMap("a"), clitest.Role("ClusterRole", "{ns}:x"), clitest.Deployment("web", 1, "1m")), flags...)
	s.Missing("v1/configmaps", "b")
	s.Exists("v1/configmaps", "a")
	if t.Failed() {
		t.Log(out)
	}
	// brine goes on from there.
	if got := s.Members(); len(got) != 4 {
		t.Errorf("after kapply's run the inventory holds %v", got)
	}
	s.Apply(clitest.Documents(clitest.ConfigMap("a"), clitest.Deployment("web", 1, "1m"), unseen)).Want(t, 0).Did(t, "ClusterRole", s.NS+":x", plan.Pruned)

	k.run("destroy", "")
	s.Missing("v1/configmaps", "a", "inv")
	s.Missing("apps/v1/deployments", "web")
	// What kapply could not see, brine destroys.
	s.Destroy().Want(t, 0).Did(t, "ClusterRole", s.NS+"_x", plan.Pruned)
}

func TestBrineTakesOverWhatKapplyApplied(t *testing.T) {
	s := clitest.New(t)
	k := newKapply(t, s, "kapply-"+s.NS)
	text := clitest.Documents(clitest.ConfigMap("a"), clitest.ConfigMap("b"), clitest.Role("Role", "x:y"), clitest.Deployment("web", 1, "1m"))
	k.run("apply", text, "--reconcile-timeout=1m", "--server-side")

	shown := s.Status().Want(t, 0)
	if shown.Result.Inventory.ID != k.id || len(shown.Result.Objects) != 4 {
		t.Errorf("brine shows %v of %s", s.Members(), shown.Result.Inventory.ID)
	}
	// Fields that kapply set and the bundle has no more are removed.
	changed := strings.Replace(clitest.ConfigMap("a"), "key: value", "other: value", 1)
	s.Apply(clitest.Documents(changed, clitest.Role("Role", "x:y"), clitest.Deployment("web", 2, "1m")), "--take-over-from=kubectl").
		Want(t, 0).Did(t, "ConfigMap", "b", plan.Pruned)
	data, _, _ := unstructured.NestedStringMap(s.ConfigMap("a").Object, "data")
	if len(data) != 1 || data["other"] != "value" {
		t.Errorf("a holds %v", data)
	}
	s.Missing("v1/configmaps", "b")
	for _, u := range []*unstructured.Unstructured{s.ConfigMap("a"), s.Live("apps/v1/deployments", s.NS, "web")} {
		if u.GetAnnotations()[inventory.OwningInventory] != k.id {
			t.Errorf("%s belongs to %q", u.GetName(), u.GetAnnotations()[inventory.OwningInventory])
		}
	}
	s.Destroy().Want(t, 0)
	s.Missing("v1/configmaps", "a", "inv")
}

func TestBrineDestroysWhatKapplyApplied(t *testing.T) {
	s := clitest.New(t)
	k := newKapply(t, s, "kapply-"+s.NS)
	k.run("apply", clitest.Documents(clitest.ConfigMap("a"), clitest.ConfigMap("b"), clitest.Role("Role", "x:y")), "--reconcile-timeout=1m")
	s.Destroy().Want(t, 0).Did(t, "Role", "x:y", plan.Pruned)
	s.Missing("v1/configmaps", "a", "b", "inv")
}

func TestKubectlFindsAllMembers(t *testing.T) {
	s := clitest.New(t)
	away := "apiVersion: v1\nkind: Namespace\nmetadata: {name: \"{ns}-away\"}\n"
	s.Apply(clitest.Documents(clitest.ConfigMap("a"), strings.ReplaceAll(clitest.ConfigMap("b"), "namespace: {ns}\n", "namespace: {ns}-away\n"), away,
		clitest.Role("ClusterRole", "{ns}:x"), clitest.Deployment("web", 1, "1m"), clitest.Widgets, clitest.Widget)).Want(t, 0)
	t.Cleanup(func() { clitest.Run(t, s.Kubeconfig, "destroy", "--inventory", s.Inventory) })

	kinds := "configmaps,namespaces,clusterroles,deployments,customresourcedefinitions,widgets." + s.NS + ".example.com"
	cmd := exec.Command(filepath.Join(clitest.Root(t), "scripts", "cluster"), "kubectl", "--kubeconfig", s.Kubeconfig, "get", kinds, "-A",
		"-l", inventory.PartOf+"="+inventory.ApplySetID(s.NS, "inv"), "-o", "name")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("kubectl: %v: %s", err, out)
	}
	if got := strings.Fields(string(out)); len(got) != 7 {
		t.Errorf("kubectl finds %v, want seven", got)
	}
}
