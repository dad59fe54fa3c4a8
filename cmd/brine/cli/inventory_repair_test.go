package cli

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"brine/bundle/plan"
	"brine/bundle/run"
)

// longNames are ConfigMaps that the head of an inventory cannot hold, because a
// key of its data has at most 253 characters.
func longNames(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%s-%d", strings.Repeat("n", 245), i)
	}
	return names
}

func configMaps(names ...string) string {
	var texts []string
	for _, name := range names {
		texts = append(texts, configMap(name))
	}
	return documents(texts...)
}

func (s *fixture) repair(flags ...string) (outcome, *run.Repair) {
	s.Helper()
	got := brine(s.TB, s.kubeconfig, append([]string{"inventory", "repair", "--inventory", s.inventory}, flags...)...)
	var r run.Repair
	if err := json.Unmarshal([]byte(got.stdout), &r); err != nil && got.exit < 2 {
		s.Fatalf("%v: %s %s", err, got.stdout, got.stderr)
	}
	return got, &r
}

func (s *fixture) patchMap(name, body string) {
	s.Helper()
	if _, err := s.resources("v1/configmaps").Namespace(s.ns).Patch(s.Context(), name, types.MergePatchType, []byte(body), metav1.PatchOptions{}); err != nil {
		s.Fatal(err)
	}
}

func (s *fixture) deleteMap(name string) {
	s.Helper()
	if err := s.resources("v1/configmaps").Namespace(s.ns).Delete(s.Context(), name, metav1.DeleteOptions{}); err != nil {
		s.Fatal(err)
	}
}

// A part of the inventory that is missing, old or damaged stops every run, and
// a repair finds its members.
func TestMissingOverflow(t *testing.T) {
	long := longNames(4)
	text := documents(configMap("a"), configMaps(long...))
	for name, damage := range map[string]struct {
		do   func(*fixture)
		want string
	}{
		"deleted":   {func(s *fixture) { s.deleteMap("inv-overflow-1") }, "ConfigMap inv-overflow-1 with 4 members is missing"},
		"unlabeled": {func(s *fixture) { s.patchMap("inv-overflow-1", `{"metadata":{"labels":null}}`) }, "ConfigMap inv-overflow-1 with 4 members is missing"},
		"emptied":   {func(s *fixture) { s.patchMap("inv-overflow-1", `{"binaryData":null}`) }, "ConfigMap inv-overflow-1 cannot be read"},
		"cut short": {func(s *fixture) {
			s.patchMap("inv-overflow-1", `{"binaryData":{"members.json.zst":"`+packed(t, "[]")[:8]+`"}}`)
		}, "ConfigMap inv-overflow-1 cannot be read"},
		"edited": {func(s *fixture) {
			s.patchMap("inv-overflow-1", `{"binaryData":{"members.json.zst":"`+packed(t, "[]")+`"}}`)
		},
			"ConfigMap inv-overflow-1 holds 0 members, and 4 were written"},
		"an old one": {func(s *fixture) {
			s.patchMap("inv-overflow-1", `{"metadata":{"annotations":{"brine.dev/inventory-generation":"1"}},"binaryData":{"members.json.zst":"`+packed(t, "[]")+`"}}`)
		}, "ConfigMap inv-overflow-1 is an old one: generation 1, and 2 was written"},
		"annotation": {func(s *fixture) {
			s.patchMap("inv", `{"metadata":{"annotations":{"brine.dev/inventory-overflow-parts":"{"}}}`)
			s.deleteMap("inv-overflow-1")
		}, "annotation brine.dev/inventory-overflow-parts of ConfigMap inv, which names the others, cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t)
			s.apply(text).want(t, 0)
			before := s.members()
			damage.do(s)
			direct := s.kubeconfig
			p := s.proxied()
			for command, run := range map[string]func() outcome{
				"apply": func() outcome { return s.apply(configMap("a")) }, "preview": func() outcome { return s.preview(text) },
				"destroy": func() outcome { return s.destroy() }, "status": func() outcome { return s.status() },
			} {
				got := run().want(t, 1)
				if all := got.stdout + got.stderr; !strings.Contains(all, damage.want) || !strings.Contains(all, "brine inventory repair --inventory "+s.inventory) {
					t.Errorf("%s says %s", command, all)
				}
			}
			got, found := s.repair("--dry-run=server")
			got.want(t, 0)
			if w := p.Writes(); len(w) > 0 {
				t.Errorf("it wrote %v", describe(w))
			}
			s.kubeconfig = direct
			if name != "unlabeled" && (len(found.Added) != 4 || found.Members != 1) || len(found.Damage) != 1 || found.Damage[0] != strings.Split(damage.want, "; ")[0] && name != "emptied" && name != "cut short" {
				t.Errorf("the dry run found %+v", found)
			}
			if got, found := s.repair(); got.exit != 0 || name != "unlabeled" && len(found.Added) != 4 {
				t.Errorf("exit code %d: %s", got.exit, got.stdout)
			}
			if after := s.members(); !slices.Equal(before, after) {
				t.Errorf("it holds %v, want %v", after, before)
			}
			// It is whole: again there is nothing to repair, and what is not wanted goes.
			if got, found := s.repair(); got.exit != 0 || len(found.Added)+len(found.Damage) != 0 {
				t.Errorf("exit code %d: %s", got.exit, got.stdout)
			}
			s.apply(configMap("a")).want(t, 0).did(t, "ConfigMap", long[3], plan.Pruned)
			s.destroy().want(t, 0)
			s.missing("v1/configmaps", "inv", "inv-overflow-1")
		})
	}
}

// A repair takes no object that only looks like a member, and says what it could
// not search; the inventory stays damaged then.
func TestRepairSearches(t *testing.T) {
	s := newFixture(t)
	long := longNames(2)
	text := documents(configMaps(long...), deployment("web", 1, "1m"), serviceAccount("who"), widgets, widget)
	id := s.apply(text).want(t, 0).result.Inventory.ID
	before := s.members()
	head := s.live("v1/configmaps", s.ns, "inv")
	label := head.GetLabels()["applyset.kubernetes.io/id"]
	alike := func(name, annotation string) string {
		return configMap(name, "labels: {applyset.kubernetes.io/part-of: "+label+"}", "annotations: {config.k8s.io/owning-inventory: "+annotation+"}")
	}
	s.create("v1/configmaps", alike("other", "another"))
	s.create("v1/configmaps", configMap("bare", "labels: {applyset.kubernetes.io/part-of: "+label+"}"))
	s.create("v1/configmaps", strings.Replace(alike("made", id), "metadata:\n", "metadata:\n  ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: web, uid: "+
		string(s.live("apps/v1/deployments", s.ns, "web").GetUID())+", controller: true}]\n", 1))
	s.deleteMap("inv-overflow-1")

	// Without the right to list some kind.
	grant(t, s.cluster, documents(strings.NewReplacer("{ns}", s.ns).Replace(`apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: repairer, namespace: {ns}}
rules:
- {apiGroups: [""], resources: [configmaps, secrets, serviceaccounts], verbs: [get, list, create, update, delete]}
- {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [get, create, update, delete]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: repairer, namespace: {ns}}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: repairer}
subjects: [{kind: User, apiGroup: rbac.authorization.k8s.io, name: repairer}]
`)))
	got, found := s.repair("--as", "repairer")
	got.want(t, 1)
	var missing []string
	for _, k := range found.NotSearched {
		missing = append(missing, k.Kind)
	}
	if want := []string{"CustomResourceDefinition.apiextensions.k8s.io", "Deployment.apps", "Widget." + s.ns + ".example.com"}; !slices.Equal(missing, want) || len(found.Added) != 2 {
		t.Errorf("not searched: %v, want %v; %s", missing, want, got.stdout)
	}
	s.apply(text).want(t, 1).prints(t, "the inventory is damaged")

	got, found = s.repair()
	got.want(t, 0)
	var reasons []string
	for _, o := range found.NotAdded {
		reasons = append(reasons, o.Name+": "+o.Reason)
	}
	if want := []string{"bare: it has no annotation config.k8s.io/owning-inventory", "made: it is controlled by Deployment web", `other: it belongs to inventory "another"`}; !slices.Equal(reasons, want) {
		t.Errorf("not added: %q", reasons)
	}
	if after := s.members(); !slices.Equal(after, before) {
		t.Errorf("it holds %v, want %v", after, before)
	}
	s.apply(text).want(t, 0)
	s.destroy().want(t, 0)
}

// A kind whose CRD is gone has no objects: that does not keep an inventory damaged.
func TestRepairOfAnUnservedKind(t *testing.T) {
	s := newFixture(t)
	long := longNames(2)
	s.apply(documents(configMaps(long...), widgets, widget)).want(t, 0)
	crds := s.resources("apiextensions.k8s.io/v1/customresourcedefinitions")
	name := "widgets." + s.ns + ".example.com"
	if err := crds.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.eventually("the CRD is gone", func() bool { return s.live("apiextensions.k8s.io/v1/customresourcedefinitions", "", name) == nil })
	s.deleteMap("inv-overflow-1")
	if got, found := s.repair(); got.exit != 0 || len(found.Added) != 2 {
		t.Errorf("exit code %d: %s %s", got.exit, got.stdout, got.stderr)
	}
	s.apply(configMaps(long...)).want(t, 0)
	s.destroy().want(t, 0)
}

// The inventory object itself is found again by its members.
func TestRepairWithoutTheInventoryObject(t *testing.T) {
	s := newFixture(t)
	s.repairNothing(t)
	s.apply(documents(configMap("a"), deployment("web", 1, "1m"))).want(t, 0)
	before := s.members()
	s.deleteMap("inv")
	s.apply(configMap("a"), "--dry-run=server").want(t, 0).prints(t, "brine inventory repair")
	if got, found := s.repair(); got.exit != 0 || len(found.Added) != 2 || !slices.Contains(found.Damage, "ConfigMap inv is missing") {
		t.Errorf("exit code %d: %s %s", got.exit, got.stdout, got.stderr)
	}
	if after := s.members(); !slices.Equal(before, after) {
		t.Errorf("it holds %v, want %v", after, before)
	}
	s.destroy().want(t, 0)
	s.missing("apps/v1/deployments", "web")
}

func (s *fixture) repairNothing(t *testing.T) {
	t.Helper()
	brine(t, s.kubeconfig, "inventory", "repair", "--inventory", s.inventory, "-o", "text").want(t, 3).prints(t, "there is no inventory")
}

// An inventory of an older version does not name its parts.
func TestOverflowOfAnOlderVersion(t *testing.T) {
	s := newFixture(t)
	long := longNames(3)
	s.apply(documents(configMap("a"), configMaps(long...))).want(t, 0)
	s.patchMap("inv", `{"metadata":{"annotations":{"brine.dev/inventory-overflow-parts":null}}}`)
	s.patchMap("inv-overflow-1", `{"metadata":{"annotations":null}}`)
	if got := s.members(); len(got) != 4 {
		t.Errorf("it holds %v", got)
	}
	s.apply(documents(configMap("a"), configMaps(long[:2]...))).want(t, 0).did(t, "ConfigMap", long[2], plan.Pruned)
	if got := s.live("v1/configmaps", s.ns, "inv").GetAnnotations()["brine.dev/inventory-overflow-parts"]; got != `{"1":{"generation":1,"members":2}}` {
		t.Errorf("it names %s", got)
	}
	s.destroy().want(t, 0)
}
