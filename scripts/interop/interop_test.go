// Package interop tests that kubectl and cli-utils, as libraries, accept what
// brine writes. It is a module of its own, as brine needs neither library.
package interop

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	kubectl "k8s.io/kubectl/pkg/cmd/apply"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"
	"sigs.k8s.io/cli-utils/pkg/common"
	cliutils "sigs.k8s.io/cli-utils/pkg/inventory"

	"brine/bundle"
	"brine/bundle/cluster/clustertest"
	"brine/inventory"
)

func TestMain(m *testing.M) { clustertest.Main(m) }

func TestNamesAreThoseOfCliUtilsAndKubectl(t *testing.T) {
	for _, c := range []struct{ brine, theirs string }{
		{inventory.Label, common.InventoryLabel},
		{inventory.OwningInventory, cliutils.OwningInventoryKey},
		{inventory.PartOf, kubectl.ApplysetPartOfLabel},
	} {
		if c.brine != c.theirs {
			t.Errorf("brine writes %s, the others read %s", c.brine, c.theirs)
		}
	}
}

func TestLifecycleAnnotationsAreThoseOfCliUtils(t *testing.T) {
	for key, value := range map[string]string{bundle.OnRemove: "keep", bundle.LifecycleDeletion: "detach"} {
		if !common.NoDeletion(key, value) {
			t.Errorf("cli-utils deletes an object with %s: %s", key, value)
		}
	}
}

const objects = `
apiVersion: v1
kind: Namespace
metadata: {name: NS-away}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: a, namespace: NS}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: b, namespace: NS-away}
---
apiVersion: v1
kind: Secret
metadata: {name: c, namespace: NS}
`

// brine runs the command line on an inventory.
func brine(t *testing.T, kubeconfig, inventory string, args ...string) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "brine")
	build := exec.Command("go", "build", "-o", program, "./cmd/brine")
	build.Dir = filepath.Join("..", "..")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build brine: %v: %s", err, out)
	}
	cmd := exec.Command(program, append(args, "--kubeconfig", kubeconfig, "--inventory", inventory)...)
	cmd.Env = append(os.Environ(), "BRINE_CACHE_DIR="+t.TempDir())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("brine %v: %v: %s", args, err, out)
	}
}

func TestKubectlAcceptsTheApplySet(t *testing.T) {
	c := clustertest.Shared(t)
	ns := c.Namespace(t)
	file := filepath.Join(t.TempDir(), "bundle.yaml")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(objects, "NS", ns)), 0o600); err != nil {
		t.Fatal(err)
	}
	brine(t, c.Kubeconfig, ns+"/inv", "apply", "-f", file)

	flags := genericclioptions.NewConfigFlags(true)
	flags.KubeConfig = &c.Kubeconfig
	factory := cmdutil.NewFactory(flags)
	mapper, err := factory.ToRESTMapper()
	if err != nil {
		t.Fatal(err)
	}
	parent, err := kubectl.ParseApplySetParentRef("configmap/inv", mapper)
	if err != nil {
		t.Fatal(err)
	}
	parent.Namespace = ns
	rest, err := factory.UnstructuredClientForMapping(parent.RESTMapping)
	if err != nil {
		t.Fatal(err)
	}
	set := kubectl.NewApplySet(parent, kubectl.ApplySetTooling{Name: "brine", Version: "v0.0.0"}, mapper, rest)
	if err := set.Validate(t.Context(), c.Dynamic(t)); err != nil {
		t.Fatalf("kubectl does not accept the parent: %v", err)
	}
	if got, want := set.ID(), inventory.ApplySetID(ns, "inv"); got != want {
		t.Errorf("kubectl computes the id %s, brine %s", got, want)
	}
	// It reads the parent, and refuses one that does not conform.
	if err := set.BeforeApply(nil, cmdutil.DryRunServer, metav1.FieldValidationStrict); err != nil {
		t.Fatalf("kubectl does not accept the parent: %v", err)
	}
	if got := set.AllPrunableNamespaces(); !slices.Contains(got, ns+"-away") || !slices.Contains(got, ns) {
		t.Errorf("kubectl would prune in %v", got)
	}
	if got := len(set.AllPrunableResources()); got != 3 {
		t.Errorf("kubectl would prune %d kinds, want ConfigMap, Namespace and Secret", got)
	}
	other := kubectl.NewApplySet(parent, kubectl.ApplySetTooling{Name: "kubectl", Version: "v0.0.0"}, mapper, rest)
	if err := other.BeforeApply(nil, cmdutil.DryRunServer, metav1.FieldValidationStrict); err == nil || !strings.Contains(err.Error(), "brine") {
		t.Errorf("another tool may write it: %v", err)
	}
	brine(t, c.Kubeconfig, ns+"/inv", "destroy")
}
