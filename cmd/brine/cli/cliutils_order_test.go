package cli

import (
	"strings"
	"testing"

	"brine/bundle/plan"
)

// Scenarios of cli-utils' end-to-end suite (its test/e2e, v0.37.2), each named
// after its file there: what waits for what.

func TestDependencyFilter(t *testing.T) {
	s := newFixture(t)
	dependent := pod("a", dependsOn("/namespaces/{ns}/Pod/b"))
	s.apply(documents(dependent, pod("b"))).want(t, 0)
	// b is not in the bundle any more, but a still needs it.
	result := s.apply(dependent).want(t, 0)
	result.did(t, "Pod", "b", plan.Skipped)
	result.prints(t, "depends on it")
	s.exists("v1/pods", "a", "b")
	if got := s.members(); len(got) != 2 {
		t.Errorf("the inventory holds %v, want both pods", got)
	}
	s.destroy().want(t, 0)
	s.missing("v1/pods", "a", "b")
}

func TestDependsOnAcrossNamespaces(t *testing.T) {
	s := newFixture(t)
	text := documents(
		strings.ReplaceAll(pod("front", dependsOn("/namespaces/{ns}-back/Pod/back")), "namespace: {ns}\n", "namespace: {ns}-front\n"),
		strings.ReplaceAll(pod("back"), "namespace: {ns}\n", "namespace: {ns}-back\n"),
		"apiVersion: v1\nkind: Namespace\nmetadata: {name: \"{ns}-front\"}\n",
		"apiVersion: v1\nkind: Namespace\nmetadata: {name: \"{ns}-back\"}\n")
	result := s.apply(text).want(t, 0)
	if front, back := result.object(t, "Pod", "front"), result.object(t, "Pod", "back"); front.StartedAt < back.ReadyAt {
		t.Errorf("front was applied at %v, before back was ready at %v", front.StartedAt, back.ReadyAt)
	}
	result = s.destroy().want(t, 0)
	if front, back := result.object(t, "Pod", "front"), result.object(t, "Pod", "back"); back.StartedAt < front.ReadyAt {
		t.Errorf("back was deleted at %v, before front was gone at %v", back.StartedAt, front.ReadyAt)
	}
}

func TestLocalNamespaces(t *testing.T) {
	s := newFixture(t)
	namespace := "apiVersion: v1\nkind: Namespace\nmetadata: {name: \"{ns}-local\"}\n"
	inside := strings.ReplaceAll(configMap("inside"), "namespace: {ns}\n", "namespace: {ns}-local\n")
	s.goneAfter("v1/namespaces", s.ns+"-local")
	s.apply(documents(namespace, inside)).want(t, 0)
	// A namespace that the bundle's objects live in is not pruned.
	result := s.apply(inside).want(t, 0)
	if o := result.did(t, "Namespace", s.ns+"-local", plan.Skipped); !strings.Contains(o.Reason, "in use") {
		t.Errorf("the reason is %q", o.Reason)
	}
	if s.live("v1/namespaces", "", s.ns+"-local").GetDeletionTimestamp() != nil {
		t.Fatal("the namespace is being deleted")
	}
	s.destroy().want(t, 0)
	if s.live("v1/namespaces", "", s.ns+"-local") != nil {
		t.Error("the namespace was not destroyed")
	}
}

func TestCRDAndResourceTogether(t *testing.T) {
	s := newFixture(t)
	// The resource stands first, and is deleted first.
	result := s.apply(documents(widget, widgets)).want(t, 0)
	crdName := "widgets." + s.ns + ".example.com"
	result.did(t, "Widget", "one", plan.Created)
	if crd, w := result.object(t, "CustomResourceDefinition", crdName), result.object(t, "Widget", "one"); w.StartedAt < crd.ReadyAt {
		t.Errorf("the resource was applied at %v, before its CRD was ready at %v", w.StartedAt, crd.ReadyAt)
	}
	result = s.destroy().want(t, 0)
	result.did(t, "Widget", "one", plan.Pruned)
	if crd, w := result.object(t, "CustomResourceDefinition", crdName), result.object(t, "Widget", "one"); crd.StartedAt < w.ReadyAt {
		t.Errorf("the CRD was deleted at %v, before its resource was gone at %v", crd.StartedAt, w.ReadyAt)
	}
	if s.live("apiextensions.k8s.io/v1/customresourcedefinitions", "", crdName) != nil {
		t.Error("the CRD is there")
	}
}
