package validate

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Dropped are the fields of a live object that the schema of a version does not have:
// rewritten in that version, the object would lose them.
func (c *CRDs) Dropped(live *unstructured.Unstructured, version string) ([]string, error) {
	_, _, _, lost, err := c.inVersion(live, version)
	return lost, err
}

// inVersion is a live object as it would be read in a version of its CRD, without the
// fields that it would lose. Without a version, it is the object's own, or the stored one
// where there is no such version any more.
func (c *CRDs) inVersion(live *unstructured.Unstructured, version string) (d *crd, v *compiled, u *unstructured.Unstructured, lost []string, err error) {
	gvk := live.GroupVersionKind()
	if !c.Has(gvk.GroupKind()) {
		return nil, nil, nil, nil, fmt.Errorf("the bundle has no CRD of %s", gvk.GroupKind())
	}
	d = c.byKind[gvk.GroupKind()]
	if version == "" {
		if version = gvk.Version; d.find(version) == nil {
			version = d.storage()
		}
	}
	if d.find(version) == nil {
		return nil, nil, nil, nil, fmt.Errorf("the CRD %s has no version %s", d.v1.Name, version)
	}
	if v, err = d.version(version); err != nil {
		return nil, nil, nil, nil, err
	}
	if u, err = copied(live); err != nil {
		return nil, nil, nil, nil, fmt.Errorf("read the live object: %w", err)
	}
	u.SetAPIVersion(gvk.Group + "/" + version)
	lost, err = v.coerce(u, d.v1.Spec.PreserveUnknownFields, false)
	return d, v, u, lost, err
}
