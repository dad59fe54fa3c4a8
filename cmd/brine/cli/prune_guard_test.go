package cli

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"

	"brine/bundle/cluster/clustertest"
	"brine/bundle/plan"
	"brine/bundle/report"
	"brine/inventory"
)

// A guard that is asked for the plan is asked again at the act: what somebody
// else does in between counts.

// merge patches an object past brine, as a second actor on its own goroutine may.
func (s *fixture) merge(resource, namespace, name, patch string) {
	var r dynamic.ResourceInterface = s.resources(resource)
	if namespace != "" {
		r = s.resources(resource).Namespace(namespace)
	}
	if _, err := r.Patch(context.Background(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "somebody"}); err != nil {
		s.Errorf("patch %s %s: %v", resource, name, err)
	}
}

// before lets a second actor act once, right before the first request of a method
// for a path that ends so.
func (s *fixture) before(method, suffix string, act func()) *clustertest.Proxy {
	s.Helper()
	p := s.proxied()
	var once sync.Once
	p.Intercept(func(r clustertest.Request) clustertest.Action {
		if r.Method != method || r.DryRun || !strings.HasSuffix(r.Path, suffix) {
			return clustertest.Action{}
		}
		return clustertest.Action{Before: func() { once.Do(act) }}
	})
	return p
}

// discovered says whether discovery knows a group.
func (s *fixture) discovered(group string) bool {
	s.Helper()
	groups, _, _ := discovery.NewDiscoveryClientForConfigOrDie(s.cluster.Config(s.TB)).ServerGroupsAndResources()
	return slices.ContainsFunc(groups, func(g *metav1.APIGroup) bool { return g.Name == group })
}

const keepIt = `{"metadata":{"annotations":{"cli-utils.sigs.k8s.io/on-remove":"keep"}}}`

func (s *fixture) owner(name string) string {
	s.Helper()
	live := s.live("v1/configmaps", s.ns, name)
	if live == nil {
		s.Fatalf("ConfigMap %s is gone", name)
	}
	return live.GetAnnotations()[inventory.OwningInventory]
}

func TestPruneGuardDirectlyBeforeTheDelete(t *testing.T) {
	old := "/configmaps/old"
	start := func(t *testing.T) *fixture {
		s := newFixture(t)
		s.apply(documents(configMap("stays"), configMap("old"))).want(t, 0)
		return s
	}
	t.Run("kept by an annotation", func(t *testing.T) {
		s := start(t)
		s.before(http.MethodDelete, old, func() { s.merge("v1/configmaps", s.ns, "old", keepIt) })
		if o := s.apply(configMap("stays")).want(t, 0).did(t, "ConfigMap", "old", plan.Detached); !strings.Contains(o.Reason, "on-remove: keep") {
			t.Errorf("the reason is %q", o.Reason)
		}
		if owner := s.owner("old"); owner != "" {
			t.Errorf("it is still owned by %q", owner)
		}
		s.holds("ConfigMap stays")
	})
	t.Run("adopted by another inventory", func(t *testing.T) {
		s := start(t)
		s.before(http.MethodDelete, old, func() {
			s.merge("v1/configmaps", s.ns, "old", `{"metadata":{"annotations":{"config.k8s.io/owning-inventory":"theirs"}}}`)
		})
		s.apply(configMap("stays")).want(t, 0).prints(t, `it belongs to inventory "theirs"`).did(t, "ConfigMap", "old", plan.Detached)
		if owner := s.owner("old"); owner != "theirs" {
			t.Errorf("its owner is %q", owner)
		}
		s.holds("ConfigMap stays")
	})
	t.Run("replaced by another object", func(t *testing.T) {
		s := start(t)
		s.before(http.MethodDelete, old, func() {
			if err := s.resources("v1/configmaps").Namespace(s.ns).Delete(context.Background(), "old", metav1.DeleteOptions{}); err != nil {
				s.Error(err)
			}
			s.create("v1/configmaps", configMap("old"))
		})
		s.apply(configMap("stays")).want(t, report.ExitFailed).prints(t, "another client deleted and created it again").did(t, "ConfigMap", "old", plan.Skipped)
		s.exists("v1/configmaps", "old")
		s.kubeconfig = s.cluster.Kubeconfig
		s.apply(configMap("stays")).want(t, 0).did(t, "ConfigMap", "old", plan.Detached)
	})
	t.Run("deleted meanwhile", func(t *testing.T) {
		s := start(t)
		s.before(http.MethodDelete, old, func() {
			if err := s.resources("v1/configmaps").Namespace(s.ns).Delete(context.Background(), "old", metav1.DeleteOptions{}); err != nil {
				s.Error(err)
			}
		})
		s.apply(configMap("stays")).want(t, 0).did(t, "ConfigMap", "old", plan.Pruned)
		s.holds("ConfigMap stays")
	})
	t.Run("a controller writes its status all the time", func(t *testing.T) {
		s := start(t)
		p := s.proxied()
		var mu sync.Mutex
		writes := 0
		p.Intercept(func(r clustertest.Request) clustertest.Action {
			mu.Lock()
			defer mu.Unlock()
			if r.Method != http.MethodDelete || !strings.HasSuffix(r.Path, old) || writes == 3 {
				return clustertest.Action{}
			}
			writes++
			n := strings.Repeat("x", writes)
			return clustertest.Action{Before: func() { s.merge("v1/configmaps", s.ns, "old", `{"data":{"status":"`+n+`"}}`) }}
		})
		s.apply(configMap("stays")).want(t, 0).did(t, "ConfigMap", "old", plan.Pruned)
		s.missing("v1/configmaps", "old")
	})
	t.Run("nothing happens: one request", func(t *testing.T) {
		s := start(t)
		p := s.proxied()
		s.apply(configMap("stays")).want(t, 0).did(t, "ConfigMap", "old", plan.Pruned)
		n := 0
		for _, r := range p.Requests() {
			if r.Method == http.MethodDelete && strings.HasSuffix(r.Path, old) {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%d DELETEs", n)
		}
	})
	t.Run("the answer is lost", func(t *testing.T) {
		s := newFixture(t)
		s.apply(documents(configMap("stays"), deployment("old", 1, "1m"))).want(t, 0)
		p := s.proxied()
		var once sync.Once
		p.Intercept(func(r clustertest.Request) (a clustertest.Action) {
			if r.Method == http.MethodDelete && strings.HasSuffix(r.Path, "/deployments/old") {
				once.Do(func() { a.CutAfter = true })
			}
			return a
		})
		s.apply(configMap("stays"), "--cascade=foreground").want(t, 0).did(t, "Deployment", "old", plan.Pruned)
		s.missing("apps/v1/deployments", "old")
	})
	t.Run("wanted absent by name", func(t *testing.T) {
		s := newFixture(t)
		s.create("v1/configmaps", configMap("old"))
		s.before(http.MethodDelete, old, func() { s.merge("v1/configmaps", s.ns, "old", keepIt) })
		s.apply(`x: {k8s: [object_absent, {kind: ConfigMap}, {apiVersion: v1}, {name: old}, {namespace: "{ns}"}]}`+"\n", "--input-format=high").
			want(t, 0).did(t, "ConfigMap", "old", plan.Detached)
		s.exists("v1/configmaps", "old")
	})
	t.Run("what it needs stays with it", func(t *testing.T) {
		s := newFixture(t)
		s.apply(documents(configMap("stays"), configMap("user", dependsOn("/namespaces/{ns}/ConfigMap/used")), configMap("used"))).want(t, 0)
		s.before(http.MethodDelete, "/configmaps/user", func() { s.merge("v1/configmaps", s.ns, "user", keepIt) })
		s.apply(configMap("stays")).want(t, 0).did(t, "ConfigMap", "used", plan.Detached)
		s.exists("v1/configmaps", "user", "used")
		if owner := s.owner("used"); owner != "" {
			t.Errorf("it is still owned by %q", owner)
		}
		s.holds("ConfigMap stays")
	})
	t.Run("detached and adopted before", func(t *testing.T) {
		s := newFixture(t)
		s.apply(documents(configMap("stays"), configMap("old", "annotations: {cli-utils.sigs.k8s.io/on-remove: keep}"))).want(t, 0)
		s.before(http.MethodPatch, old, func() {
			s.merge("v1/configmaps", s.ns, "old", `{"metadata":{"annotations":{"config.k8s.io/owning-inventory":"theirs"}}}`)
		})
		s.apply(configMap("stays")).want(t, 0).did(t, "ConfigMap", "old", plan.Detached)
		if owner := s.owner("old"); owner != "theirs" {
			t.Errorf("its owner is %q", owner)
		}
	})
}

// What a Namespace or CRD holds is looked at again when its turn comes.
func TestPruneGuardOfNamespacesAndCRDs(t *testing.T) {
	ours := func(name string, metadata ...string) string {
		return strings.ReplaceAll(configMap(name, metadata...), "{ns}", "{ns}-held")
	}
	start := func(t *testing.T, more ...string) *fixture {
		s := newFixture(t)
		s.goneAfter("v1/namespaces", s.ns+"-held")
		s.apply(documents(append([]string{"apiVersion: v1\nkind: Namespace\nmetadata: {name: \"{ns}-held\"}\n", ours("ours")}, more...)...)).want(t, 0)
		return s
	}
	stays := func(s *fixture, resource, name string) {
		s.Helper()
		if u := s.live(resource, s.ns+"-held", name); u == nil || u.GetDeletionTimestamp() != nil {
			s.Errorf("%s %s was lost", resource, name)
		}
		if u := s.live("v1/namespaces", "", s.ns+"-held"); u == nil || u.GetDeletionTimestamp() != nil {
			s.Error("the namespace was deleted")
		}
	}
	t.Run("a Secret came", func(t *testing.T) {
		s := start(t)
		s.before(http.MethodDelete, "/configmaps/ours", func() {
			s.create("v1/secrets", "apiVersion: v1\nkind: Secret\nmetadata: {name: theirs, namespace: {ns}-held}\n")
		})
		s.destroy().want(t, report.ExitFailed).prints(t, "outside this inventory: Secret "+s.ns+"-held/theirs", "--force-namespaces").
			did(t, "Namespace", s.ns+"-held", plan.Skipped)
		stays(s, "v1/secrets", "theirs")
		if got, want := s.members(), []string{"Namespace " + s.ns + "-held"}; !slices.Equal(got, want) {
			t.Errorf("the inventory holds %v, want %v", got, want)
		}
		s.destroy("--force-namespaces").want(t, 0)
	})
	t.Run("a member of it is kept", func(t *testing.T) {
		s := start(t)
		s.before(http.MethodDelete, "/configmaps/ours", func() { s.merge("v1/configmaps", s.ns+"-held", "ours", keepIt) })
		s.destroy().want(t, 0).did(t, "Namespace", s.ns+"-held", plan.Detached)
		stays(s, "v1/configmaps", "ours")
	})
	t.Run("a kind came and an object of it", func(t *testing.T) {
		s := start(t)
		s.goneAfter("apiextensions.k8s.io/v1/customresourcedefinitions", "widgets."+s.ns+".example.com")
		s.before(http.MethodDelete, "/configmaps/ours", func() {
			s.create("apiextensions.k8s.io/v1/customresourcedefinitions", widgets)
			s.eventually("widgets are served", func() bool {
				_, err := s.resources(s.ns+".example.com/v1/widgets").Namespace(s.ns+"-held").Create(context.Background(),
					s.parsed(strings.Replace(widget, `namespace: "{ns}"`, "namespace: {ns}-held", 1)), metav1.CreateOptions{})
				return err == nil
			})
			s.eventually("widgets are discovered", func() bool { return s.discovered(s.ns + ".example.com") })
		})
		s.destroy().want(t, report.ExitFailed).prints(t, "outside this inventory: Widget."+s.ns+".example.com")
		stays(s, s.ns+".example.com/v1/widgets", "one")
	})
	t.Run("a resource of a CRD came", func(t *testing.T) {
		s := newFixture(t)
		crd := "widgets." + s.ns + ".example.com"
		s.goneAfter("apiextensions.k8s.io/v1/customresourcedefinitions", crd)
		s.apply(documents(widgets, widget)).want(t, 0)
		s.before(http.MethodDelete, "/widgets/one", func() {
			s.create(s.ns+".example.com/v1/widgets", strings.Replace(widget, "one", "theirs", 1))
		})
		s.destroy().want(t, report.ExitFailed).prints(t, "outside this inventory").did(t, "CustomResourceDefinition", crd, plan.Skipped)
		s.exists(s.ns+".example.com/v1/widgets", "theirs")
	})
	t.Run("what controllers made goes", func(t *testing.T) {
		s := start(t, strings.ReplaceAll(deployment("web", 2, "1m"), "namespace: {ns}", "namespace: {ns}-held"))
		s.destroy().want(t, 0).did(t, "Namespace", s.ns+"-held", plan.Pruned)
	})
}

// A claim is a StatefulSet's own by its whole name and its labels.
func TestClaimsOfAnotherStatefulSetAreUnmanaged(t *testing.T) {
	claim := func(name, app string) string {
		return "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: " + name + ", namespace: {ns}-held, labels: {app: " + app + "}}\n" +
			"spec: {accessModes: [ReadWriteOnce], storageClassName: {ns}-none, resources: {requests: {storage: 1Mi}}}\n"
	}
	for name, theirs := range map[string]string{
		"another set's": claim("data-web-blue-0", "web-blue"),
		"no ordinal":    claim("data-web-backup", "web"),
		"other labels":  claim("data-web-7", "another"),
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t)
			s.goneAfter("v1/namespaces", s.ns+"-held")
			s.apply(documents("apiVersion: v1\nkind: Namespace\nmetadata: {name: \"{ns}-held\"}\n", `apiVersion: apps/v1
kind: StatefulSet
metadata: {name: web, namespace: "{ns}-held"}
spec:
  serviceName: web
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: "registry.k8s.io/pause:3.10"}]}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], storageClassName: "{ns}-none", resources: {requests: {storage: 1Mi}}}
`), "--wait=applied").want(t, 0)
			u := s.create("v1/persistentvolumeclaims", theirs)
			s.eventually("the set's own claim is there", func() bool {
				return s.live("v1/persistentvolumeclaims", s.ns+"-held", "data-web-0") != nil
			})
			s.destroy().want(t, report.ExitFailed).prints(t, "outside this inventory: PersistentVolumeClaim "+s.ns+"-held/"+u.GetName())
			if live := s.live("v1/persistentvolumeclaims", s.ns+"-held", u.GetName()); live == nil || live.GetDeletionTimestamp() != nil {
				t.Errorf("the claim %s was deleted", u.GetName())
			}
		})
	}
}
