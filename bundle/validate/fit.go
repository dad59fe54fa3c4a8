package validate

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
)

// A live resource by the CRD of its kind: what it would lose, and what does not fit.

// Fit is what a CRD means for a resource that is there already.
type Fit struct {
	// Lost are fields that the schema does not have: they go with the next write.
	Lost []string
	// Invalid is what every write is refused for, Later what a write is refused for only
	// if it changes that field: the server ratchets, since 1.30.
	Invalid, Later []bundle.Problem
}

// FitOf judges a live resource by the CRD of its kind. An error is why it cannot be judged.
func (c *CRDs) FitOf(ctx context.Context, live *unstructured.Unstructured) (Fit, error) {
	d, v, u, lost, err := c.inVersion(live, "")
	if err != nil {
		return Fit{}, err
	}
	if d.webhook() && u.GetAPIVersion() != live.GetAPIVersion() {
		return Fit{}, fmt.Errorf("a webhook converts it from %s", live.GetAPIVersion())
	}
	gvk, f := u.GroupVersionKind(), Fit{Lost: lost}
	o := &bundle.Object{ID: bundle.ID{GroupKind: gvk.GroupKind(), Namespace: live.GetNamespace(), Name: live.GetName()}, GVK: gvk, Content: live}
	problems := func(old *unstructured.Unstructured) (all []bundle.Problem) {
		for _, err := range v.validate(ctx, d, u, old) {
			all = append(all, fieldProblem(o, err))
		}
		return all
	}
	f.Invalid = problems(u)
	f.Later = slices.DeleteFunc(problems(nil), func(p bundle.Problem) bool {
		return slices.ContainsFunc(f.Invalid, func(i bundle.Problem) bool { return i.Path == p.Path && i.Message == p.Message })
	})
	return f, nil
}

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
