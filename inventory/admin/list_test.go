package admin_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"brine/cmd/brine/clitest"
	"brine/inventory/admin"
)

// decoded is the document that a command printed.
func decoded[T any](t testing.TB, got clitest.Outcome) *T {
	t.Helper()
	var v T
	if err := json.Unmarshal([]byte(got.Stdout), &v); err != nil {
		t.Fatalf("%v: %s\n%s", err, got.Stdout, got.Stderr)
	}
	return &v
}

func command(s *clitest.Fixture, args ...string) clitest.Outcome {
	s.Helper()
	return clitest.Run(s.TB, s.Kubeconfig, append([]string{"inventory"}, args...)...)
}

func TestListOfInventories(t *testing.T) {
	s := clitest.New(t)
	other := s.Other("other")
	s.Apply(clitest.Documents(clitest.ConfigMap("a"), clitest.ConfigMap("b"), clitest.ConfigMap(strings.Repeat("n", 250)))).Want(t, 0)
	other.Apply(clitest.Documents(clitest.ConfigMap("c"), clitest.RefusedService("d"))).Want(t, 1)
	s.Create("v1/configmaps", clitest.ConfigMapOf("kapply", "{}", "labels: {cli-utils.sigs.k8s.io/inventory-id: of-kapply}"))
	s.Create("coordination.k8s.io/v1/leases", `{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: brine-kapply, namespace: "{ns}"}, spec: {holderIdentity: host/pid-7/boot/token, acquireTime: "2026-01-02T03:04:05.000000Z"}}`)

	l := decoded[admin.List](t, command(s, "list", "-n", s.NS).Want(t, 0))
	names := []string{}
	for _, inv := range l.Inventories {
		names = append(names, inv.Name)
	}
	if !slices.Equal(names, []string{"inv", "kapply", "other"}) {
		t.Fatalf("it lists %q", names)
	}
	inv, kapply, failed := l.Inventories[0], l.Inventories[1], l.Inventories[2]
	if inv.Members != 3 || inv.Revision == nil || inv.Revision.Result != "applied" || inv.LastRun == nil || inv.LastRun.IsZero() || inv.Version == "" || inv.Lock != nil {
		t.Errorf("inv: %+v", inv)
	}
	if failed.Revision == nil || failed.Revision.Result != "failed" {
		t.Errorf("other: %+v", failed)
	}
	if kapply.ID != "of-kapply" || kapply.Version != "" || kapply.Revision != nil || kapply.Lock == nil || kapply.Lock.Holder != "process 7 on host host" || kapply.LastRun.Format("2006-01-02") != "2026-01-02" {
		t.Errorf("kapply: %+v", kapply)
	}
	command(s, "list", "-n", s.NS, "-o", "text").Want(t, 0).Prints(t, s.NS+"/inv", "applied", "process 7 on host host", "3 inventories")
	command(s, "list", "-n", s.NS+"-none", "-o", "text").Want(t, 0).Prints(t, "0 inventories")

	// All namespaces need more rights than one.
	s.Apply(clitest.Documents(strings.NewReplacer("{ns}", s.NS).Replace(`apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: lister, namespace: {ns}}
rules:
- {apiGroups: [""], resources: [configmaps], verbs: [list]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: lister, namespace: {ns}}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: lister}
subjects: [{kind: User, apiGroup: rbac.authorization.k8s.io, name: lister}]
`)), "--no-prune").Want(t, 0)
	command(s, "list", "--as", "lister", "-o", "text").Want(t, 6).Prints(t, "configmaps is forbidden", "give a namespace")
	var got clitest.Outcome
	s.Everywhere("the rights are known to the server", func() bool {
		got = command(s, "list", "--as", "lister", "-n", s.NS)
		return got.Exit != 6
	})
	l = decoded[admin.List](t, got.Want(t, 1))
	if unknown := l.Inventories[0].Unknown; len(unknown) != 1 || !strings.Contains(unknown[0], "leases.coordination.k8s.io") || l.Inventories[0].Members != 5 {
		t.Errorf("without a right to Leases: %+v", l.Inventories[0])
	}

	// A missing part is damage; so is a missing inventory object.
	s.DeleteConfigMap("inv-overflow-1")
	l = decoded[admin.List](t, command(s, "list", "-n", s.NS).Want(t, 1))
	if damage := l.Inventories[0].Damage; len(damage) != 1 || damage[0] != "ConfigMap inv-overflow-1 with 1 members is missing" {
		t.Errorf("without an overflow: %+v", l.Inventories[0])
	}
	command(s, "repair", "--inventory", s.Inventory).Want(t, 0)
	s.DeleteConfigMap("inv")
	l = decoded[admin.List](t, command(s, "list", "-n", s.NS).Want(t, 1))
	if found := l.Inventories[0]; found.Name != "inv" || found.Members != 1 || !slices.Equal(found.Damage, []string{"ConfigMap inv is missing"}) {
		t.Errorf("without the inventory object: %+v", found)
	}
	command(s, "list", "-n", s.NS, "-o", "text").Want(t, 1).Prints(t, "damage of "+s.NS+"/inv: ConfigMap inv is missing")
}

func TestOrphans(t *testing.T) {
	s := clitest.New(t)
	id := s.Apply(clitest.Documents(clitest.ConfigMap("a"), clitest.ConfigMap(strings.Repeat("n", 250)), clitest.Deployment("web", 1, "1m"))).Want(t, 0).Result.Inventory.ID
	none := decoded[admin.Orphans](t, command(s, "orphans", "-n", s.NS).Want(t, 0)) // nor the ReplicaSet, whose annotations are the Deployment's
	if len(none.Orphans)+len(none.Unknown)+len(none.NotSearched) > 0 {
		t.Errorf("it found %+v", none)
	}
	owned := func(name, by string) {
		s.Create("v1/configmaps", clitest.ConfigMap(name, "annotations:\n    config.k8s.io/owning-inventory: "+by))
	}
	owned("lost", id+"\n  labels:\n    applyset.kubernetes.io/part-of: "+s.ConfigMap("inv").GetLabels()["applyset.kubernetes.io/id"])
	owned("stray", "gone-for-good")
	s.Merge("v1/configmaps", s.NS, "a", `{"metadata":{"annotations":{"config.k8s.io/owning-inventory":"another"}}}`)

	got := decoded[admin.Orphans](t, command(s, "orphans", "-n", s.NS).Want(t, 2))
	var found []string
	for _, o := range got.Orphans {
		found = append(found, o.Name+" of "+o.Inventory+": "+o.Reason)
	}
	want := []string{
		"a of another: inventory " + s.NS + "/inv lists it, but its annotation names another one",
		"lost of " + id + ": inventory " + s.NS + "/inv does not list it",
		"stray of gone-for-good: no inventory has this id",
	}
	if !slices.Equal(found, want) {
		t.Errorf("it found %q, want %q", found, want)
	}
	command(s, "orphans", "-n", s.NS, "-o", "text").Want(t, 2).Prints(t, "orphan", "lost", "3 orphans")

	// What cannot be listed is unknown, and so is what a damaged inventory may hold.
	clitest.Grant(t, s.Cluster, clitest.Documents(strings.NewReplacer("{ns}", s.NS).Replace(`apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: "{ns}-searcher"}
rules:
- {apiGroups: [""], resources: [configmaps], verbs: [get, list]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: "{ns}-searcher"}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "{ns}-searcher"}
subjects: [{kind: User, apiGroup: rbac.authorization.k8s.io, name: "{ns}-searcher"}]
`)))
	s.GoneAfter("rbac.authorization.k8s.io/v1/clusterroles", s.NS+"-searcher")
	s.GoneAfter("rbac.authorization.k8s.io/v1/clusterrolebindings", s.NS+"-searcher")
	limited := decoded[admin.Orphans](t, command(s, "orphans", "-n", s.NS, "--as", s.NS+"-searcher").Want(t, 1))
	if len(limited.Orphans) != 3 || !slices.ContainsFunc(limited.NotSearched, func(k admin.UnsearchedKind) bool { return k.Kind == "Deployment.apps" }) {
		t.Errorf("with few rights it found %+v", limited)
	}
	s.DeleteConfigMap("inv-overflow-1")
	damaged := decoded[admin.Orphans](t, command(s, "orphans", "-n", s.NS).Want(t, 1))
	if len(damaged.Orphans) != 2 || len(damaged.Unknown) != 2 || !strings.Contains(damaged.Unknown[0].Reason, "brine inventory repair") {
		t.Errorf("with a damaged inventory it found %+v", damaged)
	}

	// A repair adds those of the inventory.
	command(s, "repair", "--inventory", s.Inventory, "--all-kinds").Want(t, 0)
	if repaired := decoded[admin.Orphans](t, command(s, "orphans", "-n", s.NS).Want(t, 2)); len(repaired.Orphans) != 2 {
		t.Errorf("after a repair it found %+v", repaired)
	}
}
