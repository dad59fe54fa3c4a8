package simulator

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/inventory"
)

const person = "kubectl"

// somebodyActs is a person with kubectl, or an operator, that touches one object.
func (w *World) somebodyActs() {
	var objects []place
	for _, p := range w.server.places() {
		if (p.resource == "configmaps" || p.resource == "secrets" || p.resource == "deployments" || p.resource == "widgets") && p.name != "kube-root-ca.crt" && !strings.Contains(p.name, "shop") && !strings.Contains(p.name, "other") {
			objects = append(objects, p)
		}
	}
	if len(objects) == 0 {
		return
	}
	p := objects[w.rand.IntN(len(objects))]
	live := w.server.objects[p]
	k, _ := w.server.find(func(k kind) bool { return k.Group == p.group && k.plural == p.resource })
	switch w.rand.IntN(5) {
	case 0:
		w.note("%s deletes %s %s/%s", person, p.resource, p.namespace, p.name)
		_, _ = w.server.delete(person, k, p, metav1.DeleteOptions{}, false)
	case 1: // another object of the same name, which is not brine's
		w.note("%s deletes %s %s/%s and creates it again", person, p.resource, p.namespace, p.name)
		u := live.DeepCopy()
		u.SetAnnotations(nil)
		u.SetLabels(nil)
		u.SetManagedFields(nil)
		if _, err := w.server.delete(person, k, p, metav1.DeleteOptions{}, false); err == nil {
			_, _ = w.server.create(person, k, u, false)
		}
	case 2:
		w.note("%s takes %s %s/%s out of its inventory", person, p.resource, p.namespace, p.name)
		w.edit(k, live, func(u *unstructured.Unstructured) {
			annotations := u.GetAnnotations()
			delete(annotations, inventory.OwningInventory)
			u.SetAnnotations(annotations)
		})
	default:
		w.note("%s annotates %s %s/%s", person, p.resource, p.namespace, p.name)
		w.edit(k, live, func(u *unstructured.Unstructured) {
			annotations := u.GetAnnotations()
			if annotations == nil {
				annotations = map[string]string{}
			}
			annotations["example.com/seen"] += "x"
			u.SetAnnotations(annotations)
		})
	}
}

// somebodyCreates is a person who has what bundles name, before brine comes; what brine
// created is deleted first, half of the time.
func (w *World) somebodyCreates() {
	k, _ := w.server.find(func(k kind) bool { return k.Group == "" && k.plural == "configmaps" })
	for _, name := range []string{"a", "b", "c", "d"} {
		p := place{"", "configmaps", "app", name}
		if w.server.objects[p] != nil && w.rand.IntN(2) == 0 {
			_, _ = w.server.delete(person, k, p, metav1.DeleteOptions{}, false)
		}
		u := bundle.V1(bundle.ID{Namespace: "app", Name: name, GroupKind: bundle.ConfigMapKind}, map[string]any{"data": map[string]any{"theirs": "x"}})
		if _, err := w.server.create(person, k, u, false); err == nil {
			w.note("%s creates configmaps app/%s", person, name)
		}
	}
}

func (w *World) edit(k kind, live *unstructured.Unstructured, change func(*unstructured.Unstructured)) {
	u := live.DeepCopy()
	change(u)
	_, _ = w.server.put(person, "update", "kubectl-edit", k, live, u, false)
}
