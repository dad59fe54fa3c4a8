package run_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"brine/bundle"
	"brine/bundle/cluster/clustertest"
	"brine/bundle/plan"
	"brine/bundle/report"
	"brine/cmd/brine/clitest"
	"brine/inventory"
)

// A bundle that has lost all its objects, and still names some as absent, is no
// less of a mistake than an empty one.
func TestOnlyAbsentEntriesPruneNothing(t *testing.T) {
	s := clitest.New(t)
	s.Apply(clitest.Documents(clitest.ConfigMap("a"), clitest.ConfigMap("b"))).Want(t, 0)
	absent := `x: {k8s: [object_absent, {kind: ConfigMap}, {apiVersion: v1}, {name: a}, {namespace: "{ns}"}]}` + "\n"
	p := s.Proxied()
	s.Apply(absent, "--input-format=high").Want(t, report.ExitBadBundle).Prints(t, "--allow-empty", "1 object of inventory")
	s.Preview(absent, "--input-format=high").Want(t, report.ExitBadBundle).Prints(t, "--allow-empty")
	if w := p.Writes(); len(w) > 0 {
		t.Errorf("it wrote %v", clitest.Describe(w))
	}
	s.Exists("v1/configmaps", "a", "b")
	s.Apply(absent, "--input-format=high", "--allow-empty").Want(t, 0).Did(t, "ConfigMap", "b", plan.Pruned)
	s.Missing("v1/configmaps", "a", "b")
	// Members that are all named are meant.
	s.Apply(clitest.ConfigMap("a")).Want(t, 0)
	s.Apply(absent, "--input-format=high").Want(t, 0).Did(t, "ConfigMap", "a", plan.Pruned)
}

func TestObjectsNeverAppliedAreNotPruned(t *testing.T) {
	s := clitest.New(t)
	bad := clitest.RefusedService("web")
	s.Apply(clitest.Documents(bad, clitest.ConfigMap("a"))).Want(t, 1)
	// Now somebody else makes it.
	s.Create("v1/services", strings.Replace(bad, "  clusterIP: 192.0.2.1\n", "", 1))
	s.Apply(clitest.ConfigMap("a")).Want(t, 0)
	s.Exists("v1/services", "web")
	if got := s.Members(); len(got) != 1 {
		t.Errorf("the inventory holds %v", got)
	}
}

func TestMembersOwnedByOthersStay(t *testing.T) {
	s := clitest.New(t)
	s.Apply(clitest.Documents(clitest.ConfigMap("a"), clitest.ConfigMap("b"))).Want(t, 0)
	if _, err := s.Resources("v1/configmaps").Namespace(s.NS).Patch(t.Context(), "b", types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"`+inventory.OwningInventory+`":"somebody-else"}}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	s.Apply(clitest.ConfigMap("a")).Want(t, 0).Did(t, "ConfigMap", "b", plan.Detached)
	if got := s.ConfigMap("b").GetAnnotations()[inventory.OwningInventory]; got != "somebody-else" {
		t.Errorf("its owner became %q", got)
	}
}

// The claims that a StatefulSet's controller made go with the namespace that
// goes, without its controller's two rounds of five seconds; those in a
// namespace that stays are left alone.
func TestClaimsAreDeletedWithTheirNamespaceOnly(t *testing.T) {
	s := clitest.New(t)
	set := func(namespace string) string {
		return `apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: ` + namespace + `}
spec:
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: c, image: "registry.k8s.io/pause:3.10"}]}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], storageClassName: "{ns}-none", resources: {requests: {storage: 1Mi}}}
`
	}
	s.GoneAfter("v1/namespaces", s.NS+"-going")
	s.Apply(clitest.Documents("apiVersion: v1\nkind: Namespace\nmetadata: {name: {ns}-going}\n", set("{ns}-going"), set("{ns}")), "--wait=applied").Want(t, 0)
	for _, namespace := range []string{s.NS, s.NS + "-going"} {
		for s.Live("v1/persistentvolumeclaims", namespace, "data-db-0") == nil {
			time.Sleep(50 * time.Millisecond)
		}
	}
	p := s.Proxied()
	s.Destroy().Want(t, 0)
	var deleted []string
	for _, r := range p.Requests() {
		if r.Method == http.MethodDelete && (strings.HasSuffix(r.Path, "/namespaces/"+s.NS+"-going") || strings.Contains(r.Path, "persistentvolumeclaims")) {
			deleted = append(deleted, r.Path)
		}
	}
	if want := []string{"/api/v1/namespaces/" + s.NS + "-going", "/api/v1/namespaces/" + s.NS + "-going/persistentvolumeclaims/data-db-0"}; !slices.Equal(deleted, want) {
		t.Errorf("it deleted %v, want %v", deleted, want)
	}
	if s.Live("v1/persistentvolumeclaims", s.NS, "data-db-0") == nil {
		t.Error("a claim went whose namespace stays")
	}
}

// The garbage collector deletes what an object owns with it: the owner of what the bundle has
// stays, unless its dependents are orphaned. The preview says so.
func TestOwnerOfWhatTheBundleHasStays(t *testing.T) {
	s := clitest.New(t)
	s.Apply(clitest.ConfigMap("sealed")).Want(t, 0)
	s.Create("v1/configmaps", clitest.ConfigMap("made", `ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: sealed, uid: "`+string(s.ConfigMap("sealed").GetUID())+`", controller: true}]`))
	const adopt = "--inventory-policy=adopt-if-no-inventory"
	why := "the garbage collector would delete ConfigMap " + s.NS + "/made with it"
	s.Preview(clitest.ConfigMap("made"), adopt).Prints(t, why).Did(t, "ConfigMap", "sealed", plan.Skipped)
	s.Apply(clitest.ConfigMap("made"), adopt).Want(t, 1).Prints(t, why).Did(t, "ConfigMap", "sealed", plan.Skipped)
	s.Apply(clitest.ConfigMap("made"), adopt, "--cascade=orphan").Want(t, 0).Did(t, "ConfigMap", "sealed", plan.Pruned)
	s.GoneAfter("v1/configmaps", "sealed")
	if got := s.ConfigMap("made"); len(got.GetOwnerReferences()) > 0 || got.GetDeletionTimestamp() != nil {
		t.Errorf("made is %v", got.Object["metadata"])
	}
}

// ownedBy is a patch that has an object owned by another one.
func ownedBy(s *clitest.Fixture, owner string, controls bool, annotations string) string {
	return fmt.Sprintf(`{"metadata":{"annotations":{%s},"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":%q,"uid":%q,"controller":%v}]}}`,
		annotations, owner, s.ConfigMap(owner).GetUID(), controls)
}

// So does the owner of its owner, which is neither a member nor in the bundle.
func TestOwnerOfAnOwnerStays(t *testing.T) {
	s := clitest.New(t)
	s.Apply(clitest.Documents(clitest.ConfigMap("sealed"), clitest.ConfigMap("made"))).Want(t, 0)
	s.Create("v1/configmaps", clitest.ConfigMap("between"))
	s.Merge("v1/configmaps", s.NS, "between", ownedBy(s, "sealed", true, ""))
	s.Merge("v1/configmaps", s.NS, "made", ownedBy(s, "between", true, ""))
	why := "the garbage collector would delete ConfigMap " + s.NS + "/made with it"
	s.Preview(clitest.ConfigMap("made")).Prints(t, why).Did(t, "ConfigMap", "sealed", plan.Skipped)
	s.Proxied().Intercept(func(r clustertest.Request) clustertest.Action {
		if r.Method == http.MethodGet && strings.HasSuffix(r.Path, "/configmaps/between") {
			return clustertest.Action{Status: http.StatusForbidden}
		}
		return clustertest.Action{}
	})
	unread := "the garbage collector would delete ConfigMap " + s.NS + "/between with it, if it owns that, which cannot be read"
	s.Apply(clitest.ConfigMap("made")).Want(t, 1).Prints(t, unread).Did(t, "ConfigMap", "sealed", plan.Skipped)
	s.Destroy("--dry-run=server").Did(t, "ConfigMap", "sealed", plan.Pruned)
	s.Proxied()
	s.Apply(clitest.ConfigMap("made")).Want(t, 1).Prints(t, why).Did(t, "ConfigMap", "sealed", plan.Skipped)
	s.Merge("v1/configmaps", s.NS, "made", `{"metadata":{"ownerReferences":[]}}`)
	s.Apply(clitest.ConfigMap("made")).Want(t, 0).Did(t, "ConfigMap", "sealed", plan.Pruned)
	s.GoneAfter("v1/configmaps", "between")
	if s.Live("v1/configmaps", s.NS, "made") == nil {
		t.Error("made is deleted, too")
	}
}

// What becomes the owner of what stays during the run stays, too: of what the bundle has, and of what an
// annotation keeps that was to be left to its controller.
func TestOwnerSinceThePlanStays(t *testing.T) {
	all := []string{clitest.ConfigMap("sealed"), clitest.ConfigMap("made"), clitest.ConfigMapOf("changes", "{key: one}")}
	t.Run("of the bundle", func(t *testing.T) {
		s := clitest.New(t)
		s.Apply(clitest.Documents(all...)).Want(t, 0)
		s.Before(http.MethodPatch, "/configmaps/changes", func() { s.Merge("v1/configmaps", s.NS, "made", ownedBy(s, "sealed", true, "")) })
		s.Apply(clitest.Documents(clitest.ConfigMap("made"), clitest.ConfigMapOf("changes", "{key: two}"))).Want(t, 1).
			Prints(t, "the garbage collector would delete ConfigMap "+s.NS+"/made with it").Did(t, "ConfigMap", "sealed", plan.Skipped)
	})
	t.Run("kept", func(t *testing.T) {
		s := clitest.New(t)
		s.Apply(clitest.Documents(all...)).Want(t, 0)
		s.Merge("v1/configmaps", s.NS, "made", ownedBy(s, "sealed", true, ""))
		s.Before(http.MethodPatch, "/configmaps/made", func() {
			s.Merge("v1/configmaps", s.NS, "made", ownedBy(s, "sealed", true, `"`+bundle.OnRemove+`":"keep"`))
		})
		got := s.Apply(all[2]).Want(t, 1).Prints(t, "the garbage collector would delete ConfigMap "+s.NS+"/made with it")
		got.Did(t, "ConfigMap", "sealed", plan.Skipped)
		got.Did(t, "ConfigMap", "made", plan.Skipped)
	})
}

// What is kept because something could not be deleted that needs it does not go with its owner.
func TestOwnerOfWhatIsKeptStays(t *testing.T) {
	s := clitest.New(t)
	s.Apply(clitest.Documents(clitest.ConfigMap("a"), clitest.ConfigMap("owner"), clitest.ConfigMap("needed"), clitest.ConfigMap("needs", clitest.DependsOn("/namespaces/{ns}/ConfigMap/needed")))).Want(t, 0)
	s.Merge("v1/configmaps", s.NS, "needed", ownedBy(s, "owner", false, ""))
	s.Proxied().Intercept(func(r clustertest.Request) clustertest.Action {
		if r.Method == http.MethodDelete && strings.HasSuffix(r.Path, "/configmaps/needs") {
			return clustertest.Action{Status: http.StatusForbidden}
		}
		return clustertest.Action{}
	})
	seen := s.Preview(clitest.ConfigMap("a"))
	got := s.Apply(clitest.ConfigMap("a")).Want(t, 1)
	for _, name := range []string{"owner", "needed"} {
		seen.Did(t, "ConfigMap", name, plan.Skipped)
		got.Did(t, "ConfigMap", name, plan.Skipped)
		if s.Live("v1/configmaps", s.NS, name) == nil {
			t.Errorf("%s is deleted", name)
		}
	}
}
