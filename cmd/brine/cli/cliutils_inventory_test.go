package cli

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"brine/bundle/plan"
	"brine/inventory"
)

// Scenarios of cli-utils' end-to-end suite (its test/e2e, v0.37.2), each named
// after its file there: who owns an object, and what the inventory holds.

func TestInventoryPolicyMustMatch(t *testing.T) {
	s := newFixture(t)
	s.apply(deployment("web", 2, "1m")).want(t, 0)
	s.other("second").apply(deployment("web", 3, "1m"), "--inventory-policy=must-match").want(t, 1).
		prints(t, "it belongs to inventory").did(t, "Deployment", "web", plan.Failed)
	if n := replicas(t, s.live("apps/v1/deployments", s.ns, "web")); n != 2 {
		t.Errorf("it has %d replicas: the other inventory changed it", n)
	}
	// Nor an object of nobody.
	s.create("v1/configmaps", configMap("alone"))
	s.other("second").apply(configMap("alone"), "--inventory-policy=must-match").want(t, 1).did(t, "ConfigMap", "alone", plan.Failed)
	if got := s.other("second").members(); len(got) != 0 {
		t.Errorf("the second inventory holds %v, none of which it may have", got)
	}
}

func TestInventoryPolicyAdoptIfNoInventory(t *testing.T) {
	s := newFixture(t)
	s.create("apps/v1/deployments", deployment("web", 2, "1m"))
	result := s.apply(deployment("web", 3, "1m"), "--force-conflicts").want(t, 0)
	live := s.live("apps/v1/deployments", s.ns, "web")
	if n := replicas(t, live); n != 3 {
		t.Errorf("it has %d replicas, want 3", n)
	}
	if got := live.GetAnnotations()[inventory.OwningInventory]; got != result.result.Inventory.ID {
		t.Errorf("it is owned by %q, want %q", got, result.result.Inventory.ID)
	}
	s.other("second").apply(deployment("web", 4, "1m")).want(t, 1).did(t, "Deployment", "web", plan.Failed)
}

func TestInventoryPolicyAdoptAll(t *testing.T) {
	s := newFixture(t)
	s.apply(deployment("web", 2, "1m")).want(t, 0)
	second := s.other("second")
	second.apply(deployment("web", 3, "1m"), "--inventory-policy=adopt-all").want(t, 0)
	if n := replicas(t, s.live("apps/v1/deployments", s.ns, "web")); n != 3 {
		t.Errorf("it has %d replicas, want 3", n)
	}
	// The first inventory does not delete what is not its own any more.
	s.destroy().want(t, 0).did(t, "Deployment", "web", plan.Detached)
	s.exists("apps/v1/deployments", "web")
}

func TestInventoryIDMismatch(t *testing.T) {
	s := newFixture(t)
	s.apply(configMap("a"), "--inventory-id=first-"+s.ns).want(t, 0)
	p := s.proxied()
	s.apply(configMap("b"), "--inventory-id=second-"+s.ns).want(t, 1).prints(t, "first-"+s.ns, "second-"+s.ns)
	if w := p.Writes(); len(w) > 0 {
		t.Errorf("it wrote %v", w)
	}
	s.missing("v1/configmaps", "b")
}

func TestDeletionPrevention(t *testing.T) {
	s := newFixture(t)
	kept := documents(
		pod("by-lifecycle", annotations("client.lifecycle.config.k8s.io/deletion: detach")),
		pod("by-remove", annotations("cli-utils.sigs.k8s.io/on-remove: keep")))
	s.apply(documents(deployment("web", 1, "1m"), kept)).want(t, 0)

	preview := s.preview(deployment("web", 1, "1m")).want(t, 0)
	preview.did(t, "Pod", "by-lifecycle", plan.Detached)
	if got := s.live("v1/pods", s.ns, "by-remove").GetAnnotations()[inventory.OwningInventory]; got == "" {
		t.Error("the preview took the owner off")
	}
	if got := s.members(); len(got) != 3 {
		t.Errorf("the preview changed the inventory to %v", got)
	}

	s.apply(deployment("web", 1, "1m")).want(t, 0)
	for _, name := range []string{"by-lifecycle", "by-remove"} {
		live := s.live("v1/pods", s.ns, name)
		if live == nil {
			t.Fatalf("pod %s was deleted", name)
		}
		if got := live.GetAnnotations()[inventory.OwningInventory]; got != "" {
			t.Errorf("pod %s is still owned by %q", name, got)
		}
	}
	if got := s.members(); len(got) != 1 {
		t.Errorf("the inventory holds %v, want the Deployment alone", got)
	}
}

func TestCurrentUID(t *testing.T) {
	s := newFixture(t)
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
	s.apply(event).want(t, 0)
	uid := s.live("v1/events", s.ns, "twice").GetUID()
	result := s.apply(moved).want(t, 0)
	if live := s.live("v1/events", s.ns, "twice"); live == nil || live.GetUID() != uid {
		t.Fatalf("the object was deleted under its old group: %s", clip(result.stdout))
	}
	if got := s.members(); !slices.Equal(got, []string{"Event.events.k8s.io " + s.ns + "/twice"}) {
		t.Errorf("the inventory holds %v", got)
	}
	s.destroy().want(t, 0)
	s.missing("v1/events", "twice")
}

func TestPruneRetrievalError(t *testing.T) {
	s := newFixture(t)
	s.apply(pod("one")).want(t, 0)
	zero := int64(0)
	if err := s.resources("v1/pods").Namespace(s.ns).Delete(t.Context(), "one", metav1.DeleteOptions{GracePeriodSeconds: &zero}); err != nil {
		t.Fatal(err)
	}
	s.eventually("pod one is gone", func() bool { return s.live("v1/pods", s.ns, "one") == nil })
	if got := s.members(); len(got) != 1 {
		t.Errorf("the inventory holds %v, want the pod that was deleted outside", got)
	}
	// What was deleted outside leaves the inventory.
	s.apply(pod("two")).want(t, 0).prints(t, "was in the inventory but does not exist")
	if got, want := s.members(), []string{"Pod " + s.ns + "/two"}; !slices.Equal(got, want) {
		t.Errorf("the inventory holds %v, want %v", got, want)
	}
	s.destroy().want(t, 0)
	s.missing("v1/pods", "two")
	s.missing("v1/configmaps", "inv")
}

func TestEmptySet(t *testing.T) {
	s := newFixture(t)
	s.apply("# nothing\n", "--allow-empty").want(t, 0)
	if s.live("v1/configmaps", s.ns, "inv") == nil {
		t.Error("there is no inventory")
	}
	s.destroy().want(t, 0)
	s.missing("v1/configmaps", "inv")
}
