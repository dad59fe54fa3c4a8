package validate

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Dropped are the fields of a live object that the schema of a version does not have:
// rewritten in that version, the object would lose them.
func (c *CRDs) Dropped(live *unstructured.Unstructured, version string) ([]string, error) {
	gvk := live.GroupVersionKind()
	if !c.Has(gvk.GroupKind()) {
		return nil, fmt.Errorf("the bundle has no CRD of %s", gvk.GroupKind())
	}
	d := c.byKind[gvk.GroupKind()]
	if d.find(version) == nil {
		return nil, fmt.Errorf("the CRD %s has no version %s", d.v1.Name, version)
	}
	v, err := d.version(version)
	if err != nil {
		return nil, err
	}
	u, err := copied(live)
	if err != nil {
		return nil, fmt.Errorf("read the live object: %w", err)
	}
	u.SetAPIVersion(gvk.Group + "/" + version)
	return v.coerce(u, d.v1.Spec.PreserveUnknownFields, false)
}
