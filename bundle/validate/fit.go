package validate

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
)

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
	gvk := live.GroupVersionKind()
	if !c.Sound(gvk.GroupKind()) {
		return Fit{}, fmt.Errorf("the bundle has no valid CRD of %s", gvk.GroupKind())
	}
	d := c.byKind[gvk.GroupKind()]
	version := gvk.Version
	if d.find(version) == nil {
		version = d.storage() // another version of it is what clients read then
	}
	if d.webhook() && version != gvk.Version {
		return Fit{}, fmt.Errorf("a webhook converts it from %s", gvk.Version)
	}
	v, err := d.version(version)
	if err != nil {
		return Fit{}, err
	}
	u, err := copied(live)
	if err != nil {
		return Fit{}, fmt.Errorf("read the live object: %w", err)
	}
	u.SetAPIVersion(gvk.Group + "/" + version)
	var f Fit
	if f.Lost, err = v.coerce(u, d.v1.Spec.PreserveUnknownFields, false); err != nil {
		return Fit{}, err
	}
	o := &bundle.Object{ID: bundle.ID{GroupKind: gvk.GroupKind(), Namespace: live.GetNamespace(), Name: live.GetName()}, GVK: gvk.GroupKind().WithVersion(version), Content: live}
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
