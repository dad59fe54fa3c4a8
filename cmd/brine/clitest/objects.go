package clitest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"

	"brine/bundle"
	"brine/bundle/cluster/clustertest"
	"brine/bundle/read"
)

// PatchAs patches an object of the fixture's namespace as another manager.
func (s *Fixture) PatchAs(manager, resource, name, patch string) {
	s.Helper()
	if _, err := s.Resources(resource).Namespace(s.NS).Patch(s.Context(), name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: manager}); err != nil {
		s.Fatal(err)
	}
}

// SetContainerState sets the state of the container of a pod that no kubelet has, once it is there.
func (s *Fixture) SetContainerState(pod, containerState string) {
	for s.Context().Err() == nil {
		_, err := s.Resources("v1/pods").Namespace(s.NS).Patch(context.Background(), pod, types.MergePatchType,
			[]byte(`{"status":{"containerStatuses":[{"name":"c","image":"i","imageID":"","ready":false,"restartCount":3,"state":`+containerState+`}]}}`),
			metav1.PatchOptions{}, "status")
		if err == nil {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// Resources gives the objects of "v1/configmaps", "apps/v1/deployments".
func (s *Fixture) Resources(resource string) dynamic.NamespaceableResourceInterface {
	s.Helper()
	at := strings.LastIndex(resource, "/")
	gv, err := schema.ParseGroupVersion(resource[:at])
	if err != nil {
		s.Fatal(err)
	}
	return s.API.Resource(gv.WithResource(resource[at+1:]))
}

// Live reads an object; nil if it is not there. namespace is "" for
// cluster-scoped ones.
func (s *Fixture) Live(resource, namespace, name string) *unstructured.Unstructured {
	s.Helper()
	var r dynamic.ResourceInterface = s.Resources(resource)
	if namespace != "" {
		r = s.Resources(resource).Namespace(namespace)
	}
	u, err := r.Get(s.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		s.Fatal(err)
	}
	return u
}

// ConfigMap reads a ConfigMap of the fixture's namespace; nil if it is not there.
func (s *Fixture) ConfigMap(name string) *unstructured.Unstructured {
	s.Helper()
	return s.Live("v1/configmaps", s.NS, name)
}

// Data is what a ConfigMap of the fixture's namespace holds; nil if it is not there.
func (s *Fixture) Data(name string) map[string]string {
	s.Helper()
	return DataOf(s.ConfigMap(name))
}

// DataOf is what a ConfigMap holds; nil of none.
func DataOf(u *unstructured.Unstructured) map[string]string {
	if u == nil {
		return nil
	}
	data, _, _ := unstructured.NestedStringMap(u.Object, "data")
	return data
}

// Exists fails the test unless these objects of the fixture's namespace exist.
func (s *Fixture) Exists(resource string, names ...string) {
	s.Helper()
	for _, name := range names {
		if u := s.Live(resource, s.NS, name); u == nil || u.GetDeletionTimestamp() != nil {
			s.Errorf("%s %s is not there", resource, name)
		}
	}
}

// Missing fails the test if one of these objects of the fixture's namespace exists.
func (s *Fixture) Missing(resource string, names ...string) {
	s.Helper()
	for _, name := range names {
		if u := s.Live(resource, s.NS, name); u != nil && u.GetDeletionTimestamp() == nil {
			s.Errorf("%s %s is there", resource, name)
		}
	}
}

// Parsed is an object that is written as YAML or JSON.
func (s *Fixture) Parsed(text string) *unstructured.Unstructured {
	s.Helper()
	b, err := read.Bundle(s.Context(), read.Options{Files: []string{s.File(text)}})
	if err != nil {
		s.Fatal(err)
	}
	return b.Objects[0].Content
}

// Create makes an object, written as YAML or JSON, past brine.
func (s *Fixture) Create(resource, text string) *unstructured.Unstructured {
	s.Helper()
	u := s.Parsed(text)
	var r dynamic.ResourceInterface = s.Resources(resource)
	if namespace := u.GetNamespace(); namespace != "" {
		r = s.Resources(resource).Namespace(namespace)
	}
	created, err := r.Create(s.Context(), u, metav1.CreateOptions{})
	if err != nil {
		s.Fatal(err)
	}
	return created
}

// GoneAfter deletes a cluster-scoped object when the test is over.
func (s *Fixture) GoneAfter(resource, name string) {
	s.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		err := s.Resources(resource).Delete(ctx, name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			s.Logf("delete %s %s: %v", resource, name, err)
		}
	})
}

// PatchConfigMap patches a ConfigMap of the fixture's namespace.
func (s *Fixture) PatchConfigMap(name, body string) {
	s.Helper()
	if _, err := s.Resources("v1/configmaps").Namespace(s.NS).Patch(s.Context(), name, types.MergePatchType, []byte(body), metav1.PatchOptions{}); err != nil {
		s.Fatal(err)
	}
}

// DeleteConfigMap deletes a ConfigMap of the fixture's namespace.
func (s *Fixture) DeleteConfigMap(name string) {
	s.Helper()
	if err := s.Resources("v1/configmaps").Namespace(s.NS).Delete(s.Context(), name, metav1.DeleteOptions{}); err != nil {
		s.Fatal(err)
	}
}

// Merge patches an object past brine, as a second actor on its own goroutine may.
func (s *Fixture) Merge(resource, namespace, name, patch string) {
	var r dynamic.ResourceInterface = s.Resources(resource)
	if namespace != "" {
		r = s.Resources(resource).Namespace(namespace)
	}
	if _, err := r.Patch(context.Background(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "somebody"}); err != nil {
		s.Errorf("patch %s %s: %v", resource, name, err)
	}
}

// Discovered says whether discovery knows a group.
func (s *Fixture) Discovered(group string) bool {
	s.Helper()
	groups, _, _ := discovery.NewDiscoveryClientForConfigOrDie(s.Cluster.Config(s.TB)).ServerGroupsAndResources()
	return slices.ContainsFunc(groups, func(g *metav1.APIGroup) bool { return g.Name == group })
}

// Grant makes the namespaces, roles and bindings that brine rbac wrote, and waits until
// the server knows of each binding's last right.
func Grant(t *testing.T, c *clustertest.Cluster, text string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rbac.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	b, err := read.Bundle(t.Context(), read.Options{Files: []string{path}})
	if err != nil {
		t.Fatal(err)
	}
	api := c.Dynamic(t)
	for _, o := range b.Objects {
		gvr := schema.GroupVersionResource{Group: o.GVK.Group, Version: o.GVK.Version, Resource: strings.ToLower(o.GVK.Kind) + "s"}
		var r dynamic.ResourceInterface = api.Resource(gvr)
		if namespace := o.Content.GetNamespace(); namespace != "" {
			r = api.Resource(gvr).Namespace(namespace)
		}
		if _, err := r.Create(t.Context(), o.Content, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatalf("%s: %v", bundle.Name(o.ID), err)
		}
	}
	for _, binding := range b.Objects {
		for _, role := range b.Objects {
			if kind := binding.ID.GroupKind.Kind; kind == role.ID.GroupKind.Kind+"Binding" && binding.ID.Namespace == role.ID.Namespace {
				awaitGranted(t, api, binding.Content, role.Content)
			}
		}
	}
}

// awaitGranted waits until the server's authorizer has read a role and its binding,
// which it watches each for itself.
func awaitGranted(t *testing.T, api dynamic.Interface, binding, role *unstructured.Unstructured) {
	t.Helper()
	if name, _, _ := unstructured.NestedString(binding.Object, "roleRef", "name"); name != role.GetName() {
		return
	}
	subjects, _, _ := unstructured.NestedSlice(binding.Object, "subjects")
	rules, _, _ := unstructured.NestedSlice(role.Object, "rules")
	if len(subjects) == 0 || len(rules) == 0 {
		return
	}
	subject, rule := subjects[0].(map[string]any), rules[len(rules)-1].(map[string]any)
	last := func(field string) string {
		words, _, _ := unstructured.NestedStringSlice(rule, field)
		if len(words) == 0 {
			return ""
		}
		return words[len(words)-1]
	}
	resource, subresource, _ := strings.Cut(last("resources"), "/")
	spec := map[string]any{"user": subject["name"], "resourceAttributes": map[string]any{
		"group": last("apiGroups"), "resource": resource, "subresource": subresource, "verb": last("verbs"),
		"namespace": role.GetNamespace(), "name": last("resourceNames"),
	}}
	switch subject["kind"] {
	case "ServiceAccount":
		spec["user"] = fmt.Sprintf("system:serviceaccount:%s:%s", subject["namespace"], subject["name"])
	case "Group":
		spec["user"], spec["groups"] = "anybody", []any{subject["name"]}
	}
	reviews := api.Resource(schema.GroupVersionResource{Group: "authorization.k8s.io", Version: "v1", Resource: "subjectaccessreviews"})
	for range 300 {
		answer, err := reviews.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec,
		}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if allowed, _, _ := unstructured.NestedBool(answer.Object, "status", "allowed"); allowed {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("the server does not know of %s and its binding", role.GetName())
}
