package preview

import (
	"context"
	"fmt"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/review"
	"brine/bundle/validate"
)

// mostFitted is how many resources of one CRD are looked at.
const mostFitted = 1000

// fits judges the live resources of a CRD that changes by what it is to be, but for those
// that are applied anyway.
func fits(ctx context.Context, c *cluster.Client, crd review.Change, changes map[bundle.ID]review.Change) (f review.Fits) {
	served := cluster.Defined(crd.Before)
	if len(served) == 0 {
		return f // there can be none
	}
	resource := served[0]
	if desired := cluster.Defined(crd.After); len(desired) > 0 {
		if same, err := cluster.DefinedIn(crd.Before, desired[0].GVK.Version); err == nil {
			resource = same
		}
	}
	if n, err := c.Count(ctx, resource, ""); err != nil || n == 0 || n > mostFitted {
		if err == nil && n > 0 {
			err = fmt.Errorf("there are %d, and at most %d are looked at", n, mostFitted)
		}
		return review.Fits{Unknown: reason(err)}
	}
	items, err := c.List(ctx, resource, "", "", "")
	if err != nil {
		return review.Fits{Unknown: reason(err)}
	}
	crds, problems := validate.Compile([]*bundle.Object{crd.Object})
	if len(problems) > 0 {
		return f // the server refuses it, and nothing changes
	}
	for i := range items {
		live := &items[i]
		live.SetGroupVersionKind(resource.GVK)
		id := bundle.IDOf(live)
		if changes[id].Object != nil { // it is applied
			continue
		}
		one, err := crds.FitOf(ctx, live)
		if err != nil {
			return review.Fits{Unknown: fmt.Sprintf("%s: %s", bundle.Name(id), err.Error())}
		}
		name := bundle.Name(id) + " "
		problem := func(p bundle.Problem) string { return name + fieldOf(p) }
		f.Lost = append(f.Lost, bundle.Each(one.Lost, func(path string) string { return name + path })...)
		f.Invalid = append(f.Invalid, bundle.Each(one.Invalid, problem)...)
		f.Later = append(f.Later, bundle.Each(one.Later, problem)...)
	}
	return f
}
