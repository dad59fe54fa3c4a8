package bundle

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Definition is what a CustomResourceDefinition defines. A field that the CRD
// does not have, or has with another type, is empty: the server refuses such a CRD.
type Definition struct {
	Kind       schema.GroupKind
	Plural     string
	Namespaced bool
	Versions   []DefinedVersion // in the order of the CRD
}

// DefinedVersion is one version of a defined kind.
type DefinedVersion struct {
	Name            string
	Served, Storage bool
}

// DefinitionOf reads a CustomResourceDefinition. It returns false for objects of
// other kinds.
func DefinitionOf(u *unstructured.Unstructured) (Definition, bool) {
	if u == nil || u.GetKind() != CRDKind.Kind || u.GroupVersionKind().GroupKind() != CRDKind {
		return Definition{}, false
	}
	spec := At[map[string]any](u.Object, "spec")
	d := Definition{
		Kind:   schema.GroupKind{Group: At[string](spec, "group"), Kind: At[string](spec, "names", "kind")},
		Plural: At[string](spec, "names", "plural"), Namespaced: spec["scope"] != "Cluster",
	}
	for _, v := range At[[]any](spec, "versions") {
		version, _ := v.(map[string]any)
		d.Versions = append(d.Versions, DefinedVersion{Name: At[string](version, "name"), Served: version["served"] == true, Storage: version["storage"] == true})
	}
	if version := At[string](spec, "version"); version != "" && len(d.Versions) == 0 { // v1beta1
		d.Versions = []DefinedVersion{{Name: version, Served: true, Storage: true}}
	}
	return d, true
}

// ReadyColumn says whether kubectl prints a condition Ready of the defined kind.
func ReadyColumn(crd *unstructured.Unstructured) bool {
	for _, version := range Items[map[string]any](crd.Object, "spec", "versions") {
		for _, column := range Items[map[string]any](version, "additionalPrinterColumns") {
			path := strings.NewReplacer("'", "", `"`, "", " ", "").Replace(At[string](column, "jsonPath"))
			if strings.HasPrefix(path, ".status.conditions[?(@.type==Ready)]") {
				return true
			}
		}
	}
	return false
}

// Resource is the defined kind as the API server's paths and rights name it.
func (d Definition) Resource() schema.GroupResource {
	return schema.GroupResource{Group: d.Kind.Group, Resource: d.Plural}
}

// Served are the names of the versions that are served.
func (d Definition) Served() []string {
	served := Where(d.Versions, func(v DefinedVersion) bool { return v.Served })
	return Each(served, func(v DefinedVersion) string { return v.Name })
}
