package store_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"brine/bundle/plan"
	"brine/bundle/report"
	"brine/cmd/brine/clitest"
)

// olderCommit is a version whose formats every later one has to get on with: 0.2.0, or
// what BRINE_TEST_OLDER names ("scripts/test compat" tries more of them).
var olderCommit = cmp.Or(os.Getenv("BRINE_TEST_OLDER"), "c55bfd0")

// older builds brine as it was at that commit.
func older(t *testing.T) string {
	t.Helper()
	if err := exec.Command("git", "cat-file", "-e", olderCommit+"^{commit}").Run(); err != nil {
		t.Skipf("SKIPPED: the history has no commit %s to build an older brine from", olderCommit)
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "brine-older")
	cmd := exec.Command("bash", "-c", `set -eo pipefail; git -C "$(git rev-parse --show-toplevel)" archive "$0" | tar -x -C "$1" && cd "$1" && CGO_ENABLED=0 go build -buildvcs=false -o "$2" ./cmd/brine`, olderCommit, dir, path)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build brine of %s: %v\n%s", olderCommit, err, out)
	}
	return path
}

// runOlder runs a command of an older brine on the fixture's inventory.
func runOlder(s *clitest.Fixture, binary, command string, flags ...string) clitest.Outcome {
	s.Helper()
	args := append([]string{command, "--inventory", s.Inventory, "--timeout=60s", "--namespace", s.NS, "--kubeconfig", s.Kubeconfig, "-o", "json"}, flags...)
	cmd := exec.Command(binary, args...)
	cmd.Env = append(os.Environ(), "BRINE_CACHE_DIR="+s.TempDir())
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	_ = cmd.Run() // its exit code is what matters
	d := clitest.Outcome{Exit: cmd.ProcessState.ExitCode(), Stdout: out.String(), Stderr: stderr.String()}
	var result report.Result
	if json.Unmarshal(out.Bytes(), &result) == nil && result.Kind == "Result" {
		d.Result = &result
	}
	return d
}

// An older and the present brine take turns on one inventory: each goes on with
// what the other left, prunes what the other applied, and finds nothing to do
// where the other did it.
func TestOlderBinaryTakesTurns(t *testing.T) {
	s := clitest.New(t)
	binary := older(t)
	changed := clitest.Documents(clitest.ConfigMap("a")+"immutable: false\n", clitest.ConfigMap("c"), clitest.Deployment("web", 1, "1m"))
	first := clitest.Documents(clitest.ConfigMap("a"), clitest.ConfigMap("b"), clitest.Deployment("web", 1, "1m"))
	last := clitest.Documents(clitest.ConfigMap("a"), clitest.ConfigMap("d"))
	oldApply := func(text string) clitest.Outcome { return runOlder(s, binary, "apply", "-f", s.File(text)) }
	unchanged := func(r clitest.Outcome) {
		t.Helper()
		r.Want(t, 0)
		for _, o := range r.Result.Objects {
			if o.Action != plan.Unchanged {
				t.Errorf("%s %s was %s (%s) where the other brine had just applied it", o.Kind, o.Name, o.Action, o.Reason)
			}
		}
	}

	oldApply(first).Want(t, 0).Did(t, "ConfigMap", "b", plan.Created)
	unchanged(s.Apply(first))
	s.Apply(changed).Want(t, 0).Did(t, "ConfigMap", "b", plan.Pruned)
	s.Missing("v1/configmaps", "b")
	unchanged(oldApply(changed))
	oldApply(last).Want(t, 0).Did(t, "ConfigMap", "c", plan.Pruned)
	s.Missing("v1/configmaps", "c")
	s.Missing("apps/v1/deployments", "web")
	unchanged(s.Apply(last))
	if got, want := s.Members(), []string{"ConfigMap " + s.NS + "/a", "ConfigMap " + s.NS + "/d"}; !slices.Equal(got, want) {
		t.Errorf("the inventory holds %v, want %v", got, want)
	}
	// The history is both's, and what one applied the other goes back to.
	s.Run("rollback", nil).Want(t, 0).Did(t, "ConfigMap", "c", plan.Created)
	s.Exists("apps/v1/deployments", "web")
	oldApply(last).Want(t, 0).Did(t, "ConfigMap", "c", plan.Pruned)

	// Each destroys what the other applied, and leaves nothing behind.
	s.Apply(first).Want(t, 0)
	runOlder(s, binary, "destroy").Want(t, 0).Did(t, "ConfigMap", "a", plan.Pruned)
	s.Destroy().Want(t, 0) // the origins, which the older one does not know
	nothingLeft(s)
	oldApply(first).Want(t, 0)
	s.Destroy().Want(t, 0).Did(t, "ConfigMap", "a", plan.Pruned)
	nothingLeft(s)
}

// nothingLeft fails the test where the namespace has objects of a bundle, or
// of brine, aside from the Lease, which stays.
func nothingLeft(s *clitest.Fixture) {
	s.Helper()
	s.Missing("v1/configmaps", "a", "b", "c", "d", "inv")
	s.Missing("apps/v1/deployments", "web")
	for _, resource := range []string{"v1/configmaps", "v1/secrets"} {
		list, err := s.Resources(resource).Namespace(s.NS).List(s.Context(), metav1.ListOptions{})
		if err != nil {
			s.Fatal(err)
		}
		for _, u := range list.Items {
			if u.GetName() != "kube-root-ca.crt" {
				s.Errorf("%s %s is left behind", u.GetKind(), u.GetName())
			}
		}
	}
}

// An older brine and kapply record no origin: a rollback deletes nothing that they made
// members, and everything that the present one created, also where they ran in between.
func TestRollbackAfterAnOlderBinary(t *testing.T) {
	s := clitest.New(t)
	binary := older(t)
	oldApply := func(text string) { runOlder(s, binary, "apply", "-f", s.File(text)).Want(t, 0) }
	one, two := clitest.ConfigMap("a"), clitest.Documents(clitest.ConfigMap("a"), clitest.ConfigMap("b"))
	oldApply(one)
	oldApply(two)
	s.Rollback("1").Want(t, 0).Prints(t, "it is not known who created it", "kubectl delete configmap b --namespace "+s.NS).Did(t, "ConfigMap", "b", plan.Skipped)
	s.Exists("v1/configmaps", "b")

	three := clitest.Documents(two, clitest.ConfigMap("c"))
	s.Apply(three).Want(t, 0).Did(t, "ConfigMap", "c", plan.Created)
	oldApply(clitest.Documents(three, clitest.ConfigMap("d")))
	s.Rollback("1").Want(t, 0).Did(t, "ConfigMap", "c", plan.Pruned)
	s.Exists("v1/configmaps", "b", "d")
	s.Missing("v1/configmaps", "c")
	// Pruning by a bundle, and destroy, are as always.
	s.Apply(one).Want(t, 0).Did(t, "ConfigMap", "d", plan.Pruned)
	s.Destroy().Want(t, 0)
	nothingLeft(s)
}
