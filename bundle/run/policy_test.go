package run_test

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"brine/bundle/plan"
	"brine/cmd/brine/clitest"
	"brine/inventory"
)

// Scenarios of cli-utils' end-to-end suite (its test/e2e, v0.37.2:
// inventory_policy, deletion_prevention, current_uid_filter, prune_retrieve_error,
// empty_set).

func TestMustMatchTakesNoObjectOfOthers(t *testing.T) {
	s := clitest.New(t)
	s.Apply(clitest.Deployment("web", 2, "1m")).Want(t, 0)
	s.Other("second").Apply(clitest.Deployment("web", 3, "1m"), "--inventory-policy=must-match").Want(t, 1).
		Prints(t, "it belongs to inventory").Did(t, "Deployment", "web", plan.Failed)
	if n := clitest.Replicas(t, s.Live("apps/v1/deployments", s.NS, "web")); n != 2 {
		t.Errorf("it has %d replicas: the other inventory changed it", n)
	}
	// Nor an object of nobody.
	s.Create("v1/configmaps", clitest.ConfigMap("alone"))
	s.Other("second").Apply(clitest.ConfigMap("alone"), "--inventory-policy=must-match").Want(t, 1).Did(t, "ConfigMap", "alone", plan.Failed)
	if got := s.Other("second").Members(); len(got) != 0 {
		t.Errorf("the second inventory holds %v, none of which it may have", got)
	}
}

func TestUnownedObjectIsAdoptedByDefault(t *testing.T) {
	s := clitest.New(t)
	s.Create("apps/v1/deployments", clitest.Deployment("web", 2, "1m"))
	result := s.Apply(clitest.Deployment("web", 3, "1m"), "--force-conflicts").Want(t, 0)
	live := s.Live("apps/v1/deployments", s.NS, "web")
	if n := clitest.Replicas(t, live); n != 3 {
		t.Errorf("it has %d replicas, want 3", n)
	}
	if got := live.GetAnnotations()[inventory.OwningInventory]; got != result.Result.Inventory.ID {
		t.Errorf("it is owned by %q, want %q", got, result.Result.Inventory.ID)
	}
	s.Other("second").Apply(clitest.Deployment("web", 4, "1m")).Want(t, 1).Did(t, "Deployment", "web", plan.Failed)
}

func TestAdoptAllTakesObjectsOfOtherInventories(t *testing.T) {
	s := clitest.New(t)
	s.Apply(clitest.Deployment("web", 2, "1m")).Want(t, 0)
	second := s.Other("second")
	second.Apply(clitest.Deployment("web", 3, "1m"), "--inventory-policy=adopt-all").Want(t, 0)
	if n := clitest.Replicas(t, s.Live("apps/v1/deployments", s.NS, "web")); n != 3 {
		t.Errorf("it has %d replicas, want 3", n)
	}
	// The first inventory does not delete what is not its own any more.
	s.Destroy().Want(t, 0).Did(t, "Deployment", "web", plan.Detached)
	s.Exists("apps/v1/deployments", "web")
}

func TestObjectsWithKeepAnnotationsAreDetached(t *testing.T) {
	s := clitest.New(t)
	kept := clitest.Documents(
		clitest.Pod("by-lifecycle", clitest.Annotations("client.lifecycle.config.k8s.io/deletion: detach")),
		clitest.Pod("by-remove", clitest.Annotations("cli-utils.sigs.k8s.io/on-remove: keep")))
	s.Apply(clitest.Documents(clitest.Deployment("web", 1, "1m"), kept)).Want(t, 0)

	preview := s.Preview(clitest.Deployment("web", 1, "1m")).Want(t, 0)
	preview.Did(t, "Pod", "by-lifecycle", plan.Detached)
	if got := s.Live("v1/pods", s.NS, "by-remove").GetAnnotations()[inventory.OwningInventory]; got == "" {
		t.Error("the preview took the owner off")
	}
	if got := s.Members(); len(got) != 3 {
		t.Errorf("the preview changed the inventory to %v", got)
	}

	s.Apply(clitest.Deployment("web", 1, "1m")).Want(t, 0)
	for _, name := range []string{"by-lifecycle", "by-remove"} {
		live := s.Live("v1/pods", s.NS, name)
		if live == nil {
			t.Fatalf("pod %s was deleted", name)
		}
		if got := live.GetAnnotations()[inventory.OwningInventory]; got != "" {
			t.Errorf("pod %s is still owned by %q", name, got)
		}
	}
	if got := s.Members(); len(got) != 1 {
		t.Errorf("the inventory holds %v, want the Deployment alone", got)
	}
}

func TestObjectThatMovedToAnotherGroupIsNotPruned(t *testing.T) {
	s := clitest.New(t)
	// cli-utils does it with Ingress, which has had one group only for a while;
	// Events are still served under two, and are the same objects.
	event := `apiVersion: v1
kind: Event
metadata: {name: twice, namespace: "{ns}"}
involvedObject: {kind: Namespace, name: "{ns}", namespace: "{ns}", apiVersion: v1}
reason: Tested
message: the same object under two groups
type: Normal
reportingComponent: brine.dev/test
reportingInstance: test-1
action: Test
eventTime: "2024-01-01T00:00:00.000000Z"
`
	moved := `apiVersion: events.k8s.io/v1
kind: Event
metadata: {name: twice, namespace: "{ns}"}
regarding: {kind: Namespace, name: "{ns}", namespace: "{ns}", apiVersion: v1}
reason: Tested
note: the same object under two groups
type: Normal
reportingController: brine.dev/test
reportingInstance: test-1
action: Test
eventTime: "2024-01-01T00:00:00.000000Z"
`
	s.Apply(event).Want(t, 0)
	uid := s.Live("v1/events", s.NS, "twice").GetUID()
	result := s.Apply(moved).Want(t, 0)
	if live := s.Live("v1/events", s.NS, "twice"); live == nil || live.GetUID() != uid {
		t.Fatalf("the object was deleted under its old group: %s", clitest.Clip(result.Stdout))
	}
	if got := s.Members(); !slices.Equal(got, []string{"Event.events.k8s.io " + s.NS + "/twice"}) {
		t.Errorf("the inventory holds %v", got)
	}
	s.Destroy().Want(t, 0)
	s.Missing("v1/events", "twice")
}

func TestMemberDeletedByOthersLeavesTheInventory(t *testing.T) {
	s := clitest.New(t)
	s.Apply(clitest.Pod("one")).Want(t, 0)
	zero := int64(0)
	if err := s.Resources("v1/pods").Namespace(s.NS).Delete(t.Context(), "one", metav1.DeleteOptions{GracePeriodSeconds: &zero}); err != nil {
		t.Fatal(err)
	}
	s.Eventually("pod one is gone", func() bool { return s.Live("v1/pods", s.NS, "one") == nil })
	if got := s.Members(); len(got) != 1 {
		t.Errorf("the inventory holds %v, want the pod that was deleted outside", got)
	}
	// What was deleted outside leaves the inventory.
	s.Apply(clitest.Pod("two")).Want(t, 0).Prints(t, "was in the inventory but does not exist")
	if got, want := s.Members(), []string{"Pod " + s.NS + "/two"}; !slices.Equal(got, want) {
		t.Errorf("the inventory holds %v, want %v", got, want)
	}
	s.Destroy().Want(t, 0)
	s.Missing("v1/pods", "two")
	s.Missing("v1/configmaps", "inv")
}

func TestEmptyBundleMakesAnInventory(t *testing.T) {
	s := clitest.New(t)
	s.Apply("# nothing\n", "--allow-empty").Want(t, 0)
	if s.ConfigMap("inv") == nil {
		t.Error("there is no inventory")
	}
	s.Destroy().Want(t, 0)
	s.Missing("v1/configmaps", "inv")
}
