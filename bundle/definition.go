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
	if u == nil || u.GroupVersionKind().GroupKind() != CRDKind {
		return Definition{}, false
	}
	spec, _ := u.Object["spec"].(map[string]any)
	names, _ := spec["names"].(map[string]any)
	d := Definition{Namespaced: spec["scope"] != "Cluster"}
	d.Kind.Group, _ = spec["group"].(string)
	d.Kind.Kind, _ = names["kind"].(string)
	d.Plural, _ = names["plural"].(string)
	versions, _ := spec["versions"].([]any)
	for _, v := range versions {
		version, _ := v.(map[string]any)
		name, _ := version["name"].(string)
		d.Versions = append(d.Versions, DefinedVersion{Name: name, Served: version["served"] == true, Storage: version["storage"] == true})
	}
	if version, _ := spec["version"].(string); version != "" && len(versions) == 0 { // v1beta1
		d.Versions = []DefinedVersion{{Name: version, Served: true, Storage: true}}
	}
	return d, true
}

// ReadyColumn says whether kubectl prints a condition Ready of the defined kind.
func ReadyColumn(crd *unstructured.Unstructured) bool {
	spec, _ := crd.Object["spec"].(map[string]any)
	versions, _ := spec["versions"].([]any)
	for _, v := range versions {
		version, _ := v.(map[string]any)
		columns, _ := version["additionalPrinterColumns"].([]any)
		for _, c := range columns {
			column, _ := c.(map[string]any)
			path, _ := column["jsonPath"].(string)
			path = strings.NewReplacer("'", "", `"`, "", " ", "").Replace(path)
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
	var names []string
	for _, v := range d.Versions {
		if v.Served {
			names = append(names, v.Name)
		}
	}
	return names
}
