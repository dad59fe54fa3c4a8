package store_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"brine/bundle/plan"
	"brine/bundle/report"
	"brine/cmd/brine/clitest"
	"brine/inventory"
)

// olderCommit is a version whose formats every later one has to get on with: 0.2.0, or
// what BRINE_TEST_OLDER names ("scripts/test compat" tries more of them).
var olderCommit = cmp.Or(os.Getenv("BRINE_TEST_OLDER"), release02)

const release02 = "c55bfd0"

// olderIn is the folder of the older program.
var olderIn string

// built is brine as it was at that commit: its program, made once.
var built = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "brine-older")
	if err != nil {
		return "", err
	}
	olderIn = dir
	path := filepath.Join(dir, "brine-older")
	cmd := exec.Command("bash", "-c", `set -eo pipefail; git -C "$(git rev-parse --show-toplevel)" archive "$0" | tar -x -C "$1" && cd "$1" && CGO_ENABLED=0 go build -buildvcs=false -o "$2" ./cmd/brine`, olderCommit, dir, path)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build brine of %s: %w\n%s", olderCommit, err, out)
	}
	return path, nil
})

func older(t *testing.T) string {
	t.Helper()
	if err := exec.Command("git", "cat-file", "-e", olderCommit+"^{commit}").Run(); err != nil {
		t.Skipf("SKIPPED: the history has no commit %s to build an older brine from", olderCommit)
	}
	path, err := built()
	if err != nil {
		t.Fatal(err)
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

// warned says whether one of the warnings contains the words.
func warned(r clitest.Outcome, words string) bool {
	return slices.ContainsFunc(r.Result.Warnings, func(w string) bool { return strings.Contains(w, words) })
}

// A run says that it writes an older version's inventory in its own format, and a preview
// that a run would. Who may only read goes on reading, and is not refused for it.
func TestOlderInventoryIsWrittenInThisFormat(t *testing.T) {
	s := clitest.New(t)
	binary := older(t)
	text := clitest.Documents(clitest.ConfigMap("a"), clitest.Deployment("web", 1, "1m"))
	runOlder(s, binary, "apply", "-f", s.File(text)).Want(t, 0)
	version := func() string { return s.ConfigMap("inv").GetResourceVersion() }
	before := version()

	clitest.Grant(t, s.Cluster, clitest.RBAC(t, "-f", s.File(text), "--inventory", s.Inventory, "--user", s.NS, "--read-only"))
	clitest.Grant(t, s.Cluster, strings.ReplaceAll(`apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: locks, namespace: {ns}}
rules: [{apiGroups: [coordination.k8s.io], resources: [leases], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: locks, namespace: {ns}}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: locks}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: {ns}}]
`, "{ns}", s.NS))
	if r := s.Preview(text, "--as", s.NS).Want(t, 0); !warned(r, "an apply with this version writes it in format 1") || !warned(r, "rights to update ConfigMaps and to create and update Leases in namespace "+s.NS) {
		t.Errorf("the preview does not say it: %q", r.Result.Warnings)
	}
	for _, command := range []string{"status", "history", "drift"} {
		r := clitest.Run(t, s.Kubeconfig, command, "--inventory", s.Inventory, "--as", s.NS).Want(t, 0)
		if strings.Contains(r.Stdout, "older version") {
			t.Errorf("%s only reads:\n%s", command, r.Stdout)
		}
	}
	if r := s.Apply(text, "--as", s.NS).Want(t, 0); !warned(r, "stays in the older format, which this version reads") || version() != before {
		t.Errorf("it does not say that the inventory stays as it was: %q", r.Result.Warnings)
	}

	if r := s.Apply(text).Want(t, 0); !warned(r, "this run writes it in format 1") || len(r.Result.Warnings) != 1 {
		t.Errorf("the run does not say it: %q", r.Result.Warnings)
	}
	if got := s.ConfigMap("inv").GetAnnotations()["brine.dev/inventory-format"]; got != inventory.FormatText() {
		t.Errorf("the inventory has format %q", got)
	}
	// Another version alone is no reason to write.
	before = version()
	for range 2 {
		if r := s.Apply(text).Want(t, 0); len(r.Result.Warnings) > 0 || version() != before {
			t.Errorf("another run wrote it: %q", r.Result.Warnings)
		}
		runOlder(s, binary, "apply", "-f", s.File(text)).Want(t, 0) // writes its version
		before = version()
	}
	s.Destroy().Want(t, 0)
}

// A saved plan is carried out exactly, or refused without a change, whichever version
// wrote it.
func TestOlderPlanIsCarriedOut(t *testing.T) {
	s := clitest.New(t)
	binary := older(t)
	exact := func(saver, other func(command string, flags ...string) clitest.Outcome, text string) {
		t.Helper()
		saved := filepath.Join(t.TempDir(), "plan.json")
		planned := saver("preview", "-f", s.File(text), "--plan-out", saved).Want(t, 0)
		applied := other("apply", "-f", s.File(text), "--plan", saved)
		if olderCommit != release02 && applied.Exit == report.ExitBadBundle { // plans before 0.2 do not name their cluster, and have other flags
			clitest.SameActions(t, planned, saver("preview", "-f", s.File(text)).Want(t, 0)) // nothing was changed
			other("apply", "-f", s.File(text)).Want(t, 0)
			return
		}
		clitest.SameActions(t, planned, applied.Want(t, 0))
		saver("preview", "-f", s.File(text), "--plan-out", saved).Want(t, 0)
		other("apply", "-f", s.File(clitest.Documents(text, clitest.ConfigMap("more"))), "--plan", saved).Want(t, report.ExitBadBundle)
		s.Missing("v1/configmaps", "more")
	}
	old := func(command string, flags ...string) clitest.Outcome { return runOlder(s, binary, command, flags...) }
	present := func(command string, flags ...string) clitest.Outcome { return s.Run(command, flags) }
	exact(old, present, clitest.Documents(clitest.ConfigMap("a"), clitest.ConfigMap("b")))
	exact(present, old, clitest.Documents(clitest.ConfigMap("a"), clitest.ConfigMap("c")))
	exact(old, present, clitest.Documents(clitest.ConfigMap("b"), clitest.ConfigMap("c")))
	s.Destroy().Want(t, 0)
}

// The roles of an older version are enough for an apply with this one, and are beside its own.
func TestOlderRolesGoOn(t *testing.T) {
	s := clitest.New(t)
	binary := older(t)
	text := clitest.Documents(clitest.ConfigMap("a"), clitest.Deployment("web", 1, "1m"))
	flags := []string{"rbac", "-f", s.File(text), "--inventory", s.Inventory, "--service-account", s.NS + "/deployer"}
	out, err := exec.Command(binary, flags...).Output()
	if err != nil {
		t.Fatal(err)
	}
	names := func(text string) []string { return regexp.MustCompile(`(?m)^ {2}name: .*$`).FindAllString(text, -1) }
	if got, want := names(clitest.RBAC(t, append(flags[1:], "--role", "brine")...)), names(string(out)); !slices.Equal(got, want) || len(want) == 0 {
		t.Errorf("--role brine makes %q, and the older version %q", got, want)
	}
	for _, kind := range []string{"clusterroles", "clusterrolebindings"} {
		s.GoneAfter("rbac.authorization.k8s.io/v1/"+kind, "brine")
	}
	clitest.Grant(t, s.Cluster, string(out))
	as := "--as=system:serviceaccount:" + s.NS + ":deployer"
	runOlder(s, binary, "apply", "-f", s.File(text), as).Want(t, 0)
	s.Apply(clitest.Documents(text, clitest.ConfigMap("b")), as).Want(t, 0).Did(t, "ConfigMap", "b", plan.Created)

	flags[len(flags)-1] = s.NS + "/second"
	clitest.Grant(t, s.Cluster, clitest.RBAC(t, flags[1:]...))
	s.Apply(text, strings.Replace(as, "deployer", "second", 1)).Want(t, 0).Did(t, "ConfigMap", "b", plan.Pruned)
	s.Destroy(as).Want(t, 0)
}
