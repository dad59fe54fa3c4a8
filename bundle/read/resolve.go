package read

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/kustomize/kyaml/openapi"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"brine/bundle"
	"brine/bundle/remedy"
)

// Whether a kind is namespaced decides over namespaces, and so over the identities of objects.

// Scope is whether a kind's objects are in namespaces.
type Scope int

// The scopes.
const (
	ScopeUnknown Scope = iota // the kind is not served
	ScopeNamespaced
	ScopeCluster
	ScopeLater // may be served later in this run: cannot be known yet
)

// Resolver is what Resolve needs to know beyond the bundle.
type Resolver struct {
	// Namespace is for namespaced objects that name none; "default" if empty.
	Namespace string
	// Scope asks discovery. Without a server it is nil, and kyaml's table of
	// built-in kinds is asked.
	Scope func(schema.GroupVersionKind) Scope
	// Versions are those in which the server serves a kind: another one may be meant, and what
	// is to be absent is found in any. It may be nil.
	Versions func(schema.GroupKind) []string
	// Strict makes a kind that is not served a problem. Otherwise it is a warning,
	// and such an object keeps the namespace it is written with.
	Strict bool
	// Quiet: kinds that are not served are no warnings either; the caller reports them.
	Quiet bool
}

// Resolve settles namespaces and so identities. CRDs in the bundle speak
// first, then its APIServices (what they will serve is ScopeLater), then r. It
// drops the namespace of cluster-scoped objects with one warning, makes one of
// identical documents, turns Salt's requisites into IDs and computes Digest.
// The error is Problems. It may be called again with a resolver that knows more.
func Resolve(b *bundle.Bundle, r Resolver) error {
	s := scopes{Resolver: r, crds: map[schema.GroupKind]bundle.Definition{}, later: map[schema.GroupVersion]bool{}}
	for _, o := range b.Objects {
		s.learn(o)
	}
	var problems, unknown bundle.Problems
	for _, o := range b.Objects {
		scope, odd := s.of(o.GVK)
		if odd != "" && !r.Quiet {
			p := bundle.Problem{Source: o.Source, ID: o.ID, Message: odd}
			if r.Strict {
				problems = append(problems, p)
			} else {
				unknown = append(unknown, p)
			}
		}
		o.Unplaced = o.Unplaced || scope == ScopeNamespaced && o.ID.Namespace == ""
		if s.setNamespace(&o.ID, o.Source, scope); o.Content.GetNamespace() != o.ID.Namespace {
			o.Content.SetNamespace(o.ID.Namespace) // "" removes it
		}
	}
	for _, a := range b.Absent {
		scope := s.ofAny(a.GVK)
		a.Unplaced = a.Unplaced || scope == ScopeNamespaced && a.ID.Namespace == ""
		s.setNamespace(&a.ID, a.Source, scope)
	}
	b.WarnOnce(unknown)
	if s.dropped > 0 {
		b.Warn(bundle.Problem{Source: s.first, Message: fmt.Sprintf("%s had a namespace in the bundle, which is ignored (this is the first)", bundle.Count(s.dropped, "cluster-scoped object"))})
	}
	problems = append(problems, mergeDuplicates(b)...)
	wrong, odd := annotations(b)
	problems = append(problems, wrong...)
	b.WarnOnce(append(odd, leftovers(b)...))
	requisites(b)
	b.Digest = b.ContentDigest()
	return problems.Err()
}

type scopes struct {
	Resolver
	crds    map[schema.GroupKind]bundle.Definition
	later   map[schema.GroupVersion]bool
	dropped int
	first   bundle.Source // of a cluster-scoped object with a namespace
}

// learn takes note of a CRD or an APIService.
func (s *scopes) learn(o *bundle.Object) {
	if d, ok := bundle.DefinitionOf(o.Content); ok {
		s.crds[d.Kind] = d
	}
	if content := o.Content.Object; o.ID.GroupKind == bundle.APIServiceKind {
		// One without a service is served by the API server itself, now.
		if bundle.At[any](content, "spec", "service") != nil {
			s.later[schema.GroupVersion{Group: bundle.At[string](content, "spec", "group"), Version: bundle.At[string](content, "spec", "version")}] = true
		}
	}
}

// of is a kind's scope, and a warning where the kind is unknown.
func (s *scopes) of(gvk schema.GroupVersionKind) (Scope, string) {
	if d, ok := s.crds[gvk.GroupKind()]; ok {
		scope := ScopeCluster
		if d.Namespaced {
			scope = ScopeNamespaced
		}
		if served := d.Served(); !slices.Contains(served, gvk.Version) {
			return scope, fmt.Sprintf("version %s is not one that the CustomResourceDefinition in this bundle serves (%v)", gvk.Version, served)
		}
		return scope, ""
	}
	if s.later[gvk.GroupVersion()] {
		return ScopeLater, ""
	}
	ask := s.Scope
	if ask == nil {
		ask = builtIn
	}
	scope := ask(gvk)
	if scope != ScopeUnknown {
		return scope, ""
	}
	odd := fmt.Sprintf("unknown kind %s in %s: no CustomResourceDefinition in the bundle defines it", gvk.Kind, gvk.GroupVersion())
	if s.Scope != nil {
		odd += ", and the server does not serve it"
	}
	if versions := s.versions(gvk.GroupKind()); len(versions) > 0 {
		odd += " (the server serves it as " + strings.Join(bundle.Each(versions, func(v string) string { return schema.GroupVersion{Group: gvk.Group, Version: v}.String() }), ", ") + ")"
	}
	if s.Scope != nil {
		odd += " (see " + remedy.HelpUnknownKind + ")"
	}
	return ScopeUnknown, odd
}

func (s *scopes) versions(gk schema.GroupKind) []string {
	if s.Versions == nil {
		return nil
	}
	return s.Versions(gk)
}

// ofAny is the scope of a kind in whatever version is served: one that was is as good to name
// what is to be absent. A kind that is served in none has no objects.
func (s *scopes) ofAny(gvk schema.GroupVersionKind) Scope {
	scope, _ := s.of(gvk)
	if versions := s.versions(gvk.GroupKind()); len(versions) > 0 && (scope == ScopeUnknown || scope == ScopeLater) {
		scope, _ = s.of(gvk.GroupKind().WithVersion(versions[0]))
	}
	return scope
}

// builtIn asks kyaml's table, for other versions of the kind too: a scope never
// changed from one version to the next.
func builtIn(gvk schema.GroupVersionKind) Scope {
	for _, version := range []string{gvk.Version, "v1", "v2", "v1beta1", "v1beta2", "v1alpha1"} {
		apiVersion := schema.GroupVersion{Group: gvk.Group, Version: version}.String()
		namespaced, known := openapi.IsNamespaceScoped(yaml.TypeMeta{APIVersion: apiVersion, Kind: gvk.Kind})
		switch {
		case known && namespaced:
			return ScopeNamespaced
		case known:
			return ScopeCluster
		}
	}
	return ScopeUnknown
}

// setNamespace gives id the namespace that its scope asks for.
func (s *scopes) setNamespace(id *bundle.ID, source bundle.Source, scope Scope) {
	switch {
	case scope == ScopeCluster && id.Namespace != "":
		id.Namespace = ""
		if s.dropped++; s.dropped == 1 {
			s.first = source
		}
	case scope == ScopeNamespaced && id.Namespace == "":
		id.Namespace = cmp.Or(s.Namespace, metav1.NamespaceDefault)
	}
}

// mergeDuplicates finds objects that are in the bundle twice: identical documents become one
// object, different ones are a problem.
func mergeDuplicates(b *bundle.Bundle) bundle.Problems {
	var problems bundle.Problems
	first := make(map[bundle.ID]*bundle.Object, len(b.Objects))
	kept := b.Objects[:0:0]
	instead := map[*bundle.Object]*bundle.Object{}
	for _, o := range b.Objects {
		other, twice := first[o.ID]
		switch {
		case !twice || o.ID.Name == "": // of generateName there may be several
			first[o.ID] = o
			kept = append(kept, o)
		case reflect.DeepEqual(o.Content.Object, other.Content.Object):
			instead[o] = other
			other.Requisites = append(other.Requisites, o.Requisites...)
			b.Warn(bundle.Problem{Source: o.Source, ID: o.ID, Message: fmt.Sprintf("the same document is also at %s: it is applied once", other.Source)})
		default:
			problems = append(problems, bundle.Problem{Source: o.Source, ID: o.ID, Message: fmt.Sprintf("a different document for the same object is at %s: keep one of them", other.Source)})
		}
	}
	for _, a := range b.Absent {
		if o, ok := first[a.ID]; ok {
			problems = append(problems, bundle.Problem{Source: a.Source, ID: a.ID, Message: fmt.Sprintf("the object is to be absent here and present at %s: keep one of them", o.Source)})
		}
	}
	for _, o := range b.Objects {
		for i, r := range o.Requisites {
			if other, ok := instead[r.Object]; ok {
				o.Requisites[i].Object = other
			}
		}
	}
	b.Objects = kept
	return problems
}

// requisites gives Salt's requisites the identities that are settled now.
func requisites(b *bundle.Bundle) {
	for _, o := range b.Objects {
		var settled []bundle.Requisite
		for _, r := range o.Requisites {
			if r.Object != nil {
				r.On = r.Object.ID
			}
			same := func(other bundle.Requisite) bool { return other.On == r.On && other.Reason == r.Reason }
			if r.Object != o && !slices.ContainsFunc(settled, same) {
				settled = append(settled, r)
			}
		}
		o.Requisites = settled
	}
}
