package plan

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"brine/bundle"
	"brine/bundle/bundletest"
	"brine/inventory"
)

// What the cluster tests cannot easily make: versions that this server does not serve, and
// what the server was not asked about.
func TestLosses(t *testing.T) {
	inv := inventory.Empty("home", "inv", "inv")
	inv.Members, inv.Origins = map[bundle.ID]inventory.Status{}, map[bundle.ID]inventory.Origin{}
	earlier := &bundle.Bundle{Objects: bundled(objects{
		*bundletest.Object(t, "{apiVersion: policy/v1beta1, kind: PodDisruptionBudget, metadata: {name: web, namespace: ns}}"),
		*bundletest.Object(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: stays, namespace: ns}}"),
	})}
	claim := bundletest.Object(t, "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data, namespace: ns}}")
	p := &Plan{Steps: []*Step{{ID: idOf(claim), GVK: claim.GroupVersionKind(), Object: bundled(objects{*claim})[0], Action: Created}}}
	losses := p.Losses(Back{
		Inventory: inv, Earlier: earlier, Stored: []*unstructured.Unstructured{nil}, Actions: []Action{Created},
		Served: func(gvk schema.GroupVersionKind) bool { return gvk.Group != "policy" },
	})
	var got []string
	for _, l := range losses {
		got = append(got, bundle.Name(l.ID)+": "+l.Message)
	}
	want := []string{
		"PodDisruptionBudget.policy ns/web: this server does not serve policy/v1beta1: it cannot be applied as it was",
		"PersistentVolumeClaim ns/data: it is new: going back deletes it, with the data that it has by then",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	if _, owned := claim.GetAnnotations()[inventory.OwningInventory]; owned {
		t.Error("the bundle was changed")
	}
}
