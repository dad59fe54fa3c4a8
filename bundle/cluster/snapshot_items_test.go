package cluster

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"brine/bundle"
)

// A live object is no item of the list that it came with: one that is done with would be kept
// in memory by any other.
func TestSnapshotKeepsNoList(t *testing.T) {
	t.Parallel()
	items := []unstructured.Unstructured{{Object: map[string]any{"metadata": map[string]any{"name": "a"}}}}
	id := bundle.ID{Name: "a", GroupKind: bundle.NamespaceKind}
	v := &Snapshot{Live: map[bundle.ID]*unstructured.Unstructured{}, wanted: map[bundle.ID]bool{id: true}}
	v.add(Resource{GVK: schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}}, items...)
	if live := v.Live[id]; live == nil || live == &items[0] || live.GetName() != "a" || live.GetKind() != "Namespace" {
		t.Errorf("the live object is %v", live)
	}
}
