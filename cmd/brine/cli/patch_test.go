package cli_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"brine/bundle/cluster/clustertest"
	"brine/cmd/brine/clitest"
)

func TestPatchSetsAndRemovesOnlyItsFields(t *testing.T) {
	s := clitest.New(t)
	s.Apply(clitest.ConfigMapOf("a", "{k: v}")).Want(t, 0)
	patch := func(text string, exit int, flags ...string) clitest.Outcome {
		t.Helper()
		p := clitest.Run(t, s.Kubeconfig, append([]string{"patch", "--namespace", s.NS, "-f", s.File(text), "-o", "json"}, flags...)...)
		if p.Exit != exit {
			t.Fatalf("exit code %d, want %d: %s%s", p.Exit, exit, p.Stdout, p.Stderr)
		}
		return p
	}
	data := func(name string) map[string]any {
		t.Helper()
		u, err := s.Resources("v1/configmaps").Namespace(s.NS).Get(s.Context(), name, metav1.GetOptions{})
		if err != nil {
			return nil
		}
		values, _ := u.Object["data"].(map[string]any)
		return values
	}
	one := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {mine: one}\n"
	if p := patch(one, 0, "--dry-run=server"); !strings.Contains(p.Stdout, `"configured"`) || data("a")["mine"] != nil {
		t.Errorf("a dry run: %s", p.Stdout)
	}
	patch(one, 0)
	if p := patch(one, 0); !strings.Contains(p.Stdout, `"unchanged"`) {
		t.Errorf("the second patch changes something: %s", p.Stdout)
	}
	patch(strings.Replace(one, "mine", "other", 1), 0)
	if got := data("a"); got["mine"] != nil || got["other"] != "one" || got["k"] != "v" {
		t.Errorf("after another patch the data are %v", got)
	}
	if p := patch(strings.Replace(one, "mine: one", "k: changed", 1), 1); !strings.Contains(p.Stdout, "conflict") || data("a")["k"] != "v" {
		t.Errorf("a field of another manager: %s", p.Stdout)
	}
	patch(one, 0, "--remove")
	if got := data("a"); len(got) != 1 || got["k"] != "v" {
		t.Errorf("after --remove the data are %v", got)
	}

	// Of two documents of one object, the second would remove the fields of the first.
	if p := patch(one+"---\n"+strings.Replace(one, "mine", "other", 1), 3); !strings.Contains(p.Stdout, "ConfigMap") || len(data("a")) != 1 {
		t.Errorf("two documents of one object: %s", p.Stdout)
	}

	// Neither of them touches a member of an inventory, or the inventory.
	_, inventory, _ := strings.Cut(s.Inventory, "/")
	for _, flag := range []string{"--create", "--delete"} {
		for _, name := range []string{"a", inventory} {
			if p := patch(strings.Replace(one, "name: a", "name: "+name, 1), 1, flag); !strings.Contains(p.Stdout, "belongs to inventory") {
				t.Errorf("%s %s: %s", flag, name, p.Stdout)
			}
		}
	}
	single := strings.Replace(one, "name: a", "name: single", 1)
	if p := patch(single, 1); !strings.Contains(p.Stdout, "only an existing object can be patched") || data("single") != nil {
		t.Errorf("an object that does not exist: %s", p.Stdout)
	}
	patch(single, 0, "--create", "--dry-run=server")
	if data("single") != nil {
		t.Error("a dry run created the object")
	}
	if p := patch(single, 0, "--create"); !strings.Contains(p.Stdout, `"created"`) || data("single")["mine"] != "one" {
		t.Errorf("--create: %s", p.Stdout)
	}
	patch(single, 0, "--delete", "--dry-run=server")
	if data("single") == nil {
		t.Error("a dry run deleted the object")
	}
	if p := patch(single, 0, "--delete"); !strings.Contains(p.Stdout, `"pruned"`) || data("single") != nil {
		t.Errorf("--delete: %s", p.Stdout)
	}
	patch(single, 0, "--delete")
}

// What is being deleted takes with it what is applied to it: it is created again once it is gone.
func TestPatchOfWhatIsBeingDeleted(t *testing.T) {
	s := clitest.New(t)
	maps := s.Resources("v1/configmaps").Namespace(s.NS)
	one := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {mine: one}\n"
	patch := func(exit int, flags ...string) string {
		t.Helper()
		p := clitest.Run(t, s.Kubeconfig, append([]string{"patch", "--namespace", s.NS, "-f", s.File(one), "-o", "json"}, flags...)...)
		if p.Exit != exit {
			t.Fatalf("exit code %d, want %d: %s%s", p.Exit, exit, p.Stdout, p.Stderr)
		}
		return p.Stdout
	}
	finalizers := func(names string) {
		if _, err := maps.Patch(s.Context(), "a", types.MergePatchType, []byte(`{"metadata":{"finalizers":[`+names+`]}}`), metav1.PatchOptions{}); err != nil {
			t.Error(err)
		}
	}
	patch(0, "--create")
	finalizers(`"example.com/held"`)
	if err := maps.Delete(s.Context(), "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	patch(0) // its finalizer's controller may wait for that
	if out := patch(0, "--create", "--dry-run=server"); !strings.Contains(out, `"created"`) {
		t.Error(out)
	}
	if out := patch(6, "--create", "--timeout=2s"); !strings.Contains(out, "wait until it is gone, to create it again") {
		t.Error(out)
	}
	time.AfterFunc(2*time.Second, func() { finalizers("") })
	if out := patch(0, "--create"); !strings.Contains(out, `"created"`) || s.Live("v1/configmaps", s.NS, "a").GetDeletionTimestamp() != nil {
		t.Error(out)
	}
}

// What is no member is not deleted with what others' bundles have in it, or of it.
func TestPatchDeletesNoNamespaceOrCRDThatHoldsMembers(t *testing.T) {
	s := clitest.New(t)
	held, crd := s.NS+"-held", "widgets."+s.NS+".example.com"
	definition := "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: " + crd + "}\nspec: {group: " + s.NS + ".example.com, scope: Namespaced, names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}\n"
	single := "apiVersion: v1\nkind: Namespace\nmetadata: {name: " + held + "}\n---\n" + definition
	patch := func(exit int, flags ...string) clitest.Outcome {
		t.Helper()
		p := clitest.Run(t, s.Kubeconfig, append([]string{"patch", "-f", s.File(single), "-o", "json"}, flags...)...)
		if p.Exit != exit {
			t.Fatalf("exit code %d, want %d: %s%s", p.Exit, exit, p.Stdout, p.Stderr)
		}
		return p
	}
	s.GoneAfter("v1/namespaces", held)
	s.GoneAfter("apiextensions.k8s.io/v1/customresourcedefinitions", crd)
	patch(0, "--create")
	clustertest.Eventually(t, "the CRD is served", func() bool {
		_, err := s.Resources(s.NS+".example.com/v1/widgets").Namespace(s.NS).List(s.Context(), metav1.ListOptions{})
		return err == nil
	})
	s.Apply(clitest.Documents("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: "+held+"}\n", "apiVersion: "+s.NS+".example.com/v1\nkind: Widget\nmetadata: {name: w}\n")).Want(t, 0)
	for _, flags := range [][]string{{"--delete", "--dry-run=server"}, {"--delete"}} {
		p := patch(1, flags...)
		for _, want := range []string{"it holds what belongs to an inventory (ConfigMap " + held + "/a)", "it holds what belongs to an inventory (Widget." + s.NS + ".example.com " + s.NS + "/w)"} {
			if !strings.Contains(p.Stdout, want) {
				t.Errorf("%v: not %q: %s", flags, want, p.Stdout)
			}
		}
	}
	if s.Live("v1/namespaces", "", held) == nil || s.Live("apiextensions.k8s.io/v1/customresourcedefinitions", "", crd) == nil {
		t.Error("it is deleted")
	}
	s.Destroy().Want(t, 0)
	patch(0, "--delete")
}
