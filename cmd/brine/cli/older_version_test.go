package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"brine/bundle/plan"
	"brine/bundle/report"
)

// olderCommit is a version whose formats every later one has to get on with:
// the last one before 0.2.0.
const olderCommit = "ce23507"

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

// older runs a command of an older brine on the fixture's inventory.
func (s *fixture) older(binary, command string, flags ...string) outcome {
	s.Helper()
	args := append([]string{command, "--inventory", s.inventory, "--timeout=60s", "--namespace", s.ns, "--kubeconfig", s.kubeconfig, "-o", "json"}, flags...)
	cmd := exec.Command(binary, args...)
	cmd.Env = append(os.Environ(), "BRINE_CACHE_DIR="+s.TempDir())
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	_ = cmd.Run() // its exit code is what matters
	d := outcome{exit: cmd.ProcessState.ExitCode(), stdout: out.String(), stderr: stderr.String()}
	var result report.Result
	if json.Unmarshal(out.Bytes(), &result) == nil && result.Kind == "Result" {
		d.result = &result
	}
	return d
}

// An older and the present brine take turns on one inventory: each goes on with
// what the other left, prunes what the other applied, and finds nothing to do
// where the other did it.
func TestOlderBinaryTakesTurns(t *testing.T) {
	s := newFixture(t)
	binary := older(t)
	changed := documents(configMap("a")+"immutable: false\n", configMap("c"), deployment("web", 1, "1m"))
	first := documents(configMap("a"), configMap("b"), deployment("web", 1, "1m"))
	last := documents(configMap("a"), configMap("d"))
	oldApply := func(text string) outcome { return s.older(binary, "apply", "-f", s.file(text)) }
	unchanged := func(r outcome) {
		t.Helper()
		r.want(t, 0)
		for _, o := range r.result.Objects {
			if o.Action != plan.Unchanged {
				t.Errorf("%s %s was %s (%s) where the other brine had just applied it", o.Kind, o.Name, o.Action, o.Reason)
			}
		}
	}

	oldApply(first).want(t, 0).did(t, "ConfigMap", "b", plan.Created)
	unchanged(s.apply(first))
	s.apply(changed).want(t, 0).did(t, "ConfigMap", "b", plan.Pruned)
	s.missing("v1/configmaps", "b")
	unchanged(oldApply(changed))
	oldApply(last).want(t, 0).did(t, "ConfigMap", "c", plan.Pruned)
	s.missing("v1/configmaps", "c")
	s.missing("apps/v1/deployments", "web")
	unchanged(s.apply(last))
	if got, want := s.members(), []string{"ConfigMap " + s.ns + "/a", "ConfigMap " + s.ns + "/d"}; !slices.Equal(got, want) {
		t.Errorf("the inventory holds %v, want %v", got, want)
	}
	// The history is both's, and what one applied the other goes back to.
	s.run("rollback", nil).want(t, 0).did(t, "ConfigMap", "c", plan.Created)
	s.exists("apps/v1/deployments", "web")
	oldApply(last).want(t, 0).did(t, "ConfigMap", "c", plan.Pruned)

	// Each destroys what the other applied, and leaves nothing behind.
	s.apply(first).want(t, 0)
	s.older(binary, "destroy").want(t, 0).did(t, "ConfigMap", "a", plan.Pruned)
	s.nothingLeft()
	oldApply(first).want(t, 0)
	s.destroy().want(t, 0).did(t, "ConfigMap", "a", plan.Pruned)
	s.nothingLeft()
}

// nothingLeft fails the test where the namespace has objects of a bundle, or
// of brine, aside from the Lease, which stays.
func (s *fixture) nothingLeft() {
	s.Helper()
	s.missing("v1/configmaps", "a", "b", "c", "d", "inv")
	s.missing("apps/v1/deployments", "web")
	for _, resource := range []string{"v1/configmaps", "v1/secrets"} {
		list, err := s.resources(resource).Namespace(s.ns).List(s.Context(), metav1.ListOptions{})
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
