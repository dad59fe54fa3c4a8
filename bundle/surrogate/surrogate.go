// Package surrogate moves an object to an existing namespace, so that a dry run is
// possible before its own namespace exists, and the server's answer back: JSON and
// objects in, JSON and objects out.
package surrogate

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"

	"brine/bundle"
)

// Place is where an object is dry-run instead of where it will be.
type Place struct {
	Namespace string
	Name      string
	// Account is the ServiceAccount that the pod names and that does not exist yet:
	// the dry run uses another one. It is "" where that is not needed.
	Account string
}

// defaultAccount is in every namespace.
const defaultAccount = "default"

// New is a place for id in namespace. Where that already has an object of the
// name (clash), the object gets another one: a dry run of an apply would be one
// on that object.
func New(id bundle.ID, namespace string, clash bool) Place {
	p := Place{Namespace: namespace, Name: id.Name}
	if clash {
		p.Name = OtherName(id)
	}
	return p
}

// OtherName is a name for id that no object has: as valid as the real one, and
// never longer than the shortest limit if that is not.
func OtherName(id bundle.ID) string {
	sum := sha256.Sum256([]byte("brine surrogate " + id.String()))
	mark := "x" + hex.EncodeToString(sum[:4])
	const shortest = 52 // a CronJob's
	if len(id.Name)+1+len(mark) <= shortest {
		return id.Name + "-" + mark
	}
	if len(id.Name) <= len(mark) {
		return mark
	}
	return id.Name[:len(id.Name)-len(mark)] + mark
}

// Move is body, an object as JSON, in its place. Only where it is and what it is
// called changes: what it refers to stays, so the answer needs no translation.
func (p *Place) Move(body []byte, newAccount func(namespace, name string) bool) ([]byte, error) {
	var object map[string]any
	if err := json.Unmarshal(body, &object); err != nil {
		return nil, fmt.Errorf("decode what is to be applied: %w", err)
	}
	u := &unstructured.Unstructured{Object: object}
	if account := bundle.At[string](object, "spec", "serviceAccountName"); u.GetKind() == "Pod" && u.GetAPIVersion() == "v1" && account != "" && account != defaultAccount && newAccount(u.GetNamespace(), account) {
		p.Account = account
		if err := unstructured.SetNestedField(object, defaultAccount, "spec", "serviceAccountName"); err != nil {
			return nil, fmt.Errorf("use a surrogate for its ServiceAccount: %w", err)
		}
	}
	u.SetNamespace(p.Namespace)
	u.SetName(p.Name)
	return json.Marshal(object)
}

// MoveBack is the server's answer as it will be: in id's namespace and under its
// name, with all that the server derived from either. sent is the object of the
// bundle: its own values are not changed.
func (p *Place) MoveBack(answer, sent *unstructured.Unstructured, id bundle.ID) *unstructured.Unstructured {
	w := walk{place: p, id: id}
	object, _ := w.value("", answer.Object, sent.Object).(map[string]any)
	u := &unstructured.Unstructured{Object: object}
	u.SetName(id.Name)
	u.SetNamespace(id.Namespace)
	if p.Account != "" {
		_ = unstructured.SetNestedField(object, p.Account, "spec", "serviceAccountName")
		if _, ok, _ := unstructured.NestedString(object, "spec", "serviceAccount"); ok {
			_ = unstructured.SetNestedField(object, p.Account, "spec", "serviceAccount")
		}
	}
	return u
}

// Message is a server's message about the object in its place, as one about id.
func (p *Place) Message(message string, id bundle.ID) string {
	if p.Name != id.Name {
		message = strings.ReplaceAll(message, p.Name, id.Name)
	}
	if p.Namespace != id.Namespace {
		message = strings.ReplaceAll(message, fmt.Sprintf("namespace %q", p.Namespace), fmt.Sprintf("namespace %q", id.Namespace))
	}
	return message
}

type walk struct {
	place *Place
	id    bundle.ID
}

func (w *walk) value(key string, v, sent any) any {
	switch v := v.(type) {
	case map[string]any:
		wanted, _ := sent.(map[string]any)
		out := make(map[string]any, len(v))
		for k, below := range v {
			out[w.text("", k, nil)] = w.value(k, below, wanted[k])
		}
		return out
	case []any:
		wanted, _ := sent.([]any)
		out := make([]any, len(v))
		for i, below := range v {
			var same any
			if i < len(wanted) {
				same = wanted[i]
			}
			out[i] = w.value(key, below, same)
		}
		return out
	case string:
		return w.text(key, v, sent)
	}
	return v
}

// text translates one string. A changed name cannot belong to another object; the namespace's may be any word, so it counts only where the
// server wrote it into a field that names a namespace.
func (w *walk) text(key, v string, sent any) string {
	if v == sent {
		return v
	}
	if w.place.Name != w.id.Name {
		v = strings.ReplaceAll(v, w.place.Name, w.id.Name)
	}
	if w.place.Namespace == w.id.Namespace {
		return v
	}
	if v == w.place.Namespace && (key == "namespace" || key == "NAMESPACE") {
		return w.id.Namespace
	}
	return strings.ReplaceAll(v, "."+w.place.Namespace+".svc", "."+w.id.Namespace+".svc")
}
