package cli

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"brine/bundle/cluster/clustertest"
	"brine/bundle/plan"
)

// role is an RBAC object whose name is not a DNS name.
func role(kind, name string) string {
	text := "apiVersion: rbac.authorization.k8s.io/v1\nkind: " + kind + "\nmetadata:\n  name: \"" + name + "\"\n"
	if !strings.HasPrefix(kind, "Cluster") {
		text += "  namespace: {ns}\n"
	}
	if strings.HasSuffix(kind, "Binding") {
		return text + "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}\nsubjects: []\n"
	}
	return text + "rules: []\n"
}

func TestRBACNames(t *testing.T) {
	s := newFixture(t)
	var names []string
	for _, name := range []string{"a:b", "a_b", "a__b", "a:_b", "a_:b", ":a", "_a", "a:", "a_", "__", "::", "system:a_b:c__d", "a-b.c"} {
		names = append(names, s.ns+name)
	}
	var texts, half []string
	for i, name := range names {
		for _, kind := range []string{"Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"} {
			texts = append(texts, role(kind, name))
			if i%2 == 0 {
				half = append(half, role(kind, name))
			}
		}
	}
	s.apply(documents(texts...)).want(t, 0)
	if got := s.members(); len(got) != len(texts) {
		t.Errorf("the inventory holds %d, want %d: %v", len(got), len(texts), got)
	}
	if result := s.apply(documents(half...)).want(t, 0); result.result.Summary.Pruned != len(texts)-len(half) {
		t.Errorf("%d were pruned, want %d", result.result.Summary.Pruned, len(texts)-len(half))
	}
	if got := s.members(); len(got) != len(half) {
		t.Errorf("the inventory holds %d, want %d: %v", len(got), len(half), got)
	}
	s.destroy().want(t, 0)
	left, err := s.resources("rbac.authorization.k8s.io/v1/clusterroles").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range left.Items {
		if strings.HasPrefix(u.GetName(), s.ns) {
			t.Errorf("ClusterRole %s is left", u.GetName())
		}
	}
}

func TestKeysThatAConfigMapCannotHold(t *testing.T) {
	s := newFixture(t)
	long := strings.Repeat("n", 253)
	s.apply(documents(configMap(long), configMap("short"))).want(t, 0)
	if got := s.members(); !slices.Contains(got, "ConfigMap "+s.ns+"/"+long) {
		t.Errorf("the inventory holds %v", got)
	}
	s.apply(configMap("short")).want(t, 0).did(t, "ConfigMap", long, plan.Pruned)
	s.missing("v1/configmaps", long)
}

func TestNoPruneForgetsNothing(t *testing.T) {
	s := newFixture(t)
	s.apply(documents(configMap("a"), configMap("b"))).want(t, 0)
	s.apply(configMap("a"), "--no-prune").want(t, 0).did(t, "ConfigMap", "b", plan.Skipped)
	s.exists("v1/configmaps", "b")
	if got := s.members(); len(got) != 2 {
		t.Errorf("the inventory holds %v, want both", got)
	}
	s.apply(configMap("a")).want(t, 0).did(t, "ConfigMap", "b", plan.Pruned)
	s.missing("v1/configmaps", "b")
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
			s := newFixture(t)
			s.apply(configMap("old")).want(t, 0)
			p := s.proxied()
			p.Intercept(func(r clustertest.Request) clustertest.Action {
				if r.Method == http.MethodGet && broken.request(r) {
					return broken.action
				}
				return clustertest.Action{}
			})
			s.apply(configMap("new"), "--retry-timeout=200ms").want(t, broken.exit).prints(t, "read inventory")
			if w := p.Writes(); len(w) > 0 {
				t.Errorf("it wrote %v", describe(w))
			}
			s.exists("v1/configmaps", "old")
			s.missing("v1/configmaps", "new")
		})
	}
}

func TestUnreadableKeyStopsTheRun(t *testing.T) {
	s := newFixture(t)
	s.apply(configMap("old")).want(t, 0)
	if _, err := s.resources("v1/configmaps").Namespace(s.ns).Patch(t.Context(), "inv", types.MergePatchType,
		[]byte(`{"data":{"no-object":""}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	p := s.proxied()
	s.apply(configMap("new")).want(t, 1).prints(t, "no-object")
	if w := p.Writes(); len(w) > 0 {
		t.Errorf("it wrote %v", describe(w))
	}
}

func TestTwoInventoriesWithOneID(t *testing.T) {
	s := newFixture(t)
	id := "--inventory-id=one-" + s.ns
	s.apply(configMap("a"), id).want(t, 0)
	second := s.other("second")
	second.apply(configMap("b"), id).want(t, 0)
	// Each knows its own members only.
	s.apply(configMap("a")).want(t, 0)
	s.exists("v1/configmaps", "a", "b")
	second.destroy().want(t, 0)
	s.exists("v1/configmaps", "a", "inv")
	s.missing("v1/configmaps", "b", "second")
	s.destroy().want(t, 0)
	s.missing("v1/configmaps", "a", "inv")
}

func TestDuplicatedObjects(t *testing.T) {
	s := newFixture(t)
	result := s.apply(documents(configMap("a"), configMap("a"))).want(t, 0)
	result.prints(t, "it is applied once")
	if result.result.Summary.Created != 1 {
		t.Errorf("%d were created", result.result.Summary.Created)
	}
	p := s.proxied()
	s.apply(documents(configMap("a"), strings.Replace(configMap("a"), "key: value", "key: other", 1))).want(t, 3).prints(t, "keep one of them", "bundle.yaml:1")
	if w := p.Writes(); len(w) > 0 {
		t.Errorf("it wrote %v", describe(w))
	}
}

func TestInventoryDeletedMidRun(t *testing.T) {
	s := newFixture(t)
	s.apply(configMap("a")).want(t, 0)
	p := s.proxied()
	p.Intercept(func(r clustertest.Request) clustertest.Action {
		if r.IsWrite() && strings.HasSuffix(r.Path, "/configmaps/b") {
			_ = s.resources("v1/configmaps").Namespace(s.ns).Delete(context.Background(), "inv", metav1.DeleteOptions{})
		}
		return clustertest.Action{}
	})
	// All that it held is known, so it is written again.
	s.apply(documents(configMap("a"), configMap("b"))).want(t, 0)
	p.Intercept(nil)
	if got := s.members(); len(got) != 2 {
		t.Errorf("the inventory holds %v", got)
	}
	s.destroy().want(t, 0)
	s.missing("v1/configmaps", "a", "b")
}
