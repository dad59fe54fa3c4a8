package run_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"brine/bundle/cluster/clustertest"
	"brine/bundle/plan"
	"brine/bundle/report"
	"brine/cmd/brine/clitest"
	"brine/inventory"
)

// An unchanged object that is not ready holds up the pruning: the preview says so before.
func TestPreviewNamesWhatHoldsUpThePruning(t *testing.T) {
	s := clitest.New(t)
	late := clitest.ConfigMap("late", clitest.Annotations(`brine.dev/ready-when: "has(self.data.done)"`))
	both := clitest.Documents(late, clitest.ConfigMap("old"))
	s.Apply(both, "--timeout=10s").Want(t, report.ExitNotReady)
	s.Preview(late).Want(t, 0).Prints(t, "1 object would be pruned once all is ready: kept, because ConfigMap "+s.NS+"/late is not ready. --prune-anyway prunes nevertheless")
	for _, flag := range []string{"--prune-anyway", "--wait=applied"} {
		if out := s.Preview(late, flag).Want(t, 0); strings.Contains(out.Stdout+out.Stderr, "once all is ready") {
			t.Errorf("%s: %s", flag, out.Stderr)
		}
	}
}

// A refused apply lists all objects, and all errors that its preview has.
func TestRefusedApplySaysWhatItsPreviewSays(t *testing.T) {
	s := clitest.New(t)
	s.Apply(clitest.Documents(clitest.ConfigMap("a"), clitest.ConfigMap("b"), clitest.ConfigMap("c"))).Want(t, 0)
	bad := "apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: \"{ns}\"}\nspec: {ports: [{port: 99999}]}\n"
	next := clitest.Documents(clitest.ConfigMap("a"), clitest.ConfigMap("new"), bad)
	p := s.Proxied()
	out := s.Apply(next, "--max-prune=1").Want(t, report.ExitBadBundle).Prints(t, "2 of 3 objects in inventory", "must be from 1 to 65535")
	for name, action := range map[string]plan.Action{"a": plan.Unchanged, "new": plan.Skipped, "b": plan.Skipped} {
		out.Did(t, "ConfigMap", name, action)
	}
	out.Did(t, "Service", "web", plan.Failed)
	if w := p.Writes(); len(w) > 0 {
		t.Errorf("it wrote %v", clitest.Describe(w))
	}
	if seen := s.Preview(next, "--max-prune=1"); len(seen.Result.Errors) != len(out.Result.Errors) {
		t.Errorf("the preview has %q, the apply %q", seen.Result.Errors, out.Result.Errors)
	}
}

// A namespace that brine made for the inventory goes with it, if nothing else is in it.
func TestNamespaceMadeForTheInventoryGoesWithIt(t *testing.T) {
	s := clitest.New(t)
	own := s.NS + "-own"
	in := []string{"--inventory=" + own + "/inv"}
	run := func(exit int, args ...string) clitest.Outcome {
		t.Helper()
		return clitest.Run(t, s.Kubeconfig, append(append(args, in...), "-o", "json")...).Want(t, exit)
	}
	file := s.File(clitest.ConfigMap("a"))
	run(0, "apply", "-f", file)
	clitest.SameActions(t, run(0, "destroy", "--dry-run=server"), run(0, "destroy"))
	if s.Live("v1/namespaces", "", own) != nil {
		t.Error("the namespace is still there")
	}
	s.Missing("v1/configmaps", "a")

	resources := map[string]string{"ConfigMap": "v1/configmaps", "Lease": "coordination.k8s.io/v1/leases", "PersistentVolumeClaim": "v1/persistentvolumeclaims"}
	for what, foreign := range map[string]string{
		"ConfigMap":             "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: theirs, namespace: " + own + "}\n",
		"Lease":                 "apiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata: {name: brine-another, namespace: " + own + "}\n",
		"PersistentVolumeClaim": "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data, namespace: " + own + "}\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n",
	} {
		run(0, "apply", "-f", file)
		made := s.Create(resources[what], foreign)
		run(0, "destroy").Prints(t, "namespace "+own+", which brine made for the inventory, stays: it contains "+what)
		if s.Live("v1/namespaces", "", own) == nil {
			t.Fatalf("%s is lost with the namespace", what)
		}
		if err := s.Resources(resources[what]).Namespace(own).Delete(t.Context(), made.GetName(), metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	run(0, "destroy")
	// Of a first run that was killed before it wrote the inventory, whose bundle has the
	// namespace; the next bundle has not.
	with := s.File(clitest.Documents("apiVersion: v1\nkind: Namespace\nmetadata: {name: "+own+"}\n", clitest.ConfigMap("a")))
	kill := func() {
		about := func(r clustertest.Request) bool { return strings.HasSuffix(r.Path, "/namespaces/"+own) }
		s.KilledAbout(about, 1, true, append([]string{"apply", "-f", with}, in...)...)
	}
	kill()
	if u := s.Live("v1/namespaces", "", own); u == nil || u.GetAnnotations()[inventory.MadeAnnotation] != "inv" {
		t.Fatalf("the killed run made %v", u)
	}
	for _, next := range [][]string{{"apply", "-f", file}, {"destroy", "--dry-run=server"}} {
		run(0, next...)
		run(0, "destroy")
		if s.Live("v1/namespaces", "", own) != nil {
			t.Errorf("the namespace of the killed run is still there, after %s and destroy", next[0])
		}
		kill()
	}
	run(0, "destroy")
	run(0, "apply", "-f", with)
	if u := s.Live("v1/namespaces", "", own); u.GetAnnotations()[inventory.MadeAnnotation] != "" {
		t.Errorf("the bundle's namespace has the annotations %v", u.GetAnnotations())
	}
	run(0, "destroy")
	// One that was there stays, without a word.
	s.Apply(clitest.ConfigMap("a")).Want(t, 0)
	if out := s.Destroy().Want(t, 0); strings.Contains(out.Stderr, "stays") {
		t.Error(out.Stderr)
	}
	if s.Live("v1/namespaces", "", s.NS) == nil {
		t.Error("a namespace that was there is gone")
	}
}
