package simulator

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/scripts/simulator/apiserver"
)

// CRDs with more than one version, of which others are served and stored from bundle to bundle.

// crdVersions are the versions of a CRD: "*" is stored, "-" is not served.
var crdVersions = [][]string{{"v1*"}, {"v1*", "v2"}, {"v1", "v2*"}, {"v1-", "v2*"}, {"v2*"}, {"v2*", "v3"}, {"v2", "v3*"}, {"v3*"}}

// changeVersions: bundles have a CRD in one of a few states, mostly near the one before.
func changeVersions(r *rand.Rand) func(*rand.Rand, *scene) {
	at, migrates := r.IntN(len(crdVersions)), r.IntN(4)
	return func(r *rand.Rand, one *scene) {
		s := &one.step
		if s.isAdministrative() || s.carriesOut {
			return
		}
		if s.command == "apply" && !s.secret && r.IntN(3) > 0 && !strings.Contains(s.text, "kind: Widget\n") {
			s.text, s.options.skipInvalid = with(r, "kind: Widget\n"), false
		}
		if r.IntN(2) == 0 {
			at = min(max(at-2+r.IntN(6), 0), len(crdVersions)-1)
		}
		s.text = versioned(r, s.text, crdVersions[at], migrates > 1)
		if migrates == 1 && !s.secret {
			s.options.migrate = true
		}
		if one.too != nil {
			one.too.text = versioned(r, one.too.text, crdVersions[r.IntN(len(crdVersions))], migrates > 1)
		}
	}
}

var oneVersion = regexp.MustCompile(`metadata: \{name: (widgets\.\S+)\}([^§]*?)  versions:\n  - name: v1\n    served: true\n    storage: true\n    schema: (\{openAPIV3Schema: .*\})\n`)

// versioned gives the CRD of a bundle its versions, and its resource one that is served.
func versioned(r *rand.Rand, text string, versions []string, migrates bool) string {
	var b strings.Builder
	var served []string
	annotations := ""
	if migrates {
		annotations = ", annotations: {brine.dev/on-stored-version: migrate}"
	}
	for _, v := range versions {
		name := strings.TrimRight(v, "*-")
		if !strings.HasSuffix(v, "-") {
			served = append(served, name)
		}
		fmt.Fprintf(&b, "  - name: %s\n    served: %t\n    storage: %t\n    schema: $3\n", name, !strings.HasSuffix(v, "-"), strings.HasSuffix(v, "*"))
	}
	text = oneVersion.ReplaceAllString(text, "metadata: {name: $1"+annotations+"}${2}  versions:\n"+strings.ReplaceAll(b.String(), "$3", "${3}"))
	return strings.ReplaceAll(text, ".example.com/v1\nkind: Widget\n", ".example.com/"+served[r.IntN(len(served))]+"\nkind: Widget\n")
}

// isRewritten says whether a write only has an object stored, and its fields owned, in another version.
func isRewritten(w *apiserver.Write) bool {
	return w.Kind.Kind == "Widget" && w.Before != nil && w.After != nil && (w.Verb == "update" || w.Verb == "patch" && apiserver.Same(fieldSets(w.Before), fieldSets(w.After))) &&
		isDefaulted(w.Before.Object["spec"], w.After.Object["spec"]) && apiserver.Same(w.Before.GetLabels(), w.After.GetLabels()) && apiserver.Same(w.Before.GetAnnotations(), w.After.GetAnnotations())
}

// isDefaulted says whether after is before, but for the default that a schema has by now.
func isDefaulted(before, after any) bool {
	spec, ok := before.(map[string]any)
	if _, set := spec["mode"]; ok && !set {
		spec = maps.Clone(spec)
		if spec["mode"] = "a"; apiserver.Same(spec, after) {
			return true
		}
	}
	return apiserver.Same(before, after)
}

// fieldSets are the fields that managers own, in whatever version.
func fieldSets(u *unstructured.Unstructured) map[string]any {
	all := map[string]any{}
	for _, entry := range u.GetManagedFields() {
		all[fmt.Sprint(entry.Manager, entry.Operation, entry.Subresource)] = entry.FieldsV1.GetRawString()
	}
	return all
}

// canBeRead: no object is stored in a version that its CRD does not name, or does not list among
// those in which objects may be stored.
func (o *oracle) canBeRead() (wrong []string) {
	state := map[bundle.ID]*unstructured.Unstructured{}
	for i, w := range o.server.Log[:o.d.to] {
		id := bundle.ID{GroupKind: w.Kind, Namespace: w.Namespace, Name: w.Name}
		if state[id] = w.After; w.After == nil {
			delete(state, id)
		}
		if i < o.d.from || w.Actor != o.d.actor || w.Kind != bundle.CRDKind || w.After == nil || w.After.GetDeletionTimestamp() != nil {
			continue
		}
		d, _ := bundle.DefinitionOf(w.After)
		listed, _, _ := unstructured.NestedStringSlice(w.After.Object, "status", "storedVersions")
		for other, u := range state {
			version := u.GroupVersionKind().Version
			if other.GroupKind != d.Kind {
				continue
			}
			if !slices.Contains(listed, version) || !slices.ContainsFunc(d.Versions, func(v bundle.DefinedVersion) bool { return v.Name == version }) {
				wrong = append(wrong, fmt.Sprintf("%s is stored in %s, of which the CRD says %v: %s", bundle.Name(other), version, listed, w))
			}
		}
	}
	return wrong
}
