package cli

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The inventory and its auxiliary objects cannot be objects of the bundle.
func TestBundleContainsTheInventoryItself(t *testing.T) {
	s := newFixture(t)
	s.apply(configMap("a")).want(t, 0)
	before := s.live("v1/configmaps", s.ns, "inv").GetResourceVersion()
	named := func(apiVersion, kind, name string) string {
		return "apiVersion: " + apiVersion + "\nkind: " + kind + "\nmetadata: {name: " + name + ", namespace: {ns}}\n"
	}
	absent := func(apiVersion, kind, name string) string {
		return "Remove it:\n  metalk8s_kubernetes.object_absent:\n  - name: " + name + "\n  - namespace: {ns}\n  - apiVersion: " + apiVersion + "\n  - kind: " + kind + "\n"
	}
	p := s.proxied()
	for _, o := range [][3]string{
		{"v1", "ConfigMap", "inv"}, {"v1", "ConfigMap", "inv-overflow-1"}, {"v1", "ConfigMap", "inv-fingerprints-12"},
		{"v1", "Secret", "inv-revision-1-0"}, {"v1", "Secret", "inv-brine-key"}, {"coordination.k8s.io/v1", "Lease", "brine-inv"},
	} {
		for command, run := range map[string]func() outcome{
			"apply":     func() outcome { return s.apply(documents(configMap("a"), named(o[0], o[1], o[2]))) },
			"preview":   func() outcome { return s.preview(documents(configMap("a"), named(o[0], o[1], o[2]))) },
			"no server": func() outcome { return s.apply(documents(configMap("a"), named(o[0], o[1], o[2])), "--dry-run=client") },
		} {
			if got := run().want(t, 3); !strings.Contains(strings.Join(got.result.Errors, "\n"), "bundle.yaml:8: "+o[1]) || !strings.Contains(got.stdout, "which brine itself writes") {
				t.Errorf("%s of %s %s: %s", command, o[1], o[2], got.stdout)
			}
		}
		s.apply(absent(o[0], o[1], o[2]), "--allow-empty").want(t, 3).prints(t, "bundle.yaml:1", "which brine itself writes")
	}
	if w := p.Writes(); len(w) > 0 {
		t.Errorf("it wrote %v", describe(w))
	}
	if got := s.live("v1/configmaps", s.ns, "inv").GetResourceVersion(); got != before {
		t.Error("the inventory was written")
	}
	// Objects that only have such names are objects like all others.
	other := strings.NewReplacer("namespace: {ns}\n", "namespace: {ns}-other\n").Replace
	s.apply(documents(configMap("a"), "apiVersion: v1\nkind: Namespace\nmetadata: {name: \"{ns}-other\"}\n", other(configMap("inv")), other(configMap("inv-overflow-1")),
		configMap("inv-overflow-x"), configMap("my-inv"), named("v1", "Secret", "inv"), named("coordination.k8s.io/v1", "Lease", "inv"))).want(t, 0)
	s.destroy().want(t, 0)
}

// An inventory that an older version took for its own member stays.
func TestMemberThatIsTheInventoryItself(t *testing.T) {
	s := newFixture(t)
	id := s.apply(documents(configMap("a"), configMap("b"))).want(t, 0).result.Inventory.ID
	if _, err := s.resources("v1/configmaps").Namespace(s.ns).Patch(t.Context(), "inv", types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"config.k8s.io/owning-inventory":"`+id+`"}},"data":{"`+s.ns+`_inv__ConfigMap":""}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	s.apply(configMap("a")).want(t, 0)
	if got, want := s.members(), []string{"ConfigMap " + s.ns + "/a"}; !slices.Equal(got, want) {
		t.Errorf("the inventory holds %v, want %v", got, want)
	}
	s.destroy().want(t, 0)
	s.missing("v1/configmaps", "inv", "a")
}

func TestInventoryNameIsTooLong(t *testing.T) {
	brine(t, "/dev/null", "apply", "-f", bundleFile(t, configMap("a")), "--inventory", "a/"+strings.Repeat("n", 240)).want(t, 3).prints(t, "at most 231 characters")
	s := newFixture(t)
	s.inventory = s.ns + "/" + strings.Repeat("n", 231)
	s.apply(configMap("a")).want(t, 0)
	s.apply(configMap("b")).want(t, 0)
	s.destroy().want(t, 0)
}
