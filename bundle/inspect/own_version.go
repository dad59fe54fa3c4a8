package inspect

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/cluster/answers"
)

// ReadInOwnVersion reads again, one by one, objects of a kind that the bundle
// writes in several versions: live is compared in the version that is sent.
func ReadInOwnVersion(ctx context.Context, c *cluster.Client, b *bundle.Bundle, view *cluster.Snapshot) error {
	for _, o := range b.Objects {
		live := view.Live[o.ID]
		if live == nil || live.GroupVersionKind() == o.GVK {
			continue
		}
		resource, err := c.Resource(o.GVK)
		if err == nil {
			live, err = c.Get(ctx, resource, o.ID)
		}
		switch {
		case meta.IsNoMatchError(err), errors.Is(err, answers.ErrNotServed): // a version that this run's CRD is to bring
			continue
		case err != nil:
			return fmt.Errorf("read %s: %w", bundle.Name(o.ID), err)
		}
		view.Live[o.ID] = live
	}
	return nil
}
