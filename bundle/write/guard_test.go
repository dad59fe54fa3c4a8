package write_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"brine/bundle/cluster/clustertest"
	"brine/bundle/plan"
	"brine/bundle/report"
	"brine/cmd/brine/clitest"
	"brine/inventory"
)

const keepIt = `{"metadata":{"annotations":{"cli-utils.sigs.k8s.io/on-remove":"keep"}}}`

func ownerOf(s *clitest.Fixture, name string) string {
	s.Helper()
	live := s.ConfigMap(name)
	if live == nil {
		s.Fatalf("ConfigMap %s is gone", name)
	}
	return live.GetAnnotations()[inventory.OwningInventory]
}

// A guard that is asked for the plan is asked again at the act: what somebody
// else does in between counts.
func TestPruneGuardDirectlyBeforeTheDelete(t *testing.T) {
	old := "/configmaps/old"
	start := func(t *testing.T) *clitest.Fixture {
		s := clitest.New(t)
		s.Apply(clitest.Documents(clitest.ConfigMap("stays"), clitest.ConfigMap("old"))).Want(t, 0)
		return s
	}
	t.Run("kept by an annotation", func(t *testing.T) {
		s := start(t)
		s.Before(http.MethodDelete, old, func() { s.Merge("v1/configmaps", s.NS, "old", keepIt) })
		if o := s.Apply(clitest.ConfigMap("stays")).Want(t, 0).Did(t, "ConfigMap", "old", plan.Detached); !strings.Contains(o.Reason, "on-remove: keep") {
			t.Errorf("the reason is %q", o.Reason)
		}
		if owner := ownerOf(s, "old"); owner != "" {
			t.Errorf("it is still owned by %q", owner)
		}
		s.Holds("ConfigMap stays")
	})
	t.Run("adopted by another inventory", func(t *testing.T) {
		s := start(t)
		s.Before(http.MethodDelete, old, func() {
			s.Merge("v1/configmaps", s.NS, "old", `{"metadata":{"annotations":{"config.k8s.io/owning-inventory":"theirs"}}}`)
		})
		s.Apply(clitest.ConfigMap("stays")).Want(t, 0).Prints(t, `it belongs to inventory "theirs"`).Did(t, "ConfigMap", "old", plan.Detached)
		if owner := ownerOf(s, "old"); owner != "theirs" {
			t.Errorf("its owner is %q", owner)
		}
		s.Holds("ConfigMap stays")
	})
	t.Run("replaced by another object", func(t *testing.T) {
		s := start(t)
		s.Before(http.MethodDelete, old, func() {
			if err := s.Resources("v1/configmaps").Namespace(s.NS).Delete(context.Background(), "old", metav1.DeleteOptions{}); err != nil {
				s.Error(err)
			}
			s.Create("v1/configmaps", clitest.ConfigMap("old"))
		})
		s.Apply(clitest.ConfigMap("stays")).Want(t, report.ExitFailed).Prints(t, "another client deleted and created it again").Did(t, "ConfigMap", "old", plan.Skipped)
		s.Exists("v1/configmaps", "old")
		s.Kubeconfig = s.Cluster.Kubeconfig
		s.Apply(clitest.ConfigMap("stays")).Want(t, 0).Did(t, "ConfigMap", "old", plan.Detached)
	})
	t.Run("deleted meanwhile", func(t *testing.T) {
		s := start(t)
		s.Before(http.MethodDelete, old, func() {
			if err := s.Resources("v1/configmaps").Namespace(s.NS).Delete(context.Background(), "old", metav1.DeleteOptions{}); err != nil {
				s.Error(err)
			}
		})
		s.Apply(clitest.ConfigMap("stays")).Want(t, 0).Did(t, "ConfigMap", "old", plan.Pruned)
		s.Holds("ConfigMap stays")
	})
	t.Run("a controller writes its status all the time", func(t *testing.T) {
		s := start(t)
		p := s.Proxied()
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
			return clustertest.Action{Before: func() { s.Merge("v1/configmaps", s.NS, "old", `{"data":{"status":"`+n+`"}}`) }}
		})
		s.Apply(clitest.ConfigMap("stays")).Want(t, 0).Did(t, "ConfigMap", "old", plan.Pruned)
		s.Missing("v1/configmaps", "old")
	})
	t.Run("nothing happens: one request", func(t *testing.T) {
		s := start(t)
		p := s.Proxied()
		s.Apply(clitest.ConfigMap("stays")).Want(t, 0).Did(t, "ConfigMap", "old", plan.Pruned)
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
		s := clitest.New(t)
		s.Apply(clitest.Documents(clitest.ConfigMap("stays"), clitest.Deployment("old", 1, "1m"))).Want(t, 0)
		p := s.Proxied()
		var once sync.Once
		p.Intercept(func(r clustertest.Request) (a clustertest.Action) {
			if r.Method == http.MethodDelete && strings.HasSuffix(r.Path, "/deployments/old") {
				once.Do(func() { a.CutAfter = true })
			}
			return a
		})
		s.Apply(clitest.ConfigMap("stays"), "--cascade=foreground").Want(t, 0).Did(t, "Deployment", "old", plan.Pruned)
		s.Missing("apps/v1/deployments", "old")
	})
	t.Run("wanted absent by name", func(t *testing.T) {
		s := clitest.New(t)
		s.Create("v1/configmaps", clitest.ConfigMap("old"))
		s.Before(http.MethodDelete, old, func() { s.Merge("v1/configmaps", s.NS, "old", keepIt) })
		s.Apply(`x: {k8s: [object_absent, {kind: ConfigMap}, {apiVersion: v1}, {name: old}, {namespace: "{ns}"}]}`+"\n", "--input-format=high").
			Want(t, 0).Did(t, "ConfigMap", "old", plan.Detached)
		s.Exists("v1/configmaps", "old")
	})
	t.Run("what it needs stays with it", func(t *testing.T) {
		s := clitest.New(t)
		s.Apply(clitest.Documents(clitest.ConfigMap("stays"), clitest.ConfigMap("user", clitest.DependsOn("/namespaces/{ns}/ConfigMap/used")), clitest.ConfigMap("used"))).Want(t, 0)
		s.Before(http.MethodDelete, "/configmaps/user", func() { s.Merge("v1/configmaps", s.NS, "user", keepIt) })
		s.Apply(clitest.ConfigMap("stays")).Want(t, 0).Did(t, "ConfigMap", "used", plan.Detached)
		s.Exists("v1/configmaps", "user", "used")
		if owner := ownerOf(s, "used"); owner != "" {
			t.Errorf("it is still owned by %q", owner)
		}
		s.Holds("ConfigMap stays")
	})
	t.Run("detached and adopted before", func(t *testing.T) {
		s := clitest.New(t)
		s.Apply(clitest.Documents(clitest.ConfigMap("stays"), clitest.ConfigMap("old", "annotations: {cli-utils.sigs.k8s.io/on-remove: keep}"))).Want(t, 0)
		s.Before(http.MethodPatch, old, func() {
			s.Merge("v1/configmaps", s.NS, "old", `{"metadata":{"annotations":{"config.k8s.io/owning-inventory":"theirs"}}}`)
		})
		s.Apply(clitest.ConfigMap("stays")).Want(t, 0).Did(t, "ConfigMap", "old", plan.Detached)
		if owner := ownerOf(s, "old"); owner != "theirs" {
			t.Errorf("its owner is %q", owner)
		}
	})
}

// What a Namespace or CRD holds is looked at again when its turn comes.
func TestPruneGuardOfNamespacesAndCRDs(t *testing.T) {
	ours := func(name string, metadata ...string) string {
		return strings.ReplaceAll(clitest.ConfigMap(name, metadata...), "{ns}", "{ns}-held")
	}
	start := func(t *testing.T, more ...string) *clitest.Fixture {
		s := clitest.New(t)
		s.GoneAfter("v1/namespaces", s.NS+"-held")
		s.Apply(clitest.Documents(append([]string{"apiVersion: v1\nkind: Namespace\nmetadata: {name: \"{ns}-held\"}\n", ours("ours")}, more...)...)).Want(t, 0)
		return s
	}
	stays := func(s *clitest.Fixture, resource, name string) {
		s.Helper()
		if u := s.Live(resource, s.NS+"-held", name); u == nil || u.GetDeletionTimestamp() != nil {
			s.Errorf("%s %s was lost", resource, name)
		}
		if u := s.Live("v1/namespaces", "", s.NS+"-held"); u == nil || u.GetDeletionTimestamp() != nil {
			s.Error("the namespace was deleted")
		}
	}
	t.Run("a Secret came", func(t *testing.T) {
		s := start(t)
		s.Before(http.MethodDelete, "/configmaps/ours", func() {
			s.Create("v1/secrets", "apiVersion: v1\nkind: Secret\nmetadata: {name: theirs, namespace: {ns}-held}\n")
		})
		s.Destroy().Want(t, report.ExitFailed).Prints(t, "outside this inventory: Secret "+s.NS+"-held/theirs", "--force-namespaces").
			Did(t, "Namespace", s.NS+"-held", plan.Skipped)
		stays(s, "v1/secrets", "theirs")
		if got, want := s.Members(), []string{"Namespace " + s.NS + "-held"}; !slices.Equal(got, want) {
			t.Errorf("the inventory holds %v, want %v", got, want)
		}
		s.Destroy("--force-namespaces").Want(t, 0)
	})
	t.Run("a member of it is kept", func(t *testing.T) {
		s := start(t)
		s.Before(http.MethodDelete, "/configmaps/ours", func() { s.Merge("v1/configmaps", s.NS+"-held", "ours", keepIt) })
		s.Destroy().Want(t, 0).Did(t, "Namespace", s.NS+"-held", plan.Detached)
		stays(s, "v1/configmaps", "ours")
	})
	t.Run("a kind came and an object of it", func(t *testing.T) {
		s := start(t)
		s.GoneAfter("apiextensions.k8s.io/v1/customresourcedefinitions", "widgets."+s.NS+".example.com")
		s.Before(http.MethodDelete, "/configmaps/ours", func() {
			s.Create("apiextensions.k8s.io/v1/customresourcedefinitions", clitest.Widgets)
			s.Eventually("widgets are served", func() bool {
				_, err := s.Resources(s.NS+".example.com/v1/widgets").Namespace(s.NS+"-held").Create(context.Background(),
					s.Parsed(strings.Replace(clitest.Widget, `namespace: "{ns}"`, "namespace: {ns}-held", 1)), metav1.CreateOptions{})
				return err == nil
			})
			s.Eventually("widgets are discovered", func() bool { return s.Discovered(s.NS + ".example.com") })
		})
		s.Destroy().Want(t, report.ExitFailed).Prints(t, "outside this inventory: Widget."+s.NS+".example.com")
		stays(s, s.NS+".example.com/v1/widgets", "one")
	})
	t.Run("a resource of a CRD came", func(t *testing.T) {
		s := clitest.New(t)
		crd := "widgets." + s.NS + ".example.com"
		s.GoneAfter("apiextensions.k8s.io/v1/customresourcedefinitions", crd)
		s.Apply(clitest.Documents(clitest.Widgets, clitest.Widget)).Want(t, 0)
		s.Before(http.MethodDelete, "/widgets/one", func() {
			s.Create(s.NS+".example.com/v1/widgets", strings.Replace(clitest.Widget, "one", "theirs", 1))
		})
		s.Destroy().Want(t, report.ExitFailed).Prints(t, "outside this inventory").Did(t, "CustomResourceDefinition", crd, plan.Skipped)
		s.Exists(s.NS+".example.com/v1/widgets", "theirs")
	})
	t.Run("what controllers made goes", func(t *testing.T) {
		s := start(t, strings.ReplaceAll(clitest.Deployment("web", 2, "1m"), "namespace: {ns}", "namespace: {ns}-held"))
		s.Destroy().Want(t, 0).Did(t, "Namespace", s.NS+"-held", plan.Pruned)
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
			s := clitest.New(t)
			s.GoneAfter("v1/namespaces", s.NS+"-held")
			s.Apply(clitest.Documents("apiVersion: v1\nkind: Namespace\nmetadata: {name: \"{ns}-held\"}\n", `apiVersion: apps/v1
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
`), "--wait=applied").Want(t, 0)
			u := s.Create("v1/persistentvolumeclaims", theirs)
			s.Eventually("the set's own claim is there", func() bool {
				return s.Live("v1/persistentvolumeclaims", s.NS+"-held", "data-web-0") != nil
			})
			s.Destroy().Want(t, report.ExitFailed).Prints(t, "outside this inventory: PersistentVolumeClaim "+s.NS+"-held/"+u.GetName())
			if live := s.Live("v1/persistentvolumeclaims", s.NS+"-held", u.GetName()); live == nil || live.GetDeletionTimestamp() != nil {
				t.Errorf("the claim %s was deleted", u.GetName())
			}
		})
	}
}
