package run_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"brine/bundle/cluster/clustertest"
	"brine/bundle/plan"
	"brine/cmd/brine/clitest"
)

const claim = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data, namespace: '{ns}'}\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n"

// survives fails if the claim that was there before is not the same afterwards.
func survives(t *testing.T, s *clitest.Fixture) func() {
	t.Helper()
	before := s.Live("v1/persistentvolumeclaims", s.NS, "data").GetUID()
	return func() {
		t.Helper()
		live := s.Live("v1/persistentvolumeclaims", s.NS, "data")
		if live == nil || live.GetUID() != before || live.GetDeletionTimestamp() != nil {
			t.Fatalf("the claim that was there before is %v", live)
		}
	}
}

// A rollback past an adoption releases what was there before, whatever happened to the
// inventory in between.
func TestRollbackPastAnAdoption(t *testing.T) {
	two := clitest.Documents(clitest.ConfigMapOf("a", "{key: two}"), claim, clitest.ConfigMap("new"))
	for name, between := range map[string]func(*clitest.Fixture){
		"at once": func(*clitest.Fixture) {},
		"after another apply": func(s *clitest.Fixture) {
			s.Apply(two).Want(t, 0)
			s.Apply(two+"---\n"+clitest.ConfigMap("more")).Want(t, 0)
		},
		"kapply wrote the inventory": func(s *clitest.Fixture) {
			live := s.ConfigMap("inv")
			for key := range nestedMap(live.Object, "data") {
				s.PatchConfigMap("inv", `{"data":{"`+key+`":"{\"actuation\":\"Succeeded\",\"reconcile\":\"Succeeded\",\"strategy\":\"Apply\"}"},"metadata":{"annotations":null}}`)
			}
		},
		"without fingerprints": func(s *clitest.Fixture) { s.DeleteConfigMap("inv-fingerprints-1") },
	} {
		t.Run(name, func(t *testing.T) {
			s := clitest.New(t)
			s.Create("v1/persistentvolumeclaims", claim)
			stays := survives(t, s)
			s.Apply(clitest.ConfigMapOf("a", "{key: one}")).Want(t, 0)
			s.Apply(two).Want(t, 0)
			between(s)
			preview := s.Rollback("1", "--dry-run=server").Want(t, 0)
			did := s.Rollback("1").Want(t, 0).Prints(t, "it was there before brine adopted it in run 2: it is released")
			clitest.SameActions(t, preview, did)
			did.Did(t, "PersistentVolumeClaim", "data", plan.Detached)
			did.Did(t, "ConfigMap", "new", plan.Pruned)
			stays()
			s.Holds("ConfigMap a")
		})
	}
}

// A rollback past an adoption sets back what brine applied since, in whichever run, and
// leaves what others have set meanwhile; it says what is not as it was.
func TestRollbackSetsBackWhatBrineApplied(t *testing.T) {
	s := clitest.New(t)
	s.Apply(clitest.ConfigMapOf("a", "{key: one}")).Want(t, 0)
	s.Create("v1/configmaps", clitest.ConfigMapOf("theirs", "{key: theirs, later: theirs, taken: theirs, more: x}", "labels: {whose: theirs}"))
	s.Create("v1/secrets", "apiVersion: v1\nkind: Secret\nmetadata: {name: password, namespace: '{ns}'}\nstringData: {key: hunter22}\n")
	bundle := func(a, theirs string) string {
		return clitest.Documents(clitest.ConfigMapOf("a", "{key: "+a+"}"), clitest.ConfigMapOf("theirs", theirs, "labels: {whose: ours, new: x}"),
			"apiVersion: v1\nkind: Secret\nmetadata: {name: password, namespace: '{ns}'}\nstringData: {key: ours12345}\n")
	}
	s.Apply(bundle("two", "{key: ours, taken: ours, other: y}"), "--force-conflicts").Want(t, 0)
	s.Apply(bundle("three", "{key: ours, taken: ours, other: y, later: ours}"), "--force-conflicts").Want(t, 0)
	s.PatchConfigMap("theirs", `{"data":{"taken":"another's","more":null,"since":"z"}}`)

	seen := s.Rollback("1", "--dry-run=server").Want(t, 0)
	did := s.Rollback("1").Want(t, 0)
	clitest.SameActions(t, seen, did)
	for _, out := range []clitest.Outcome{seen, did} {
		why := out.Object(t, "ConfigMap", "theirs").Reason
		if !strings.Contains(why, "it was there before brine adopted it in run 2: it is released, and the fields that brine applied are set back; not set back: data.more, data.since, data.taken") {
			t.Errorf("it says %q", why)
		}
	}
	theirs := s.ConfigMap("theirs")
	if got := fmt.Sprint(theirs.Object["data"], theirs.GetLabels()); got != "map[key:theirs later:theirs since:z taken:another's] map[whose:theirs]" {
		t.Errorf("it is set back to %s", got)
	}
	// What a Secret held is not kept.
	did.Prints(t, "its fields stay as they are: what they were is not kept").Did(t, "Secret", "password", plan.Detached)
}

// Without a record of the origin, nothing is deleted by a rollback. It stays a member,
// and the next bundle without it prunes it.
func TestRollbackOfUnknownOrigin(t *testing.T) {
	s := clitest.New(t)
	s.Apply(clitest.ConfigMapOf("a", "{key: one}")).Want(t, 0)
	s.Apply(clitest.Documents(clitest.ConfigMapOf("a", "{key: two}"), clitest.ConfigMap("new"))).Want(t, 0)
	s.DeleteConfigMap("inv-origins-1")
	s.Rollback().Want(t, 0).Prints(t, "it is not known who created it", "kubectl delete configmap new --namespace "+s.NS).Did(t, "ConfigMap", "new", plan.Skipped)
	s.Exists("v1/configmaps", "new")
	s.Holds("ConfigMap a", "ConfigMap new")
	s.Apply(clitest.ConfigMapOf("a", "{key: three}")).Want(t, 0).Did(t, "ConfigMap", "new", plan.Pruned)
}

// What somebody deleted and put back, with brine's own mark, is of unknown origin, also
// after brine recreated it.
func TestRollbackOfWhatSomebodyPutBack(t *testing.T) {
	fixed := func(data string) string {
		return strings.Replace(clitest.ConfigMapOf("fixed", data, clitest.Annotations("brine.dev/on-immutable: recreate")), "\ndata:", "\nimmutable: true\ndata:", 1)
	}
	s := clitest.New(t)
	s.Apply(clitest.ConfigMapOf("a", "{key: one}")).Want(t, 0)
	s.Apply(clitest.Documents(clitest.ConfigMapOf("a", "{key: two}"), fixed("{key: one}"))).Want(t, 0)
	copied := s.ConfigMap("fixed")
	s.DeleteConfigMap("fixed")
	copied.SetResourceVersion("")
	copied.SetUID("")
	copied.SetManagedFields(nil)
	if _, err := s.Resources("v1/configmaps").Namespace(s.NS).Create(t.Context(), copied, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.Apply(clitest.Documents(clitest.ConfigMapOf("a", "{key: two}"), fixed("{key: two}")), "--force-conflicts").Want(t, 0).Did(t, "ConfigMap", "fixed", plan.Recreated)
	s.Rollback("1").Want(t, 0).Prints(t, "it is not known who created it").Did(t, "ConfigMap", "fixed", plan.Skipped)
	s.Exists("v1/configmaps", "fixed")
}

// What another client creates while the run is under way is not the run's own.
func TestRollbackOfWhatCameDuringTheRun(t *testing.T) {
	s := clitest.New(t)
	s.Apply(clitest.ConfigMapOf("a", "{key: one}")).Want(t, 0)
	s.Before(http.MethodPatch, "/configmaps/new", func() { s.Create("v1/configmaps", clitest.ConfigMapOf("new", "{other: theirs}")) })
	s.Apply(clitest.Documents(clitest.ConfigMapOf("a", "{key: two}"), clitest.ConfigMap("new"))).Want(t, 0).Did(t, "ConfigMap", "new", plan.Configured)
	s.Kubeconfig = s.Cluster.Kubeconfig
	s.Rollback().Want(t, 0).Did(t, "ConfigMap", "new", plan.Detached)
	s.Exists("v1/configmaps", "new")
}

// A rollback past a merge keeps what came from the other inventory, which is gone.
func TestRollbackPastAMerge(t *testing.T) {
	s := clitest.New(t)
	other := s.Other("other")
	s.Apply(clitest.ConfigMapOf("a", "{key: one}")).Want(t, 0)
	other.Apply(clitest.ConfigMap("theirs")).Want(t, 0)
	clitest.Run(t, s.Kubeconfig, "inventory", "merge", other.Inventory, "--into", s.Inventory).Want(t, 0)
	s.Apply(clitest.Documents(clitest.ConfigMapOf("a", "{key: two}"), clitest.ConfigMap("theirs"))).Want(t, 0)
	s.Rollback().Want(t, 0).Prints(t, "not given back to inventory "+other.Inventory+", which is not there any more").Did(t, "ConfigMap", "theirs", plan.Skipped)
	s.Exists("v1/configmaps", "theirs")
	s.Holds("ConfigMap a", "ConfigMap theirs")
	// Given back by hand, it is what it was.
	clitest.Run(t, s.Kubeconfig, "inventory", "split", s.Inventory, "--to", other.Inventory, "--only", "ConfigMap/"+s.NS+"/theirs").Want(t, 0)
	other.Apply(clitest.ConfigMap("theirs")).Want(t, 0)
	other.Apply(clitest.Documents(clitest.ConfigMap("theirs"), clitest.ConfigMap("more"))).Want(t, 0)
	other.Rollback().Want(t, 0).Did(t, "ConfigMap", "more", plan.Pruned)
}

// What came from another inventory, by a command or by a bundle, is given back to it when
// that is undone, with the fields that it applied.
func TestRollbackGivesBack(t *testing.T) {
	for name, take := range map[string]func(s, other *clitest.Fixture) []string{
		"taken by a bundle": func(*clitest.Fixture, *clitest.Fixture) []string { return []string{"--inventory-policy=adopt-all"} },
		"taken by a bundle before the owner ran since": func(*clitest.Fixture, *clitest.Fixture) []string {
			return []string{"--inventory-policy=adopt-all"}
		},
		"split": func(s, other *clitest.Fixture) []string {
			clitest.Run(t, s.Kubeconfig, "inventory", "split", other.Inventory, "--to", s.Inventory, "--only", "ConfigMap/"+s.NS+"/theirs").Want(t, 0)
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := clitest.New(t)
			other := s.Other("other")
			theirs := clitest.Documents(clitest.ConfigMapOf("theirs", "{key: theirs}"), clitest.ConfigMap("stays"))
			other.Apply(theirs).Want(t, 0)
			s.Apply(clitest.ConfigMapOf("a", "{key: one}")).Want(t, 0)
			uid := s.ConfigMap("theirs").GetUID()
			s.Apply(clitest.Documents(clitest.ConfigMapOf("a", "{key: two}"), clitest.ConfigMapOf("theirs", "{key: ours}")), take(s, other)...).Want(t, 0)
			if strings.Contains(name, "ran since") {
				other.Apply(clitest.ConfigMap("stays")).Want(t, 0)
				other.Apply(theirs).Want(t, 1) // it belongs to the first one
			}
			s.Rollback().Want(t, 0).Prints(t, "ConfigMap "+s.NS+"/theirs: given back to inventory "+other.Inventory)
			s.Holds("ConfigMap a")
			other.Holds("ConfigMap stays", "ConfigMap theirs")
			if live := s.ConfigMap("theirs"); live == nil || live.GetUID() != uid || s.Data("theirs")["key"] != "theirs" {
				t.Errorf("it is %v", live)
			}
			s.Rollback().Want(t, 0)
			other.Apply(theirs).Want(t, 0).Did(t, "ConfigMap", "theirs", plan.Unchanged)
			// It is what it was: created there.
			other.Apply(clitest.ConfigMap("stays")).Want(t, 0)
			s.Missing("v1/configmaps", "theirs")
		})
	}
}

// What a rollback did not end to give back, the next one does. Another run keeps it, and
// prints the command that moves it.
func TestRollbackGoesOnGivingBack(t *testing.T) {
	for _, by := range []string{"rollback", "command"} {
		t.Run("by "+by, func(t *testing.T) {
			s := clitest.New(t)
			other := s.Other("other")
			other.Apply(clitest.ConfigMapOf("theirs", "{key: theirs}")).Want(t, 0)
			s.Apply(clitest.ConfigMapOf("a", "{key: one}")).Want(t, 0)
			s.Apply(clitest.Documents(clitest.ConfigMapOf("a", "{key: two}"), clitest.ConfigMapOf("theirs", "{key: ours}")), "--inventory-policy=adopt-all").Want(t, 0)
			moves := func(r clustertest.Request) bool {
				return r.Method == http.MethodPatch && strings.HasSuffix(r.Path, "/configmaps/theirs")
			}
			if _, killed := s.KilledAbout(moves, 1, false, "rollback", "--inventory", s.Inventory, "--namespace", s.NS); !killed {
				t.Fatal("it was not killed")
			}
			command := "inventory split " + s.Inventory + " --to " + other.Inventory + " --members ConfigMap/" + s.NS + "/theirs"
			s.Apply(clitest.ConfigMap("a")).Want(t, 1).Prints(t, "its move to inventory "+other.Inventory+" was interrupted: repeat that command first; brine "+command)
			if by == "rollback" {
				s.Rollback().Want(t, 0).Prints(t, "ConfigMap "+s.NS+"/theirs: given back to inventory "+other.Inventory)
			} else {
				clitest.Run(t, s.Kubeconfig, strings.Fields(command)...).Want(t, 0)
			}
			s.Holds("ConfigMap a")
			other.Holds("ConfigMap theirs")
			other.Apply(clitest.ConfigMapOf("theirs", "{key: theirs}")).Want(t, 0)
			s.Apply(clitest.ConfigMap("a")).Want(t, 0)
		})
	}
}

// A failed run gives back what it had taken from another inventory.
func TestRollbackOnFailureGivesBack(t *testing.T) {
	s := clitest.New(t)
	other := s.Other("other")
	other.Apply(clitest.ConfigMapOf("theirs", "{key: theirs}")).Want(t, 0)
	s.Apply(clitest.ConfigMapOf("b", "{key: one}")).Want(t, 0)
	never := clitest.ConfigMapOf("b", "{key: two}", clitest.Annotations("brine.dev/ready-when: 'false'")) // the apply uses up its part of the time
	s.Apply(clitest.Documents(never, clitest.ConfigMapOf("theirs", "{key: ours}")), rollsBack, "--inventory-policy=adopt-all", "--timeout=30s").Want(t, 7).Prints(t, "given back to inventory "+other.Inventory)
	other.Holds("ConfigMap theirs")
	s.Holds("ConfigMap b")
	if s.Data("theirs")["key"] != "theirs" {
		t.Errorf("it is %v", s.Data("theirs")["key"])
	}
}

// What was taken over from another tool is released.
func TestRollbackPastATakeOver(t *testing.T) {
	s := clitest.New(t)
	tracked := clitest.ConfigMapOf("theirs", "{key: value}", clitest.Annotations("argocd.argoproj.io/tracking-id: 'shop:/ConfigMap:ns/theirs'"))
	s.Create("v1/configmaps", tracked)
	s.Apply(clitest.ConfigMapOf("a", "{key: one}")).Want(t, 0)
	s.Apply(clitest.Documents(clitest.ConfigMapOf("a", "{key: two}"), clitest.ConfigMap("theirs")), "--take-over-from=argocd:shop").Want(t, 0)
	s.Rollback().Want(t, 0).Prints(t, "it was there before brine took it over from argocd:shop in run 2").Did(t, "ConfigMap", "theirs", plan.Detached)
	s.Exists("v1/configmaps", "theirs")
}

// A run that is killed at any write leaves nothing behind that a rollback would take for
// its own: the claim was there before.
func TestRollbackAfterAKilledAdoption(t *testing.T) {
	two := clitest.Documents(clitest.ConfigMapOf("a", "{key: two}"), claim, clitest.ConfigMap("new"))
	for n := range 12 {
		t.Run(fmt.Sprint(n+1), func(t *testing.T) {
			s := clitest.New(t)
			s.Create("v1/persistentvolumeclaims", claim)
			stays := survives(t, s)
			s.Apply(clitest.ConfigMapOf("a", "{key: one}")).Want(t, 0)
			place, _ := s.Killed(n+1, true, "apply", "-f", s.File(two), "--inventory", s.Inventory)
			s.Rollback("1").Want(t, 0)
			stays()
			if s.ConfigMap("new") != nil {
				t.Errorf("killed at %s: what the run created is left", place)
			}
		})
	}
}

// Where no history is kept, runs have numbers as well.
func TestOriginWithoutAHistory(t *testing.T) {
	s := clitest.New(t)
	s.Create("v1/persistentvolumeclaims", claim)
	s.Apply(clitest.ConfigMap("a"), "--history-limit=0").Want(t, 0)
	s.Apply(clitest.Documents(clitest.ConfigMap("a"), claim), "--history-limit=0").Want(t, 0)
	did := s.Preview(clitest.ConfigMap("a"), "--history-limit=0").Want(t, 0)
	if why := did.Object(t, "PersistentVolumeClaim", "data").Reason; !strings.Contains(why, "adopted it in run 2") {
		t.Errorf("it is pruned: %q", why)
	}
}
