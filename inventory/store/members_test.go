package store_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"brine/bundle/cluster/clustertest"
	"brine/bundle/plan"
	"brine/cmd/brine/clitest"
)

func TestInventoryWithAnotherIDIsNotWritten(t *testing.T) {
	s := clitest.New(t)
	s.Apply(clitest.ConfigMap("a"), "--inventory-id=first-"+s.NS).Want(t, 0)
	p := s.Proxied()
	s.Apply(clitest.ConfigMap("b"), "--inventory-id=second-"+s.NS).Want(t, 1).Prints(t, "first-"+s.NS, "second-"+s.NS)
	if w := p.Writes(); len(w) > 0 {
		t.Errorf("it wrote %v", w)
	}
	s.Missing("v1/configmaps", "b")
}

func TestRBACNamesWithColonsAndUnderscoresAreMembers(t *testing.T) {
	s := clitest.New(t)
	var names []string
	for _, name := range []string{"a:b", "a_b", "a__b", "a:_b", "a_:b", ":a", "_a", "a:", "a_", "__", "::", "system:a_b:c__d", "a-b.c"} {
		names = append(names, s.NS+name)
	}
	var texts, half []string
	for i, name := range names {
		for _, kind := range []string{"Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"} {
			texts = append(texts, clitest.Role(kind, name))
			if i%2 == 0 {
				half = append(half, clitest.Role(kind, name))
			}
		}
	}
	s.Apply(clitest.Documents(texts...)).Want(t, 0)
	if got := s.Members(); len(got) != len(texts) {
		t.Errorf("the inventory holds %d, want %d: %v", len(got), len(texts), got)
	}
	if result := s.Apply(clitest.Documents(half...)).Want(t, 0); result.Result.Summary.Pruned != len(texts)-len(half) {
		t.Errorf("%d were pruned, want %d", result.Result.Summary.Pruned, len(texts)-len(half))
	}
	if got := s.Members(); len(got) != len(half) {
		t.Errorf("the inventory holds %d, want %d: %v", len(got), len(half), got)
	}
	s.Destroy().Want(t, 0)
	left, err := s.Resources("rbac.authorization.k8s.io/v1/clusterroles").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range left.Items {
		if strings.HasPrefix(u.GetName(), s.NS) {
			t.Errorf("ClusterRole %s is left", u.GetName())
		}
	}
}

func TestKeysThatAConfigMapCannotHold(t *testing.T) {
	s := clitest.New(t)
	long := strings.Repeat("n", 253)
	s.Apply(clitest.Documents(clitest.ConfigMap(long), clitest.ConfigMap("short"))).Want(t, 0)
	if got := s.Members(); !slices.Contains(got, "ConfigMap "+s.NS+"/"+long) {
		t.Errorf("the inventory holds %v", got)
	}
	s.Apply(clitest.ConfigMap("short")).Want(t, 0).Did(t, "ConfigMap", long, plan.Pruned)
	s.Missing("v1/configmaps", long)
}

func TestNoPruneForgetsNothing(t *testing.T) {
	s := clitest.New(t)
	s.Apply(clitest.Documents(clitest.ConfigMap("a"), clitest.ConfigMap("b"))).Want(t, 0)
	s.Apply(clitest.ConfigMap("a"), "--no-prune").Want(t, 0).Did(t, "ConfigMap", "b", plan.Skipped)
	s.Exists("v1/configmaps", "b")
	if got := s.Members(); len(got) != 2 {
		t.Errorf("the inventory holds %v, want both", got)
	}
	s.Apply(clitest.ConfigMap("a")).Want(t, 0).Did(t, "ConfigMap", "b", plan.Pruned)
	s.Missing("v1/configmaps", "b")
}

func TestUnreadableInventoryStopsTheRun(t *testing.T) {
	for name, broken := range map[string]struct {
		request func(clustertest.Request) bool
		action  clustertest.Action
		exit    int
	}{
		"head forbidden": {func(r clustertest.Request) bool { return strings.HasSuffix(r.Path, "/configmaps/inv") },
			clustertest.Action{Status: http.StatusForbidden, Message: "not for you"}, 6},
		"sides forbidden": {func(r clustertest.Request) bool {
			return strings.HasSuffix(r.Path, "/configmaps") && r.Query.Has("labelSelector")
		}, clustertest.Action{Status: http.StatusForbidden, Message: "not for you"}, 6},
		"server error": {func(r clustertest.Request) bool { return strings.HasSuffix(r.Path, "/configmaps/inv") },
			clustertest.Action{Status: http.StatusInternalServerError, Message: "etcd is away"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := clitest.New(t)
			s.Apply(clitest.ConfigMap("old")).Want(t, 0)
			p := s.Proxied()
			p.Intercept(func(r clustertest.Request) clustertest.Action {
				if r.Method == http.MethodGet && broken.request(r) {
					return broken.action
				}
				return clustertest.Action{}
			})
			s.Apply(clitest.ConfigMap("new"), "--retry-timeout=200ms").Want(t, broken.exit).Prints(t, "read inventory")
			if w := p.Writes(); len(w) > 0 {
				t.Errorf("it wrote %v", clitest.Describe(w))
			}
			s.Exists("v1/configmaps", "old")
			s.Missing("v1/configmaps", "new")
		})
	}
}

func TestUnreadableKeyStopsTheRun(t *testing.T) {
	s := clitest.New(t)
	s.Apply(clitest.ConfigMap("old")).Want(t, 0)
	if _, err := s.Resources("v1/configmaps").Namespace(s.NS).Patch(t.Context(), "inv", types.MergePatchType,
		[]byte(`{"data":{"no-object":""}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	p := s.Proxied()
	s.Apply(clitest.ConfigMap("new")).Want(t, 1).Prints(t, "no-object")
	if w := p.Writes(); len(w) > 0 {
		t.Errorf("it wrote %v", clitest.Describe(w))
	}
}

// An inventory is not made with the ID of another one, whatever its namespace is. Where another tool or an
// older version made it, each knows its own members only.
func TestTwoInventoriesWithOneID(t *testing.T) {
	s := clitest.New(t)
	id := "one-" + s.NS
	s.Apply(clitest.ConfigMap("a"), "--inventory-id="+id).Want(t, 0)
	p := s.Proxied()
	second, elsewhere := s.Other("second"), s.Other("second")
	elsewhere.Inventory = "default/" + s.NS
	for _, flag := range []string{"--dry-run=server", "--dry-run=none"} {
		second.Apply(clitest.ConfigMap("b"), "--inventory-id="+id, flag).Want(t, 3).Prints(t, "inventory "+s.NS+"/inv has the ID", "nothing is applied", "Choose another --inventory-id")
		elsewhere.Apply(clitest.ConfigMap("b"), "--inventory-id="+id, flag).Want(t, 3).Prints(t, "inventory "+s.NS+"/inv has the ID")
	}
	if w := p.Writes(); len(w) > 0 {
		t.Errorf("it wrote %v", clitest.Describe(w))
	}
	s.Create("v1/configmaps", clitest.ConfigMapOf("second", "{}", "labels: {cli-utils.sigs.k8s.io/inventory-id: "+id+"}"))
	second.Apply(clitest.ConfigMap("b"), "--inventory-id="+id).Want(t, 0)
	// Each knows its own members only.
	s.Apply(clitest.ConfigMap("a")).Want(t, 0)
	s.Exists("v1/configmaps", "a", "b")
	second.Destroy().Want(t, 0)
	s.Exists("v1/configmaps", "a", "inv")
	s.Missing("v1/configmaps", "b", "second")
	s.Destroy().Want(t, 0)
	s.Missing("v1/configmaps", "a", "inv")
}

func TestEqualDuplicatesAreAppliedOnceAndOthersRefused(t *testing.T) {
	s := clitest.New(t)
	result := s.Apply(clitest.Documents(clitest.ConfigMap("a"), clitest.ConfigMap("a"))).Want(t, 0)
	result.Prints(t, "it is applied once")
	if result.Result.Summary.Created != 1 {
		t.Errorf("%d were created", result.Result.Summary.Created)
	}
	p := s.Proxied()
	s.Apply(clitest.Documents(clitest.ConfigMap("a"), strings.Replace(clitest.ConfigMap("a"), "key: value", "key: other", 1))).Want(t, 3).Prints(t, "keep one of them", "bundle.yaml:1")
	if w := p.Writes(); len(w) > 0 {
		t.Errorf("it wrote %v", clitest.Describe(w))
	}
}

// Somebody annotates the inventory, and then deletes it, between the run's last
// write of it and the reading after the conflict.
func TestInventoryDeletedAfterAConflictIsWrittenAgain(t *testing.T) {
	s := clitest.New(t)
	s.Apply(clitest.ConfigMap("a")).Want(t, 0)
	inventories := s.Resources("v1/configmaps").Namespace(s.NS)
	p := s.Proxied()
	applied, reads := false, 0
	var mu sync.Mutex
	p.Intercept(func(r clustertest.Request) clustertest.Action {
		mu.Lock()
		defer mu.Unlock()
		own := strings.HasSuffix(r.Path, "/configmaps/inv")
		switch {
		case r.IsWrite() && strings.HasSuffix(r.Path, "/configmaps/b"):
			applied = true
		case applied && own && r.Method == http.MethodPut && reads == 0:
			_, err := inventories.Patch(context.Background(), "inv", types.MergePatchType, []byte(`{"metadata": {"annotations": {"somebody": "was here"}}}`), metav1.PatchOptions{})
			if err != nil {
				t.Error(err)
			}
		case applied && own && r.Method == http.MethodGet:
			if reads++; reads == 2 {
				if err := inventories.Delete(context.Background(), "inv", metav1.DeleteOptions{}); err != nil {
					t.Error(err)
				}
			}
		}
		return clustertest.Action{}
	})
	s.Apply(clitest.Documents(clitest.ConfigMap("a"), clitest.ConfigMap("b"))).Want(t, 0)
	p.Intercept(nil)
	if reads < 2 {
		t.Errorf("there was no conflict: %d reads", reads)
	}
	if got := s.Members(); len(got) != 2 {
		t.Errorf("the inventory holds %v", got)
	}
	s.Destroy().Want(t, 0)
	s.Missing("v1/configmaps", "a", "b")
}

func TestInventoryDeletedDuringARunIsWrittenAgain(t *testing.T) {
	s := clitest.New(t)
	s.Apply(clitest.ConfigMap("a")).Want(t, 0)
	p := s.Proxied()
	p.Intercept(func(r clustertest.Request) clustertest.Action {
		if r.IsWrite() && strings.HasSuffix(r.Path, "/configmaps/b") {
			_ = s.Resources("v1/configmaps").Namespace(s.NS).Delete(context.Background(), "inv", metav1.DeleteOptions{})
		}
		return clustertest.Action{}
	})
	// All that it held is known, so it is written again.
	s.Apply(clitest.Documents(clitest.ConfigMap("a"), clitest.ConfigMap("b"))).Want(t, 0)
	p.Intercept(nil)
	if got := s.Members(); len(got) != 2 {
		t.Errorf("the inventory holds %v", got)
	}
	s.Destroy().Want(t, 0)
	s.Missing("v1/configmaps", "a", "b")
}

// A copy of an inventory in another namespace lists what the original owns.
func TestCopyOfAnInventory(t *testing.T) {
	s := clitest.New(t)
	s.Apply(clitest.Documents(clitest.ConfigMap("a"), clitest.ConfigMap("b"))).Want(t, 0)
	s.Apply(clitest.Documents(clitest.ConfigMap("a"), clitest.ConfigMap("b"), "apiVersion: v1\nkind: Namespace\nmetadata: {name: \"{ns}-copy\"}\n")).Want(t, 0)
	u := s.ConfigMap("inv")
	u.SetNamespace(s.NS + "-copy")
	u.SetUID("")
	u.SetResourceVersion("")
	u.SetManagedFields(nil)
	if _, err := s.Resources("v1/configmaps").Namespace(s.NS+"-copy").Create(t.Context(), u, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"destroy"}, {"rollback", "1"}, {"status"}, {"inventory", "repair"}} {
		clitest.Run(t, s.Kubeconfig, append(args, "--inventory", s.NS+"-copy/inv")...).Want(t, 1).Prints(t, "is a copy of another inventory", "kubectl delete")
	}
	s.Exists("v1/configmaps", "a", "b", "inv")
	s.Destroy().Want(t, 1) // the namespace holds the copy
	s.Missing("v1/configmaps", "a", "b")
}
