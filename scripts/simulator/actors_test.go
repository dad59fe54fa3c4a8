package simulator

import (
	"net/http"
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
	w.somebodyActsOn(objects[w.rand.IntN(len(objects))])
}

// somebodyIsFaster acts on the object of a write, directly before that is served.
func (w *World) somebodyIsFaster(r *http.Request) {
	t, ok := parse(r.URL.Path)
	if !ok || r.Method == http.MethodGet || t.name == "" || t.namespace == "default" {
		return
	}
	k, ok := w.server.find(func(k kind) bool { return k.GroupVersion() == t.gv && k.plural == t.resource })
	if p := at(k, t.namespace, t.name); ok && k.namespaced && w.server.objects[p] != nil {
		w.somebodyActsOn(p)
	}
}

const stranger = "an-inventory-elsewhere"

func (w *World) somebodyActsOn(p place) {
	live := w.server.objects[p]
	k, _ := w.server.find(func(k kind) bool { return k.Group == p.group && k.plural == p.resource })
	switch w.rand.IntN(6) {
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
	case 3:
		w.note("%s gives %s %s/%s to another inventory", person, p.resource, p.namespace, p.name)
		w.edit(k, live, func(u *unstructured.Unstructured) {
			u.SetAnnotations(map[string]string{inventory.OwningInventory: stranger})
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
