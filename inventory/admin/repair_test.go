package admin_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"brine/bundle/plan"
	"brine/cmd/brine/clitest"
	"brine/inventory/admin"
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
		texts = append(texts, clitest.ConfigMap(name))
	}
	return clitest.Documents(texts...)
}

func runRepair(s *clitest.Fixture, flags ...string) (clitest.Outcome, *admin.Repair) {
	s.Helper()
	return repair(s, append([]string{"--inventory", s.Inventory}, flags...)...)
}

func repair(s *clitest.Fixture, args ...string) (clitest.Outcome, *admin.Repair) {
	s.Helper()
	got := clitest.Run(s.TB, s.Kubeconfig, append([]string{"inventory", "repair"}, args...)...)
	var r admin.Repair
	if err := json.Unmarshal([]byte(got.Stdout), &r); err != nil && got.Exit < 2 {
		s.Fatalf("%v: %s %s", err, got.Stdout, got.Stderr)
	}
	return got, &r
}

// A part of the inventory that is missing, old or damaged stops every run, and
// a repair finds its members.
func TestDamagedInventoryStopsRunsUntilRepaired(t *testing.T) {
	long := longNames(4)
	text := clitest.Documents(clitest.ConfigMap("a"), configMaps(long...))
	for name, damage := range map[string]struct {
		do   func(*clitest.Fixture)
		want string
	}{
		"deleted":   {func(s *clitest.Fixture) { s.DeleteConfigMap("inv-overflow-1") }, "ConfigMap inv-overflow-1 with 4 members is missing"},
		"unlabeled": {func(s *clitest.Fixture) { s.PatchConfigMap("inv-overflow-1", `{"metadata":{"labels":null}}`) }, "ConfigMap inv-overflow-1 with 4 members is missing"},
		"emptied":   {func(s *clitest.Fixture) { s.PatchConfigMap("inv-overflow-1", `{"binaryData":null}`) }, "ConfigMap inv-overflow-1 cannot be read"},
		"cut short": {func(s *clitest.Fixture) {
			s.PatchConfigMap("inv-overflow-1", `{"binaryData":{"members.json.zst":"`+clitest.Packed(t, "[]")[:8]+`"}}`)
		}, "ConfigMap inv-overflow-1 cannot be read"},
		"edited": {func(s *clitest.Fixture) {
			s.PatchConfigMap("inv-overflow-1", `{"binaryData":{"members.json.zst":"`+clitest.Packed(t, "[]")+`"}}`)
		},
			"ConfigMap inv-overflow-1 holds 0 members, and 4 were written"},
		"an old one": {func(s *clitest.Fixture) {
			s.PatchConfigMap("inv-overflow-1", `{"metadata":{"annotations":{"brine.dev/inventory-generation":"1"}},"binaryData":{"members.json.zst":"`+clitest.Packed(t, "[]")+`"}}`)
		}, "ConfigMap inv-overflow-1 is an old one: generation 1, and 2 was written"},
		"annotation": {func(s *clitest.Fixture) {
			s.PatchConfigMap("inv", `{"metadata":{"annotations":{"brine.dev/inventory-overflow-parts":"{"}}}`)
			s.DeleteConfigMap("inv-overflow-1")
		}, "annotation brine.dev/inventory-overflow-parts of ConfigMap inv, which names the others, cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			s := clitest.New(t)
			s.Apply(text).Want(t, 0)
			before := s.Members()
			damage.do(s)
			direct := s.Kubeconfig
			p := s.Proxied()
			shown := ""
			for command, run := range map[string]func() clitest.Outcome{
				"apply": func() clitest.Outcome { return s.Apply(clitest.ConfigMap("a")) }, "preview": func() clitest.Outcome { return s.Preview(text) },
				"destroy": func() clitest.Outcome { return s.Destroy() }, "status": func() clitest.Outcome { return s.Status() },
			} {
				got := run().Want(t, 1)
				all := got.Stdout + got.Stderr
				if !strings.Contains(all, damage.want) || !strings.Contains(all, "brine inventory repair --inventory "+s.Inventory) {
					t.Errorf("%s says %s", command, all)
				}
				_, shown, _ = strings.Cut(all, "brine inventory repair ")
			}
			got, found := runRepair(s, "--dry-run=server")
			got.Want(t, 0)
			if w := p.Writes(); len(w) > 0 {
				t.Errorf("it wrote %v", clitest.Describe(w))
			}
			s.Kubeconfig = direct
			if name != "unlabeled" && (len(found.Added) != 4 || found.Members != 1) || len(found.Damage) != 1 || found.Damage[0] != strings.Split(damage.want, "; ")[0] && name != "emptied" && name != "cut short" {
				t.Errorf("the dry run found %+v", found)
			}
			// As the message shows it.
			if got, found := repair(s, regexp.MustCompile(`[^\s"\\;]+`).FindAllString(shown, 2)...); got.Exit != 0 || name != "unlabeled" && len(found.Added) != 4 {
				t.Errorf("exit code %d: %s", got.Exit, got.Stdout)
			}
			if after := s.Members(); !slices.Equal(before, after) {
				t.Errorf("it holds %v, want %v", after, before)
			}
			// It is whole: again there is nothing to repair, and what is not wanted goes.
			if got, found := runRepair(s); got.Exit != 0 || len(found.Added)+len(found.Damage) != 0 {
				t.Errorf("exit code %d: %s", got.Exit, got.Stdout)
			}
			s.Apply(clitest.ConfigMap("a")).Want(t, 0).Did(t, "ConfigMap", long[3], plan.Pruned)
			s.Destroy().Want(t, 0)
			s.Missing("v1/configmaps", "inv", "inv-overflow-1")
		})
	}
}

// A repair takes no object that only looks like a member, and says what it could
// not search; the inventory stays damaged then.
func TestRepairTakesOnlyRealMembers(t *testing.T) {
	s := clitest.New(t)
	long := longNames(2)
	text := clitest.Documents(configMaps(long...), clitest.Deployment("web", 1, "1m"), clitest.ServiceAccount("who"), clitest.Widgets, clitest.Widget)
	id := s.Apply(text).Want(t, 0).Result.Inventory.ID
	before := s.Members()
	head := s.ConfigMap("inv")
	label := head.GetLabels()["applyset.kubernetes.io/id"]
	alike := func(name, annotation string) string {
		return clitest.ConfigMap(name, "labels: {applyset.kubernetes.io/part-of: "+label+"}", "annotations: {config.k8s.io/owning-inventory: "+annotation+"}")
	}
	s.Create("v1/configmaps", alike("other", "another"))
	s.Create("v1/configmaps", clitest.ConfigMap("bare", "labels: {applyset.kubernetes.io/part-of: "+label+"}"))
	s.Create("v1/configmaps", strings.Replace(alike("made", id), "metadata:\n", "metadata:\n  ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: web, uid: "+
		string(s.Live("apps/v1/deployments", s.NS, "web").GetUID())+", controller: true}]\n", 1))
	s.DeleteConfigMap("inv-overflow-1")

	// Without the right to list some kind.
	clitest.Grant(t, s.Cluster, clitest.Documents(strings.NewReplacer("{ns}", s.NS).Replace(`apiVersion: rbac.authorization.k8s.io/v1
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
	got, found := runRepair(s, "--as", "repairer")
	got.Want(t, 1)
	var missing []string
	for _, k := range found.NotSearched {
		missing = append(missing, k.Kind)
	}
	if want := []string{"CustomResourceDefinition.apiextensions.k8s.io", "Deployment.apps", "Widget." + s.NS + ".example.com"}; !slices.Equal(missing, want) || len(found.Added) != 2 {
		t.Errorf("not searched: %v, want %v; %s", missing, want, got.Stdout)
	}
	s.Apply(text).Want(t, 1).Prints(t, "the inventory is damaged")

	got, found = runRepair(s)
	got.Want(t, 0)
	var reasons []string
	for _, o := range found.NotAdded {
		reasons = append(reasons, o.Name+": "+o.Reason)
	}
	if want := []string{"bare: it has no annotation config.k8s.io/owning-inventory", "made: it is controlled by Deployment web", `other: it belongs to inventory "another"`}; !slices.Equal(reasons, want) {
		t.Errorf("not added: %q", reasons)
	}
	if after := s.Members(); !slices.Equal(after, before) {
		t.Errorf("it holds %v, want %v", after, before)
	}
	s.Apply(text).Want(t, 0)
	s.Destroy().Want(t, 0)
}

// A kind whose CRD is gone has no objects: that does not keep an inventory damaged.
func TestRepairOfAKindWithoutItsCRD(t *testing.T) {
	s := clitest.New(t)
	long := longNames(2)
	s.Apply(clitest.Documents(configMaps(long...), clitest.Widgets, clitest.Widget)).Want(t, 0)
	crds := s.Resources("apiextensions.k8s.io/v1/customresourcedefinitions")
	name := "widgets." + s.NS + ".example.com"
	if err := crds.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.Eventually("the CRD is gone", func() bool { return s.Live("apiextensions.k8s.io/v1/customresourcedefinitions", "", name) == nil })
	s.DeleteConfigMap("inv-overflow-1")
	if got, found := runRepair(s); got.Exit != 0 || len(found.Added) != 2 {
		t.Errorf("exit code %d: %s %s", got.Exit, got.Stdout, got.Stderr)
	}
	s.Apply(configMaps(long...)).Want(t, 0)
	s.Destroy().Want(t, 0)
}

// The inventory object itself is found again by its members.
func TestRepairWithoutTheInventoryObject(t *testing.T) {
	s := clitest.New(t)
	repairNothing(t, s)
	text := clitest.Documents(clitest.ConfigMap("a"), clitest.Deployment("web", 1, "1m"))
	s.Apply(text).Want(t, 0)
	before := s.Members()
	s.DeleteConfigMap("inv")
	s.Apply(clitest.ConfigMap("a"), "--dry-run=server").Want(t, 1).Prints(t, "web", "brine inventory repair")
	s.Apply(text, "--dry-run=server").Want(t, 0).Prints(t, "brine inventory repair")
	if got, found := runRepair(s); got.Exit != 0 || len(found.Added) != 2 || !slices.Contains(found.Damage, "ConfigMap inv is missing") {
		t.Errorf("exit code %d: %s %s", got.Exit, got.Stdout, got.Stderr)
	}
	if after := s.Members(); !slices.Equal(before, after) {
		t.Errorf("it holds %v, want %v", after, before)
	}
	s.Destroy().Want(t, 0)
	s.Missing("apps/v1/deployments", "web")
}

func repairNothing(t *testing.T, s *clitest.Fixture) {
	t.Helper()
	clitest.Run(t, s.Kubeconfig, "inventory", "repair", "--inventory", s.Inventory, "-o", "text").Want(t, 3).Prints(t, "there is no inventory")
}

// An inventory of an older version does not name its parts.
func TestOverflowOfAnOlderVersionIsRead(t *testing.T) {
	s := clitest.New(t)
	long := longNames(3)
	s.Apply(clitest.Documents(clitest.ConfigMap("a"), configMaps(long...))).Want(t, 0)
	s.PatchConfigMap("inv", `{"metadata":{"annotations":{"brine.dev/inventory-overflow-parts":null}}}`)
	s.PatchConfigMap("inv-overflow-1", `{"metadata":{"annotations":null}}`)
	if got := s.Members(); len(got) != 4 {
		t.Errorf("it holds %v", got)
	}
	s.Apply(clitest.Documents(clitest.ConfigMap("a"), configMaps(long[:2]...))).Want(t, 0).Did(t, "ConfigMap", long[2], plan.Pruned)
	if got := s.ConfigMap("inv").GetAnnotations()["brine.dev/inventory-overflow-parts"]; got != `{"1":{"generation":1,"members":2}}` {
		t.Errorf("it names %s", got)
	}
	s.Destroy().Want(t, 0)
}
