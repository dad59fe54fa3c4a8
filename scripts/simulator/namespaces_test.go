package simulator

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
)

// The namespace of objects that a bundle does not place: that of the kubeconfig, which differs
// from machine to machine, or one that --namespace names.

// unplaced is a document without a namespace.
const unplaced = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: unplaced}\ndata: {value: %q}\n"

// misplace: bundles have what names no namespace, and kubeconfigs have different ones.
func misplace(*rand.Rand) func(*rand.Rand, *scene) {
	return func(r *rand.Rand, one *scene) {
		s := &one.step
		if s.command != "apply" && s.command != "preview" || s.secret || s.saves || s.carriesOut || len(s.only) > 0 {
			return
		}
		if r.IntN(4) > 0 {
			s.text += fmt.Sprintf(unplaced, fmt.Sprint(r.IntN(2)))
		}
		s.options.namespace, s.options.named = []string{"", "", "app", "kube-system"}[r.IntN(4)], r.IntN(4) == 0
	}
}

// hasUnplaced says whether a bundle has what names no namespace.
func (s *step) hasUnplaced() bool { return strings.Contains(s.text, "{name: unplaced}") }

// namespaceIsNamed: nothing goes because a kubeconfig has another namespace than that of the last
// apply: what moves, moves only to a namespace that the user names.
func (o *oracle) namespaceIsNamed() (wrong []string) {
	if !o.alone || o.d.command != "apply" || !o.d.hasUnplaced() || o.d.options.named || o.goesBack() {
		return nil
	}
	stored := map[string]*unstructured.Unstructured{}
	for _, w := range o.server.Log[:o.d.from] {
		if w.Kind == bundle.ConfigMapKind && w.Namespace == home {
			stored[w.Name] = w.After
		}
	}
	was := members(stored, o.d.inventory)
	for _, w := range o.own() {
		there := bundle.ID{GroupKind: bundle.ConfigMapKind, Namespace: o.d.options.placed(), Name: "unplaced"}
		if w.Verb == "delete" && w.Kind == bundle.ConfigMapKind && w.Name == there.Name && w.Namespace != there.Namespace && !was[there] {
			wrong = append(wrong, "the kubeconfig has namespace "+there.Namespace+": "+w.String())
		}
	}
	return wrong
}

// placed is the namespace of what a bundle does not place.
func (s options) placed() string {
	if s.namespace == "" {
		return "default"
	}
	return s.namespace
}
