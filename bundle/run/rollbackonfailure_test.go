package run_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"brine/bundle/cluster/clustertest"
	"brine/bundle/plan"
	"brine/bundle/report"
	"brine/cmd/brine/clitest"
)

const rollsBack = "--rollback-on-failure"

// failing is a ConfigMap that is applied, and then says that it failed.
func failing(name string) string {
	return clitest.ConfigMapOf(name, "{key: two}", clitest.Annotations("brine.dev/ready-when: 'false'", "brine.dev/failed-when: self.data.key == 'two'"))
}

// A run in which an object fails, or is not ready, is undone. The result holds
// both runs.
// twoControllers is metadata that the server refuses, and only the server.
const twoControllers = "ownerReferences: [{apiVersion: v1, kind: Pod, name: a, uid: a, controller: true}, {apiVersion: v1, kind: Pod, name: b, uid: b, controller: true}]"

func TestRollbackOnFailure(t *testing.T) {
	good := clitest.Documents(clitest.ConfigMapOf("a", "{key: one}"), clitest.ConfigMapOf("b", "{key: one}"))
	for name, test := range map[string]struct {
		bad, result string
		failed      int
	}{
		"not ready": {clitest.Documents(clitest.ConfigMapOf("a", "{key: two}"), failing("b"), clitest.ConfigMap("new")), "not-ready", 0},
		"failed":    {clitest.Documents(clitest.ConfigMapOf("a", "{key: two}"), clitest.ConfigMap("b", twoControllers), clitest.ConfigMap("new")), "failed", 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := clitest.New(t)
			s.Apply(good, rollsBack).Want(t, 3).Prints(t, "has no revision that was applied without an error: there is nothing to go back to")
			s.Missing("v1/configmaps", "a")
			s.Apply(good).Want(t, 0)
			did := s.Apply(test.bad, rollsBack).Want(t, 7).Prints(t, "rolling back to revision 1", "rolled back to revision 1")
			did.Did(t, "ConfigMap", "a", plan.Configured)
			did.Did(t, "ConfigMap", "new", plan.Created)
			back := did.Result.Rollback
			if back == nil || back.ExitCode != 0 || back.Command != "rollback" || back.Revision != 3 || back.Summary.Pruned != 1 || back.Summary.Configured != 2-test.failed || did.Result.Command != "apply" || did.Result.Revision != 2 {
				t.Fatalf("the rollback is %+v", back)
			}
			if s.Data("a")["key"] != "one" || s.Data("b")["key"] != "one" {
				t.Errorf("the objects are %v and %v", s.Data("a")["key"], s.Data("b")["key"])
			}
			s.Missing("v1/configmaps", "new")
			s.Holds("ConfigMap a", "ConfigMap b")
			wantHistory(s, "1 applied", "2 "+test.result, "3 applied")
			drift(s).Want(t, 0)
			// The lock was given back.
			s.Apply(test.bad, rollsBack, "-o", "text").Want(t, 7).Prints(t, "Rollback of inventory", "failed, and rolled back: ")
			s.Apply(test.bad, rollsBack, "-o", "salt").Want(t, 7).Prints(t, `"result":false`, "Failed, and rolled back: inventory")
		})
	}
}

// The bundle of the last good revision has nothing to go back to, and a run that
// succeeds costs no more than the look at the history.
func TestRollbackOnFailureOfTheSameBundle(t *testing.T) {
	s := clitest.New(t)
	s.Apply(clitest.ConfigMapOf("a", "{key: one}")).Want(t, 0)
	take(s, "a")
	did := s.Apply(clitest.ConfigMapOf("a", "{key: one}"), rollsBack).Want(t, 1).Prints(t, "has no effect: the bundle is that of revision 1")
	if did.Result.Rollback != nil {
		t.Error("it was rolled back")
	}
	s.Apply(clitest.ConfigMapOf("a", "{key: two}"), rollsBack, "--force-conflicts").Want(t, 0)
	wantHistory(s, "1 applied", "2 failed", "3 applied")
}

// A rollback that fails is reported with the failure that it was for.
func TestRollbackOnFailureThatFails(t *testing.T) {
	s := clitest.New(t)
	s.Apply(clitest.Documents(clitest.ConfigMapOf("a", "{key: one}"), clitest.ConfigMapOf("b", "{key: one}"))).Want(t, 0)
	p := s.Proxied()
	var patches atomic.Int32
	p.Intercept(func(r clustertest.Request) clustertest.Action {
		if r.Method == http.MethodPatch && strings.HasSuffix(r.Path, "/configmaps/a") && patches.Add(1) > 1 {
			return clustertest.Action{Status: 422, Message: "the policy says no"}
		}
		return clustertest.Action{}
	})
	did := s.Apply(clitest.Documents(clitest.ConfigMapOf("a", "{key: two}"), failing("b")), rollsBack).Want(t, 1).
		Prints(t, "the rollback to revision 1 failed: ", "the policy says no")
	if did.Object(t, "ConfigMap", "b").Ready != "failed" || did.Result.Rollback.ExitCode != 1 || s.Data("b")["key"] != "one" {
		t.Errorf("the result is %+v", did.Result.Rollback)
	}
	s.Kubeconfig = s.Cluster.Kubeconfig
	s.Apply(clitest.ConfigMap("a"), "-o", "text").Want(t, 0) // the lock is free
}

// The apply ends early enough for its rollback.
func TestRollbackOnFailureHasTimeLeft(t *testing.T) {
	s := clitest.New(t)
	s.Apply(clitest.ConfigMapOf("a", "{key: one}")).Want(t, 0)
	never := clitest.ConfigMapOf("a", "{key: two}", clitest.Annotations("brine.dev/ready-when: 'false'"))
	s.Apply(never, rollsBack, "--timeout=30s").Want(t, 7).Prints(t, "the rest of --timeout is kept for the rollback")
	if s.Data("a")["key"] != "one" {
		t.Errorf("it is %v", s.Data("a")["key"])
	}
}

// A run that could not be undone is refused before its first write.
func TestRollbackOnFailureWithoutAWayBack(t *testing.T) {
	claim := func(size string) string {
		return "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data, namespace: '{ns}'}\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: " + size + "}}}\n"
	}
	fixed := func(data, recreate string) string {
		return strings.Replace(clitest.ConfigMapOf("fixed", data, recreate), "\ndata:", "\nimmutable: true\ndata:", 1)
	}
	second := strings.Replace(clitest.PumpCRD, "    storage: true\n", "    storage: false\n", 1) + `  - name: v2
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`
	stays := clitest.ConfigMap("stays")
	recreates := clitest.Annotations("brine.dev/on-immutable: recreate")
	for name, test := range map[string]struct{ good, bad, why string }{
		"a claim is pruned":              {claim("1Gi"), stays, "PersistentVolumeClaim {ns}/data: --rollback-on-failure: it would be pruned, and a rollback does not bring back what it contains"},
		"a claim grows":                  {claim("1Gi"), claim("2Gi"), "would grow from 1Gi to 2Gi"},
		"a namespace is pruned":          {"apiVersion: v1\nkind: Namespace\nmetadata: {name: '{ns}-extra'}\n", stays, "it would be pruned"},
		"a new stored version":           {clitest.PumpCRD, second, "stored as v2, which the earlier CRD does not have"},
		"becomes immutable":              {clitest.ConfigMapOf("fixed", "{key: one}"), fixed("{key: two}", "labels: {a: b}"), "it would become immutable with another content"},
		"a recreation that is not again": {fixed("{key: one}", "labels: {a: b}"), strings.Replace(clitest.ConfigMapOf("fixed", "{key: two}", recreates), "\ndata:", "\nimmutable: false\ndata:", 1), "it may be recreated, and revision 1 does not allow to recreate it"},
	} {
		t.Run(name, func(t *testing.T) {
			s := clitest.New(t)
			s.GoneAfter("v1/namespaces", s.NS+"-extra")
			s.GoneAfter("apiextensions.k8s.io/v1/customresourcedefinitions", "pumps."+s.NS+".example.com")
			s.Apply(clitest.Documents(stays, test.good)).Want(t, 0)
			bad := clitest.Documents(stays, test.bad)
			if test.bad == stays {
				bad = stays
			}
			p := s.Proxied()
			s.Apply(bad, rollsBack).Want(t, 3).Prints(t, strings.ReplaceAll(test.why, "{ns}", s.NS))
			s.Preview(bad, rollsBack).Want(t, 3).Prints(t, strings.ReplaceAll(test.why, "{ns}", s.NS))
			if w := p.Writes(); len(w) > 0 {
				t.Errorf("it wrote %v", clitest.Describe(w))
			}
			if name != "a claim grows" { // this cluster has no class that allows it
				s.Preview(bad).Want(t, 0)
			}
		})
	}
}

// What was on the cluster before the run that failed is there afterwards, with its data.
func TestRollbackOnFailureKeepsWhatItAdopted(t *testing.T) {
	claim := "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data, namespace: '{ns}'}\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n"
	s := clitest.New(t)
	s.Create("v1/persistentvolumeclaims", claim)
	before := s.Live("v1/persistentvolumeclaims", s.NS, "data").GetUID()
	s.Apply(clitest.ConfigMapOf("b", "{key: one}")).Want(t, 0)
	s.Create("v1/configmaps", clitest.ConfigMapOf("theirs", "{key: theirs, more: x}", "labels: {whose: theirs}"))
	did := s.Apply(clitest.Documents(failing("b"), claim, clitest.ConfigMap("new"), clitest.ConfigMapOf("theirs", "{key: ours, other: y}", "labels: {whose: ours, new: x}", clitest.Annotations("example.com/new: x"))), rollsBack, "--force-conflicts").Want(t, 7)
	if n := did.Result.Rollback.Summary.Detached; n != 2 {
		t.Errorf("%d objects were released", n)
	}
	theirs := s.ConfigMap("theirs")
	if got := fmt.Sprint(theirs.Object["data"], theirs.GetLabels(), theirs.GetAnnotations()); got != "map[key:theirs more:x] map[whose:theirs] map[]" {
		t.Errorf("it is set back to %s", got)
	}
	for _, o := range did.Result.Rollback.Objects {
		if o.Action == plan.Detached && !strings.HasSuffix(o.Reason, "it is released, and its fields are set back") {
			t.Errorf("%s: %s", o.Name, o.Reason)
		}
	}
	live := s.Live("v1/persistentvolumeclaims", s.NS, "data")
	if live == nil || live.GetUID() != before || live.GetDeletionTimestamp() != nil {
		t.Fatalf("the claim is %v", live)
	}
	s.Missing("v1/configmaps", "new")
	s.Holds("ConfigMap b")
}

// A preview says what going back would lose or meet, before the way there.
func TestPreviewNamesTheWayBack(t *testing.T) {
	fixed := func(data string) string {
		return strings.Replace(clitest.ConfigMapOf("fixed", data, clitest.Annotations("brine.dev/on-immutable: recreate")), "\ndata:", "\nimmutable: true\ndata:", 1)
	}
	theirs := clitest.ConfigMapOf("theirs", "{key: one}")
	one := clitest.Documents(clitest.ConfigMapOf("a", "{key: one}"), fixed("{key: one}"), strings.ReplaceAll(claim, "name: data", "name: goes"))
	two := clitest.Documents(clitest.ConfigMapOf("a", "{key: two}"), fixed("{key: two}"), claim, clitest.ConfigMap("new"), theirs,
		"apiVersion: v1\nkind: Namespace\nmetadata: {name: '{ns}-more'}\n")
	s := clitest.New(t)
	s.GoneAfter("v1/namespaces", s.NS+"-more")
	s.Preview(one).Want(t, 0)
	s.Apply(one).Want(t, 0)
	if back := s.Preview(one).Want(t, 0).Result.Review.Back; back != nil {
		t.Errorf("of no change: %+v", back)
	}
	s.Create("v1/configmaps", theirs)
	did := s.Preview(two, "--prune-anyway").Want(t, 0)
	var got []string
	for _, l := range did.Result.Review.Back.Losses {
		got = append(got, l.Object.Kind+" "+l.Object.Name+": "+l.Text)
	}
	slices.Sort(got)
	want := []string{
		"ConfigMap fixed: it is deleted and created again, and once more on the way back",
		"ConfigMap theirs: it was there before brine adopted it: it is released, and the fields that brine applied are set back",
		"Namespace " + s.NS + "-more: it is new: going back deletes it, and keeps it if objects outside the inventory are in it by then",
		"PersistentVolumeClaim data: it is new: going back deletes it, with the data that it has by then",
		"PersistentVolumeClaim goes: it would be pruned, and a rollback does not bring back what it contains",
	}
	if !slices.Equal(got, want) || did.Result.Review.Back.Revision != 1 {
		t.Errorf("going back to revision %d:\n%s", did.Result.Review.Back.Revision, strings.Join(got, "\n"))
	}
	for _, format := range []string{"text", "html", "salt"} {
		s.Preview(two, "-o", format).Want(t, 0).Prints(t, "Going back to revision 1 after this change:", "it is new: going back deletes it, with the data", "what controllers and databases do until then")
	}
	more := strings.ReplaceAll(claim, "name: data", "name: more")
	bad := strings.NewReplacer("name: data", "name: goes", "ReadWriteOnce", "ReadWriteMany").Replace(claim)
	s.Preview(clitest.Documents(two, more, bad), "-o", "text").Want(t, report.ExitFailed).
		Prints(t, "for each of 2 objects: it is new: going back deletes it, with the data that it has by then: PersistentVolumeClaim", "not all of it is known: 1 object would fail or be skipped")
}
