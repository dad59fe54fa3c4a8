package run_test

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"brine/cmd/brine/clitest"
)

// The inventory and its auxiliary objects cannot be objects of the bundle.
func TestBundleContainsTheInventoryItself(t *testing.T) {
	s := clitest.New(t)
	s.Apply(clitest.ConfigMap("a")).Want(t, 0)
	before := s.ConfigMap("inv").GetResourceVersion()
	named := func(apiVersion, kind, name string) string {
		return "apiVersion: " + apiVersion + "\nkind: " + kind + "\nmetadata: {name: " + name + ", namespace: {ns}}\n"
	}
	absent := func(apiVersion, kind, name string) string {
		return "Remove it:\n  metalk8s_kubernetes.object_absent:\n  - name: " + name + "\n  - namespace: {ns}\n  - apiVersion: " + apiVersion + "\n  - kind: " + kind + "\n"
	}
	p := s.Proxied()
	for _, o := range [][3]string{
		{"v1", "ConfigMap", "inv"}, {"v1", "ConfigMap", "inv-overflow-1"}, {"v1", "ConfigMap", "inv-fingerprints-12"},
		{"v1", "Secret", "inv-revision-1-0"}, {"v1", "Secret", "inv-brine-key"}, {"coordination.k8s.io/v1", "Lease", "brine-inv"},
	} {
		for command, run := range map[string]func() clitest.Outcome{
			"apply": func() clitest.Outcome {
				return s.Apply(clitest.Documents(clitest.ConfigMap("a"), named(o[0], o[1], o[2])))
			},
			"preview": func() clitest.Outcome {
				return s.Preview(clitest.Documents(clitest.ConfigMap("a"), named(o[0], o[1], o[2])))
			},
			"no server": func() clitest.Outcome {
				return s.Apply(clitest.Documents(clitest.ConfigMap("a"), named(o[0], o[1], o[2])), "--dry-run=client")
			},
		} {
			if got := run().Want(t, 3); !strings.Contains(strings.Join(got.Result.Errors, "\n"), "bundle.yaml:8: "+o[1]) || !strings.Contains(got.Stdout, "which brine itself writes") {
				t.Errorf("%s of %s %s: %s", command, o[1], o[2], got.Stdout)
			}
		}
		s.Apply(absent(o[0], o[1], o[2]), "--allow-empty").Want(t, 3).Prints(t, "bundle.yaml:1", "which brine itself writes")
	}
	if w := p.Writes(); len(w) > 0 {
		t.Errorf("it wrote %v", clitest.Describe(w))
	}
	if got := s.ConfigMap("inv").GetResourceVersion(); got != before {
		t.Error("the inventory was written")
	}
	// Objects that only have such names are objects like all others.
	other := strings.NewReplacer("namespace: {ns}\n", "namespace: {ns}-other\n").Replace
	s.Apply(clitest.Documents(clitest.ConfigMap("a"), "apiVersion: v1\nkind: Namespace\nmetadata: {name: \"{ns}-other\"}\n", other(clitest.ConfigMap("inv")), other(clitest.ConfigMap("inv-overflow-1")),
		clitest.ConfigMap("inv-overflow-x"), clitest.ConfigMap("my-inv"), named("v1", "Secret", "inv"), named("coordination.k8s.io/v1", "Lease", "inv"))).Want(t, 0)
	s.Destroy().Want(t, 0)
}

// An inventory that an older version took for its own member stays.
func TestMemberThatIsTheInventoryItself(t *testing.T) {
	s := clitest.New(t)
	id := s.Apply(clitest.Documents(clitest.ConfigMap("a"), clitest.ConfigMap("b"))).Want(t, 0).Result.Inventory.ID
	if _, err := s.Resources("v1/configmaps").Namespace(s.NS).Patch(t.Context(), "inv", types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"config.k8s.io/owning-inventory":"`+id+`"}},"data":{"`+s.NS+`_inv__ConfigMap":""}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	s.Apply(clitest.ConfigMap("a")).Want(t, 0)
	if got, want := s.Members(), []string{"ConfigMap " + s.NS + "/a"}; !slices.Equal(got, want) {
		t.Errorf("the inventory holds %v, want %v", got, want)
	}
	s.Destroy().Want(t, 0)
	s.Missing("v1/configmaps", "inv", "a")
}

func TestInventoryNameIsTooLong(t *testing.T) {
	clitest.Run(t, "/dev/null", "apply", "-f", clitest.BundleFile(t, clitest.ConfigMap("a")), "--inventory", "a/"+strings.Repeat("n", 240)).Want(t, 3).Prints(t, "at most 231 characters")
	s := clitest.New(t)
	s.Inventory = s.NS + "/" + strings.Repeat("n", 231)
	s.Apply(clitest.ConfigMap("a")).Want(t, 0)
	s.Apply(clitest.ConfigMap("b")).Want(t, 0)
	s.Destroy().Want(t, 0)
}
