package plan

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/bundle/order"
	"brine/inventory"
)

// Bodies are kept of what is sent, each its own, and of CRDs, but of nothing else that is
// unchanged.
func TestBodiesOfUnchangedObjectsAreNotKept(t *testing.T) {
	t.Parallel()
	in := Input{Inventory: inventory.Empty("home", "inv", ""), Live: map[bundle.ID]*unstructured.Unstructured{}}
	var objects []*bundle.Object
	add := func(id bundle.ID, annotations map[string]string) {
		u := bundle.V1(id, map[string]any{})
		u.SetAnnotations(annotations)
		objects = append(objects, &bundle.Object{ID: id, GVK: u.GroupVersionKind(), Content: u})
		in.Live[id] = u.DeepCopy()
		in.Inventory.SetOwner(in.Live[id])
	}
	unchanged := map[string]string{bundle.LifecycleMutation: "ignore"}
	for i := range 100 {
		add(bundle.ID{Namespace: "home", Name: fmt.Sprintf("sent-%d", i), GroupKind: bundle.ConfigMapKind}, nil)
		add(bundle.ID{Namespace: "home", Name: fmt.Sprintf("unchanged-%d", i), GroupKind: bundle.ConfigMapKind}, unchanged)
	}
	add(bundle.ID{Name: "crd", GroupKind: bundle.CRDKind}, unchanged)
	in.Graph, _ = order.Build(objects, order.Options{})
	for _, a := range in.applyAll() {
		if a.err != nil {
			t.Fatal(a.err)
		}
		switch {
		case a.step.Action == Unchanged && a.step.ID.GroupKind != bundle.CRDKind:
			if a.step.Body != nil {
				t.Errorf("%s: its body is kept", a.step.ID.Name)
			}
		default:
			sent, err := bundle.Decode(a.step.Body)
			if err != nil || sent.GetName() != a.step.ID.Name || DesiredHash(a.step.Body) != a.step.Desired {
				t.Errorf("%s: its body is %s, %v", a.step.ID.Name, a.step.Body, err)
			}
		}
	}
}
