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
