package cluster_test

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/cluster/clustertest"
)

// A version that discovery named may not be served any more when a namespace is
// searched: the objects are listed in another one. If the CRD serves none, what
// the namespace holds is unknown.
func TestContentsOfAVersionThatIsNoLongerServed(t *testing.T) {
	c := clustertest.Shared(t)
	ns, api := c.Namespace(t), c.Dynamic(t)
	group := ns + ".example.com"
	version := func(name string, storage bool) any {
		return map[string]any{"name": name, "served": true, "storage": storage, "schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}}}
	}
	crds := api.Resource(cluster.CRDs.GVR)
	definition := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "parts." + group},
		"spec": map[string]any{
			"group": group, "scope": "Namespaced", "names": map[string]any{"kind": "Part", "plural": "parts"},
			"versions": []any{version("v1", true), version("v1beta1", false)},
		},
	}}
	if _, err := crds.Create(t.Context(), definition, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = crds.Delete(context.Background(), definition.GetName(), metav1.DeleteOptions{}) })
	parts := func(version string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: group, Version: version, Resource: "parts"}
	}
	part := &unstructured.Unstructured{Object: map[string]any{"apiVersion": group + "/v1", "kind": "Part", "metadata": map[string]any{"name": "one"}}}
	clustertest.Eventually(t, "the CRD is served", func() bool {
		_, err := api.Resource(parts("v1")).Namespace(ns).Create(t.Context(), part, metav1.CreateOptions{})
		return err == nil
	})
	client, err := cluster.New(c.Config(t), cluster.Options{})
	if err != nil {
		t.Fatal(err)
	}
	namespace, err := api.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).Get(t.Context(), ns, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	clustertest.Eventually(t, "discovery knows it", func() bool {
		err := client.Discover(t.Context())
		served, _ := client.Listable()
		return err == nil && slices.ContainsFunc(served, func(r cluster.Resource) bool { return r.GVR == parts("v1") })
	})
	contents := func() bundle.Contents {
		t.Helper()
		found, err := client.Contents(t.Context(), cluster.Search{
			Holders: []*unstructured.Unstructured{namespace}, Deleted: &cluster.Deleted{},
			Keeps: func(metav1.Object) bool { return false }, Auxiliary: func(bundle.ID, map[string]string) bool { return false },
		})
		if err != nil {
			t.Fatal(err)
		}
		return found[bundle.ID{GroupKind: bundle.NamespaceKind, Name: ns}]
	}
	unserve := func(index, version string) {
		t.Helper()
		patch := `[{"op": "replace", "path": "/spec/versions/` + index + `/served", "value": false}]`
		if _, err := crds.Patch(t.Context(), definition.GetName(), types.JSONPatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		clustertest.Everywhere(t, version+" is no longer served", func() bool {
			_, err := api.Resource(parts(version)).Namespace(ns).List(t.Context(), metav1.ListOptions{})
			return apierrors.IsNotFound(err)
		})
	}

	unserve("0", "v1")
	if got, want := contents().Unmanaged, []string{"Part." + group + " " + ns + "/one"}; !slices.Equal(got, want) {
		t.Errorf("it holds %v, want %v", got, want)
	}
	unserve("1", "v1beta1")
	if got := contents().Unknown; len(got) != 1 || !strings.Contains(got[0], "parts."+group) {
		t.Errorf("unknown: %v", got)
	}
}

// Of a kind that other namespaces have many objects of, only those of the namespaces
// that are searched are read: else each search would read the whole cluster.
func TestContentsBesideManyObjects(t *testing.T) {
	c := clustertest.Shared(t)
	api := c.Dynamic(t)
	maps := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	create := func(ns, name string) {
		t.Helper()
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}}}
		if _, err := api.Resource(maps).Namespace(ns).Create(t.Context(), u, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	other := c.Namespace(t)
	for i := range 260 { // more than 4 namespaces are worth
		create(other, fmt.Sprintf("m%d", i))
	}
	proxy := c.Proxy(t, clustertest.ProxyOptions{})
	client, err := cluster.New(proxy.Config(t), cluster.Options{})
	if err != nil {
		t.Fatal(err)
	}
	search := cluster.Search{
		Deleted: &cluster.Deleted{},
		Keeps:   func(metav1.Object) bool { return false }, Auxiliary: func(bundle.ID, map[string]string) bool { return false },
	}
	var searched []string
	for range 4 {
		ns := c.Namespace(t)
		create(ns, "theirs")
		create(ns, "ours")
		ours, err := api.Resource(maps).Namespace(ns).Get(t.Context(), "ours", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		search.Deleted.Add(ours)
		live, err := api.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).Get(t.Context(), ns, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		search.Holders = append(search.Holders, live)
		searched = append(searched, ns)
	}
	if err := client.Discover(t.Context()); err != nil {
		t.Fatal(err)
	}
	for round, everywhere := range []int{1, 0} { // the second knows how many there are
		proxy.Forget()
		found, err := client.Contents(t.Context(), search)
		if err != nil {
			t.Fatal(err)
		}
		lists := map[string]int{}
		for _, r := range proxy.Requests() {
			lists[r.Path]++
		}
		if got := lists["/api/v1/configmaps"]; got != everywhere {
			t.Errorf("round %d: %d LISTs of all ConfigMaps, want %d", round, got, everywhere)
		}
		if got := lists["/api/v1/podtemplates"]; got != 1 {
			t.Errorf("round %d: %d LISTs of all PodTemplates, want 1", round, got)
		}
		for _, ns := range searched {
			if got := lists["/api/v1/namespaces/"+ns+"/configmaps"]; got != 1 {
				t.Errorf("round %d: %d LISTs of the ConfigMaps of %s, want 1", round, got, ns)
			}
			if got, want := found[bundle.ID{GroupKind: bundle.NamespaceKind, Name: ns}], (bundle.Contents{Unmanaged: []string{"ConfigMap " + ns + "/theirs"}}); !reflect.DeepEqual(got, want) {
				t.Errorf("round %d: %s holds %+v, want %+v", round, ns, got, want)
			}
		}
	}
}

// Only a Secret of the type of tokens, of a ServiceAccount that is there, comes with the
// namespace: the annotation is anybody's.
func TestContentsThatLookLikeATokenAreKept(t *testing.T) {
	c := clustertest.Shared(t)
	ns, api := c.Namespace(t), c.Dynamic(t)
	secrets := api.Resource(schema.GroupVersionResource{Version: "v1", Resource: "secrets"}).Namespace(ns)
	accounts := api.Resource(schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}).Namespace(ns)
	account := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": map[string]any{"name": "robot"}}}
	account, err := accounts.Create(t.Context(), account, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	secret := func(name, kind, of string, uid types.UID) {
		t.Helper()
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret", "type": kind, "metadata": map[string]any{"name": name, "annotations": map[string]any{
			"kubernetes.io/service-account.name": of, "kubernetes.io/service-account.uid": string(uid),
		}}}}
		if kind != "Opaque" {
			u.Object["data"] = map[string]any{"token": "eA=="}
		}
		if _, err := secrets.Create(t.Context(), u, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	secret("token", "kubernetes.io/service-account-token", "robot", account.GetUID())
	secret("password", "Opaque", "robot", account.GetUID())
	namespace, err := api.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).Get(t.Context(), ns, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	client, err := cluster.New(c.Config(t), cluster.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Discover(t.Context()); err != nil {
		t.Fatal(err)
	}
	found, err := client.Contents(t.Context(), cluster.Search{
		Holders: []*unstructured.Unstructured{namespace}, Deleted: &cluster.Deleted{},
		Keeps: func(metav1.Object) bool { return false }, Auxiliary: func(bundle.ID, map[string]string) bool { return false },
	})
	want := []string{"Secret " + ns + "/password", "ServiceAccount " + ns + "/robot"}
	if got := found[bundle.ID{GroupKind: bundle.NamespaceKind, Name: ns}].Unmanaged; err != nil || !slices.Equal(got, want) {
		t.Errorf("it holds %q, want %q; %v", got, want, err)
	}
}
