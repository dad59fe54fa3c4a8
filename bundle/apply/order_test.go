package apply_test

import (
	"strings"
	"testing"

	"brine/bundle/plan"
	"brine/cmd/brine/clitest"
)

// Scenarios of cli-utils' end-to-end suite (its test/e2e, v0.37.2:
// dependency_filter, depends_on, namespace_filter, crd).

func TestPruneKeepsWhatAKeptObjectDependsOn(t *testing.T) {
	s := clitest.New(t)
	dependent := clitest.Pod("a", clitest.DependsOn("/namespaces/{ns}/Pod/b"))
	s.Apply(clitest.Documents(dependent, clitest.Pod("b"))).Want(t, 0)
	// b is not in the bundle any more, but a still needs it.
	result := s.Apply(dependent).Want(t, 0)
	result.Did(t, "Pod", "b", plan.Skipped)
	result.Prints(t, "depends on it")
	s.Exists("v1/pods", "a", "b")
	if got := s.Members(); len(got) != 2 {
		t.Errorf("the inventory holds %v, want both pods", got)
	}
	s.Destroy().Want(t, 0)
	s.Missing("v1/pods", "a", "b")
}

func TestDependsOnAcrossNamespaces(t *testing.T) {
	s := clitest.New(t)
	text := clitest.Documents(
		strings.ReplaceAll(clitest.Pod("front", clitest.DependsOn("/namespaces/{ns}-back/Pod/back")), "namespace: {ns}\n", "namespace: {ns}-front\n"),
		strings.ReplaceAll(clitest.Pod("back"), "namespace: {ns}\n", "namespace: {ns}-back\n"),
		"apiVersion: v1\nkind: Namespace\nmetadata: {name: \"{ns}-front\"}\n",
		"apiVersion: v1\nkind: Namespace\nmetadata: {name: \"{ns}-back\"}\n")
	result := s.Apply(text).Want(t, 0)
	if front, back := result.Object(t, "Pod", "front"), result.Object(t, "Pod", "back"); front.StartedAt < back.ReadyAt {
		t.Errorf("front was applied at %v, before back was ready at %v", front.StartedAt, back.ReadyAt)
	}
	result = s.Destroy().Want(t, 0)
	if front, back := result.Object(t, "Pod", "front"), result.Object(t, "Pod", "back"); back.StartedAt < front.ReadyAt {
		t.Errorf("back was deleted at %v, before front was gone at %v", back.StartedAt, front.ReadyAt)
	}
}

func TestNamespaceInUseIsNotPruned(t *testing.T) {
	s := clitest.New(t)
	namespace := "apiVersion: v1\nkind: Namespace\nmetadata: {name: \"{ns}-local\"}\n"
	inside := strings.ReplaceAll(clitest.ConfigMap("inside"), "namespace: {ns}\n", "namespace: {ns}-local\n")
	s.GoneAfter("v1/namespaces", s.NS+"-local")
	s.Apply(clitest.Documents(namespace, inside)).Want(t, 0)
	// A namespace that the bundle's objects live in is not pruned.
	result := s.Apply(inside).Want(t, 0)
	if o := result.Did(t, "Namespace", s.NS+"-local", plan.Skipped); !strings.Contains(o.Reason, "in use") {
		t.Errorf("the reason is %q", o.Reason)
	}
	if s.Live("v1/namespaces", "", s.NS+"-local").GetDeletionTimestamp() != nil {
		t.Fatal("the namespace is being deleted")
	}
	s.Destroy().Want(t, 0)
	if s.Live("v1/namespaces", "", s.NS+"-local") != nil {
		t.Error("the namespace was not destroyed")
	}
}

func TestResourceIsAppliedAfterItsCRDAndDeletedBeforeIt(t *testing.T) {
	s := clitest.New(t)
	// The resource stands first, and is deleted first.
	result := s.Apply(clitest.Documents(clitest.Widget, clitest.Widgets)).Want(t, 0)
	crdName := "widgets." + s.NS + ".example.com"
	result.Did(t, "Widget", "one", plan.Created)
	if crd, w := result.Object(t, "CustomResourceDefinition", crdName), result.Object(t, "Widget", "one"); w.StartedAt < crd.ReadyAt {
		t.Errorf("the resource was applied at %v, before its CRD was ready at %v", w.StartedAt, crd.ReadyAt)
	}
	result = s.Destroy().Want(t, 0)
	result.Did(t, "Widget", "one", plan.Pruned)
	if crd, w := result.Object(t, "CustomResourceDefinition", crdName), result.Object(t, "Widget", "one"); crd.StartedAt < w.ReadyAt {
		t.Errorf("the CRD was deleted at %v, before its resource was gone at %v", crd.StartedAt, w.ReadyAt)
	}
	if s.Live("apiextensions.k8s.io/v1/customresourcedefinitions", "", crdName) != nil {
		t.Error("the CRD is there")
	}
}
