package rights

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/cli-utils/pkg/object/mutation"

	"brine/bundle"
)

// Uses are what a run does with the objects of a resolved bundle, without a
// server: kinds of the bundle's CRDs are called what these say, all others what
// Kubernetes' rule for plurals makes of them. others are objects that are read,
// and are not in the bundle.
func Uses(b *bundle.Bundle, others []bundle.ID, readOnly bool) []Use {
	verbs := Applying
	if readOnly {
		verbs = Reading
	}
	plurals := plurals(b)
	resource := func(gvk schema.GroupVersionKind) schema.GroupResource {
		if r, ok := plurals[gvk.GroupKind()]; ok {
			return r
		}
		r, _ := meta.UnsafeGuessKindToResource(gvk)
		return r.GroupResource()
	}
	var uses []Use
	for _, o := range b.Objects {
		uses = append(uses, Use{ID: o.ID, Resource: resource(o.GVK), Content: o.Content, Verbs: verbs})
		others = append(others, sources(o)...)
		if param, has := paramKind(o); has && !readOnly {
			uses = append(uses, Use{ID: bundle.ID{GroupKind: param.GroupKind()}, Resource: resource(param), Verbs: []string{"get", "list"}})
		}
	}
	for _, a := range b.Absent {
		uses = append(uses, Use{ID: a.ID, Resource: resource(a.GVK), Verbs: slices.DeleteFunc(slices.Clone(verbs), func(v string) bool { return v == "create" || v == "patch" })})
	}
	for _, id := range others {
		uses = append(uses, Use{ID: id, Resource: resource(id.GroupKind.WithVersion("v1")), Verbs: []string{"get"}})
	}
	return uses
}

// paramKind is the kind of an admission policy's parameters: who writes the policy, or its binding,
// has to be able to read all of them (registry/admissionregistration, authz.go).
func paramKind(o *bundle.Object) (param schema.GroupVersionKind, has bool) {
	policies := []string{"ValidatingAdmissionPolicy", "MutatingAdmissionPolicy"}
	kind := bundle.At[map[string]any](o.Content.Object, "spec", "paramKind")
	if o.GVK.Group != "admissionregistration.k8s.io" || !slices.Contains(policies, o.GVK.Kind) || kind == nil {
		return param, false
	}
	return schema.FromAPIVersionAndKind(bundle.At[string](kind, "apiVersion"), bundle.At[string](kind, "kind")), true
}

// plurals are the resources that the bundle's CRDs define.
func plurals(b *bundle.Bundle) map[schema.GroupKind]schema.GroupResource {
	names := map[schema.GroupKind]schema.GroupResource{}
	for _, o := range b.Objects {
		if d, ok := bundle.DefinitionOf(o.Content); ok {
			names[d.Kind] = d.Resource()
		}
	}
	return names
}

// sources are the objects that apply-time mutations take values from.
func sources(o *bundle.Object) []bundle.ID {
	if !mutation.HasAnnotation(o.Content) {
		return nil
	}
	subs, err := mutation.ReadAnnotation(o.Content)
	if err != nil {
		return nil
	}
	var ids []bundle.ID
	for _, s := range subs {
		id := s.SourceRef.ToObjMetadata()
		if id.Namespace == "" {
			id.Namespace = o.ID.Namespace
		}
		ids = append(ids, id)
	}
	return ids
}

// Unknown are kinds whose resource's name was guessed though Kubernetes itself
// does not serve them: its API group says so. others are read only.
func Unknown(b *bundle.Bundle, others []bundle.ID, builtIn func(schema.GroupVersionKind) bool) []schema.GroupKind {
	defined := plurals(b)
	var unknown []schema.GroupKind
	add := func(gk schema.GroupKind, known bool) {
		if _, ok := defined[gk]; !ok && !known && !slices.Contains(unknown, gk) {
			unknown = append(unknown, gk)
		}
	}
	for _, o := range b.Objects {
		add(o.ID.GroupKind, builtIn(o.GVK))
	}
	for _, id := range others {
		add(id.GroupKind, bundle.IsBuiltIn(id.GroupKind.Group))
	}
	return unknown
}
