// Package validate predicts, without a server, why the API server would refuse an
// object, and what it would store: objects in, problems and stored objects out. It
// uses the server's own library and the CustomResourceDefinitions of the bundle for
// custom resources, Kubernetes' Go types and published OpenAPI for everything else.
package validate

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"

	"brine/bundle"
)

// crdScheme has the server's defaults and conversions of CRDs.
var crdScheme = sync.OnceValue(func() *kruntime.Scheme {
	s := kruntime.NewScheme()
	install.Install(s)
	return s
})

// CRDs are the CustomResourceDefinitions of a bundle, ready to check custom
// resources against. It may be used by many goroutines at once.
type CRDs struct {
	byKind map[schema.GroupKind]*crd
}

// Compile takes the CustomResourceDefinitions out of a bundle's objects.
// Problems are what the server would refuse a new CRD for, CEL rules that do
// not compile or cost too much included. A CRD with problems still defines its
// kind: Check then reports that the CRD has to be corrected first.
func Compile(objs []*bundle.Object) (*CRDs, []bundle.Problem) {
	defs := bundle.Where(objs, func(o *bundle.Object) bool { return o.GVK.GroupKind() == bundle.CRDKind })
	crds := make([]*crd, len(defs))
	problems := make([][]bundle.Problem, len(defs))
	bundle.Parallel(len(defs), func(i int) { crds[i], problems[i] = compile(defs[i]) })

	c := &CRDs{byKind: map[schema.GroupKind]*crd{}}
	for _, d := range crds {
		if d != nil && c.byKind[d.kind] == nil {
			c.byKind[d.kind] = d
		}
	}
	return c, slices.Concat(problems...)
}

// Has reports whether a CRD of the bundle defines the kind.
func (c *CRDs) Has(gk schema.GroupKind) bool {
	return c != nil && c.byKind[gk] != nil
}

// Sound reports whether a CRD of the bundle defines the kind, and nothing is wrong
// with that CRD itself.
func (c *CRDs) Sound(gk schema.GroupKind) bool {
	return c.Has(gk) && !c.byKind[gk].broken
}

// Unverified is "conversion webhook" where Check cannot find all that the server
// would, because a webhook converts between the versions of the kind: written
// in another version than the stored one, or live in another than it is written
// in. Otherwise it is "". live may be nil.
func (c *CRDs) Unverified(gvk schema.GroupVersionKind, live *unstructured.Unstructured) string {
	if !c.Has(gvk.GroupKind()) || !c.byKind[gvk.GroupKind()].webhook() {
		return ""
	}
	if gvk.Version != c.byKind[gvk.GroupKind()].storage() || !sameVersion(gvk, live) {
		return "conversion webhook"
	}
	return ""
}

// sameVersion reports whether a live object and all of its managed fields are in
// the version of gvk.
func sameVersion(gvk schema.GroupVersionKind, live *unstructured.Unstructured) bool {
	if live == nil {
		return true
	}
	want := gvk.GroupVersion().String()
	return live.GetAPIVersion() == want && !slices.ContainsFunc(live.GetManagedFields(), func(m metav1.ManagedFieldsEntry) bool { return m.APIVersion != want })
}

// Warning is the server's when it gets an object in a version that the CRD
// calls deprecated, or "".
func (c *CRDs) Warning(gvk schema.GroupVersionKind) string {
	if !c.Has(gvk.GroupKind()) {
		return ""
	}
	d := c.byKind[gvk.GroupKind()]
	v := d.find(gvk.Version)
	if v == nil || !v.Deprecated {
		return ""
	}
	if v.DeprecationWarning != nil {
		return *v.DeprecationWarning
	}
	message := fmt.Sprintf("%s/%s %s is deprecated", gvk.Group, gvk.Version, gvk.Kind)
	for _, other := range d.served(false) {
		if version.CompareKubeAwareVersionStrings(gvk.Version, other) < 0 {
			return message + fmt.Sprintf("; use %s/%s %s", gvk.Group, other, gvk.Kind)
		}
	}
	return message
}

// compile reads one CRD; the schemas of its versions are compiled when they are
// used. It is nil where not even the kind can be read.
func compile(o *bundle.Object) (*crd, []bundle.Problem) {
	if o.GVK.Version != "v1" {
		return nil, []bundle.Problem{o.Problem("apiVersion", fmt.Sprintf("no supported Kubernetes serves %s; write apiextensions.k8s.io/v1", o.GVK.GroupVersion()))}
	}
	d := &crd{object: o, v1: &apiextensionsv1.CustomResourceDefinition{}}
	if err := kruntime.DefaultUnstructuredConverter.FromUnstructured(o.Content.Object, d.v1); err != nil {
		return nil, []bundle.Problem{o.Problem("", "read as a CustomResourceDefinition: "+err.Error())}
	}
	crdScheme().Default(d.v1)
	// What the server does before it validates a new one.
	d.v1.Status = apiextensionsv1.CustomResourceDefinitionStatus{StoredVersions: []string{}}
	if s := d.storage(); s != "" {
		d.v1.Status.StoredVersions = append(d.v1.Status.StoredVersions, s)
	}
	d.kind = schema.GroupKind{Group: d.v1.Spec.Group, Kind: d.v1.Spec.Names.Kind}
	d.versions = map[string]*compiled{}
	for _, v := range d.v1.Spec.Versions {
		d.versions[v.Name] = &compiled{}
	}

	internal := &apiextensions.CustomResourceDefinition{}
	if err := crdScheme().Convert(d.v1, internal, nil); err != nil {
		d.broken = true
		return d, []bundle.Problem{o.Problem("", "read as a CustomResourceDefinition: "+err.Error())}
	}
	var problems []bundle.Problem
	for _, err := range crdvalidation.ValidateCustomResourceDefinition(context.Background(), internal) {
		if len(problems) > 0 && strings.HasPrefix(err.Field, "status.") {
			continue // follows from what is wrong with the versions
		}
		err.Field = versioned(err.Field)
		problems = append(problems, fieldProblem(o, err))
	}
	d.broken = len(problems) > 0
	return d, problems
}

// versioned is the path in v1 of a field that the server's internal form keeps
// at the top where all versions have the same.
func versioned(path string) string {
	for internal, v1 := range map[string]string{
		"spec.validation":               "spec.versions[0].schema",
		"spec.subresources":             "spec.versions[0].subresources",
		"spec.additionalPrinterColumns": "spec.versions[0].additionalPrinterColumns",
		"spec.selectableFields":         "spec.versions[0].selectableFields",
	} {
		if rest, ok := strings.CutPrefix(path, internal); ok {
			return v1 + rest
		}
	}
	return path
}

// served lists the versions that are served, the best first.
func (d *crd) served(deprecatedToo bool) []string {
	names := bundle.Each(bundle.Where(d.v1.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
		return v.Served && (deprecatedToo || !v.Deprecated)
	}), func(v apiextensionsv1.CustomResourceDefinitionVersion) string { return v.Name })
	slices.SortFunc(names, func(a, b string) int { return version.CompareKubeAwareVersionStrings(b, a) })
	return names
}

// notServed says why an object cannot be written in its version, or "".
func (d *crd) notServed(gvk schema.GroupVersionKind) string {
	if v := d.find(gvk.Version); v != nil && v.Served {
		return ""
	}
	names := d.served(true)
	if len(names) == 0 {
		return fmt.Sprintf("the CRD %s (%s) serves no version", d.v1.Name, d.object.Source)
	}
	return fmt.Sprintf("the CRD %s (%s) does not serve %s, only %s; write apiVersion: %s/%s",
		d.v1.Name, d.object.Source, gvk.Version, strings.Join(names, ", "), gvk.Group, names[0])
}
