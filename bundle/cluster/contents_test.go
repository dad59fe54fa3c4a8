package cluster_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

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
	eventually(t, "the CRD is served", func() bool {
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
	eventually(t, "discovery knows it", func() bool {
		err := client.Discover(t.Context())
		served, _ := client.Listable()
		return err == nil && slices.ContainsFunc(served, func(r cluster.Resource) bool { return r.GVR == parts("v1") })
	})
	contents := func() bundle.Contents {
		t.Helper()
		found, err := client.Contents(t.Context(), cluster.Search{
			Holders: []*unstructured.Unstructured{namespace},
			Keeps:   func(map[string]string) bool { return false }, Auxiliary: func(map[string]string) bool { return false },
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
		eventually(t, version+" is no longer served", func() bool {
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

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for range 600 {
		if ok() {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("never happened: %s", what)
}
