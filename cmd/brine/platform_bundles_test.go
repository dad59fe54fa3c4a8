package main_test

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"brine/bundle/read"
	"brine/cmd/brine/clitest"
	"brine/inventory"
)

// The two bundles that the fault matrix goes between: namespaces, CRDs and
// resources of them, workloads, a Job that has to be recreated, and RBAC names
// that only an overflow ConfigMap can hold. Some change, some come, some go.
var (
	platformBefore = clitest.Documents(slices.Concat(platformBoth("1"), []string{
		platformNamespace("goes"), configMapIn("{ns}-goes", "inside"), strings.ReplaceAll(clitest.Deployment("old", 1, "1m"), "namespace: {ns}", "namespace: {ns}-goes"),
		platformCRD("gadgets", "Gadget"), platformResource("Gadget"),
		clitest.ConfigMap("goes"), clitest.ServiceAccount("goes"), platformRole("goes_role"),
	})...)
	platformAfter = clitest.Documents(slices.Concat(platformBoth("2"), []string{
		platformNamespace("comes"), configMapIn("{ns}-comes", "inside"),
		clitest.ConfigMap("comes"), clitest.ServiceAccount("comes"), platformRole("comes_role"),
	})...)
)

// platformBoth are those that both hold, and that change.
func platformBoth(value string) []string {
	return []string{
		platformNamespace("stays"), platformCRD("widgets", "Widget"), platformResource("Widget"),
		strings.Replace(clitest.ConfigMap("changes"), "key: value", "key: value-"+value, 1), configMapIn("{ns}-stays", "same"),
		"apiVersion: v1\nkind: Secret\nmetadata: {name: changes, namespace: '{ns}'}\nstringData: {password: hush-" + value + "}\n",
		strings.Replace(clitest.Deployment("web", 1, "1m"), "replicas: 1", "replicas: "+value, 1),
		strings.NewReplacer("name: migrate,", "name: migrate, annotations: {brine.dev/on-immutable: recreate},", "name: c,", "name: c-"+value+",").Replace(clitest.Job("migrate", "backoffLimit: 1")),
	}
}

func platformNamespace(name string) string {
	return "apiVersion: v1\nkind: Namespace\nmetadata: {name: '{ns}-" + name + "'}\n"
}

func configMapIn(namespace, name string) string {
	return strings.ReplaceAll(clitest.ConfigMap(name), "namespace: {ns}", "namespace: "+namespace)
}

func platformRole(name string) string {
	return clitest.Documents("apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: "+name+", namespace: '{ns}'}\nrules: [{apiGroups: [''], resources: [pods], verbs: [get]}]\n",
		"apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: "+name+", namespace: '{ns}'}\n"+
			"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: "+name+"}\nsubjects: [{kind: ServiceAccount, name: default}]\n")
}

func platformCRD(plural, kind string) string {
	return strings.NewReplacer("widgets", plural, "Widget", kind).Replace(clitest.Widgets)
}

func platformResource(kind string) string { return strings.ReplaceAll(clitest.Widget, "Widget", kind) }

// platformResources are those that the two bundles may hold.
var platformResources = []string{
	"v1/namespaces", "v1/configmaps", "v1/secrets", "v1/serviceaccounts", "v1/persistentvolumeclaims", "apps/v1/deployments", "apps/v1/statefulsets", "batch/v1/jobs",
	"rbac.authorization.k8s.io/v1/roles", "rbac.authorization.k8s.io/v1/rolebindings", "apiextensions.k8s.io/v1/customresourcedefinitions",
	"{ns}.example.com/v1/widgets", "{ns}.example.com/v1/gadgets",
}

// target is an object of a bundle, and where it is on the cluster.
type target struct {
	resource string // "apps/v1/deployments"
	content  *unstructured.Unstructured
}

func (o *target) name() string { return o.content.GetName() }

func (o *target) namespace() string { return o.content.GetNamespace() }

func (o *target) String() string {
	return o.content.GetKind() + " " + strings.TrimPrefix(o.namespace()+"/"+o.name(), "/")
}

// objectsOf reads bundles; of the same object in two of them the first counts.
func objectsOf(s *clitest.Fixture, texts ...string) []*target {
	s.Helper()
	var objects []*target
	seen := map[string]bool{}
	for _, text := range texts {
		b, err := read.Bundle(s.Context(), read.Options{Files: []string{s.File(text)}})
		if err != nil {
			s.Fatal(err)
		}
		for _, o := range b.Objects {
			u := o.Content.DeepCopy()
			r := u.GetAPIVersion() + "/" + strings.ToLower(u.GetKind()) + "s"
			if found := (&target{resource: r, content: u}); !seen[found.String()] {
				seen[found.String()] = true
				objects = append(objects, found)
			}
		}
	}
	return objects
}

// clientOf gives the objects of a resource in a namespace, past brine and from
// any goroutine.
func clientOf(s *clitest.Fixture, resource, namespace string) dynamic.ResourceInterface {
	r := s.Resources(strings.ReplaceAll(resource, "{ns}", s.NS))
	if namespace == "" {
		return r
	}
	return r.Namespace(namespace)
}

func readLive(s *clitest.Fixture, o *target) (*unstructured.Unstructured, error) {
	return clientOf(s, o.resource, o.namespace()).Get(context.Background(), o.name(), metav1.GetOptions{})
}

// patchLive is a merge patch by another field manager.
func patchLive(s *clitest.Fixture, o *target, change map[string]any) (*unstructured.Unstructured, error) {
	body, err := json.Marshal(change)
	if err != nil {
		return nil, err
	}
	return clientOf(s, o.resource, o.namespace()).Patch(context.Background(), o.name(), types.MergePatchType, body, metav1.PatchOptions{FieldManager: "somebody"})
}

// everything is all objects of the platform's kinds in the fixture's namespaces,
// and the cluster-scoped ones whose names begin with its own.
func everything(s *clitest.Fixture) []*target {
	s.Helper()
	var found []*target
	for _, resource := range platformResources {
		list, err := clientOf(s, resource, "").List(context.Background(), metav1.ListOptions{})
		if apierrors.IsNotFound(err) {
			continue // a CRD that is not there
		}
		if err != nil {
			s.Fatal(err)
		}
		for i := range list.Items {
			o := &target{resource: resource, content: &list.Items[i]}
			where := o.namespace()
			if where == "" {
				where = strings.TrimPrefix(strings.TrimPrefix(o.name(), "widgets."), "gadgets.")
			}
			if where == s.NS || strings.HasPrefix(where, s.NS+"-") || strings.HasPrefix(where, s.NS+".") {
				found = append(found, o)
			}
		}
	}
	return found
}

// ours are the live objects that the inventory owns, and are not on their way
// out.
func ours(s *clitest.Fixture) map[string]*target {
	s.Helper()
	owned := map[string]*target{}
	for _, o := range everything(s) {
		if o.content.GetAnnotations()[inventory.OwningInventory] == inventoryID(s) && o.content.GetDeletionTimestamp() == nil {
			owned[o.String()] = o
		}
	}
	return owned
}

// inventoryID is that of the fixture's inventory.
func inventoryID(s *clitest.Fixture) string {
	namespace, name, _ := strings.Cut(s.Inventory, "/")
	return inventory.DefaultID(namespace, name)
}

// orphans are the objects that carry the inventory's ownership metadata though
// the inventory does not hold them: they would never be pruned.
func orphans(s *clitest.Fixture) []string {
	s.Helper()
	owned := ours(s)
	if len(owned) == 0 {
		return nil
	}
	held := map[string]bool{}
	status := s.Status()
	if status.Result == nil {
		s.Fatalf("the inventory cannot be read:\n%s", status.Stderr)
	}
	for _, o := range status.Result.Objects {
		u := &unstructured.Unstructured{Object: map[string]any{"kind": o.Kind}}
		u.SetNamespace(o.Namespace)
		u.SetName(o.Name)
		held[(&target{content: u}).String()] = true
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(owned)), func(name string) bool { return held[name] })
}
