package simulator

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"brine/bundle"
	"brine/inventory"
	"brine/scripts/simulator/apiserver"
)

const person = "kubectl"

// somebodyActs is a person with kubectl, or an operator, that touches one object.
func (w *World) somebodyActs() {
	if w.around.adopting && w.rand.IntN(2) == 0 {
		w.somebodyMakesOwners()
		return
	}
	var objects []apiserver.Place
	for _, p := range w.server.Places() {
		if slices.Contains([]string{"configmaps", "secrets", "deployments", "widgets", "persistentvolumeclaims"}, p.Resource) && p.Name != "kube-root-ca.crt" && !strings.Contains(p.Name, "shop") && !strings.Contains(p.Name, "other") {
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
	t, ok := apiserver.Parse(r.URL.Path)
	if !ok || r.Method == http.MethodGet || t.Name == "" || keepsBooks(t.Namespace, t.Name) {
		return
	}
	k, ok := w.server.Find(func(k apiserver.Kind) bool { return k.GroupVersion() == t.GV && k.Plural == t.Resource })
	if p := apiserver.At(k, t.Namespace, t.Name); ok && k.Namespaced && w.server.Objects[p] != nil {
		w.somebodyActsOn(p)
	}
}

const stranger = "an-inventory-elsewhere"

func (w *World) somebodyActsOn(p apiserver.Place) {
	live := w.server.Objects[p]
	k, _ := w.server.Find(func(k apiserver.Kind) bool { return k.Group == p.Group && k.Plural == p.Resource })
	switch w.rand.IntN(7) {
	case 0:
		w.note("%s deletes %s %s/%s", person, p.Resource, p.Namespace, p.Name)
		_, _ = w.server.Delete(person, k, p, metav1.DeleteOptions{}, false)
	case 1: // another object of the same name, which is not brine's
		w.note("%s deletes %s %s/%s and creates it again", person, p.Resource, p.Namespace, p.Name)
		u := live.DeepCopy()
		u.SetAnnotations(nil)
		u.SetLabels(nil)
		u.SetManagedFields(nil)
		if u.SetResourceVersion(""); w.rand.IntN(2) == 0 {
			u.SetFinalizers([]string{apiserver.Slow})
		}
		if _, err := w.server.Delete(person, k, p, metav1.DeleteOptions{}, false); err == nil {
			_, _ = w.server.Create(person, k, u, false)
		}
	case 2:
		w.note("%s takes %s %s/%s out of its inventory", person, p.Resource, p.Namespace, p.Name)
		w.edit(k, live, func(u *unstructured.Unstructured) {
			annotations := u.GetAnnotations()
			delete(annotations, inventory.OwningInventory)
			u.SetAnnotations(annotations)
		})
	case 3:
		w.note("%s gives %s %s/%s to another inventory", person, p.Resource, p.Namespace, p.Name)
		w.edit(k, live, func(u *unstructured.Unstructured) {
			u.SetAnnotations(map[string]string{inventory.OwningInventory: stranger})
		})
	case 5:
		w.note("%s has %s %s/%s deleted slowly", person, p.Resource, p.Namespace, p.Name)
		w.edit(k, live, func(u *unstructured.Unstructured) { u.SetFinalizers(append(u.GetFinalizers(), apiserver.Slow)) })
	case 4:
		if p.Resource != "configmaps" && p.Resource != "secrets" {
			return
		}
		w.note("%s keeps %s %s/%s", person, p.Resource, p.Namespace, p.Name)
		w.edit(k, live, func(u *unstructured.Unstructured) {
			annotations := maps.Clone(u.GetAnnotations())
			if annotations == nil {
				annotations = map[string]string{}
			}
			annotations[bundle.OnRemove] = "keep"
			u.SetAnnotations(annotations)
		})
	default:
		w.note("%s annotates %s %s/%s", person, p.Resource, p.Namespace, p.Name)
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
	k, _ := w.server.Find(func(k apiserver.Kind) bool { return k.Group == "" && k.Plural == "configmaps" })
	for _, name := range []string{"a", "b", "c", "d"} {
		p := apiserver.At(k, "app", name)
		if w.server.Objects[p] != nil && w.rand.IntN(2) == 0 {
			_, _ = w.server.Delete(person, k, p, metav1.DeleteOptions{}, false)
		}
		u := bundle.V1(bundle.ID{Namespace: "app", Name: name, GroupKind: bundle.ConfigMapKind}, map[string]any{"data": map[string]any{"theirs": "x"}})
		if _, err := w.server.Create(person, k, u, false); err == nil {
			w.note("%s creates configmaps app/%s", person, name)
		}
	}
}

// somebodyTakesTheLock is a run on another machine for which the holder of the lock counts as
// dead. Half of the time it has ended by now.
func (w *World) somebodyTakesTheLock(inventoryName string) {
	k, _ := w.server.Find(func(k apiserver.Kind) bool { return k.Kind == "Lease" })
	live := w.server.Objects[apiserver.At(k, home, inventory.LockName(inventoryName))]
	if live == nil {
		return
	}
	u, holder := live.DeepCopy(), ""
	if w.rand.IntN(2) == 0 {
		holder = "another-machine/1"
	}
	_ = unstructured.SetNestedField(u.Object, holder, "spec", "holderIdentity")
	_, _ = w.server.Put("brine-elsewhere", "update", "brine", k, live, u, false)
}

// somebodyMovesIn is a person who has objects of the person's own in the namespaces of bundles, and of the
// kinds that these define.
func (w *World) somebodyMovesIn() {
	for _, p := range w.server.Places() {
		at, kind := "", bundle.ConfigMapKind
		group, defines := strings.CutPrefix(p.Name, "widgets.")
		switch {
		case p.Resource == "customresourcedefinitions" && defines:
			at, kind = "default", schema.GroupKind{Group: group, Kind: "Widget"}
		case p.Resource == "namespaces" && strings.HasPrefix(p.Name, "extra-"):
			at = p.Name
		}
		k, ok := w.server.Find(func(k apiserver.Kind) bool { return k.GroupKind() == kind })
		if at == "" || !ok || w.rand.IntN(2) == 0 || !w.happens() {
			continue
		}
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": k.GroupVersion().String(), "kind": k.Kind}}
		u.SetNamespace(at)
		u.SetName("guest")
		if _, err := w.server.Create(person, k, u, false); err == nil {
			w.note("%s creates %s %s/guest", person, k.Plural, at)
		}
	}
}

// somebodyTidiesUp is a person who deletes what is of no inventory here, but what brine keeps
// of inventories, and what controllers made.
func (w *World) somebodyTidiesUp() {
	for _, p := range slices.Clone(w.server.Places()) {
		u := w.server.Objects[p]
		if len(u.GetOwnerReferences()) > 0 && owner(u) != "" {
			w.edit(w.server.KindAt(p), u, func(u *unstructured.Unstructured) { u.SetOwnerReferences(nil) })
			continue
		}
		copied := (p.Namespace == restored || w.notAdded[bundle.IDOf(u)]) && !slices.ContainsFunc(inventories, func(name string) bool { return (&oracle{server: w.server}).listed(name)[bundle.IDOf(u)] })
		if by := owner(u); p.Namespace == "" || keepsBooks(p.Namespace, p.Name) || by != "" && by != stranger && !copied || p.Name == "kube-root-ca.crt" || p.Resource == "serviceaccounts" {
			continue
		}
		w.note("%s deletes %s %s/%s", person, p.Resource, p.Namespace, p.Name)
		_, _ = w.server.Delete(person, w.server.KindAt(p), p, metav1.DeleteOptions{}, false)
	}
}

func (w *World) edit(k apiserver.Kind, live *unstructured.Unstructured, change func(*unstructured.Unstructured)) {
	u := live.DeepCopy()
	change(u)
	_, _ = w.server.Put(person, "update", "kubectl-edit", k, live, u, false)
}
