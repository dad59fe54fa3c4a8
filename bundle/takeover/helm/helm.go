// Package helm reads what Helm stores on the cluster of the releases that are taken
// over, and marks it so that Helm forgets them. Package takeover decides.
package helm

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/takeover"
)

// Release is a Helm release that Helm still knows.
type Release struct {
	takeover.Release
	revision int // the newest stored one
}

// Read finds what Helm stores of the releases to take over from. wrong is why the
// bundle cannot take them over: "helm uninstall" would delete all objects of a release,
// so that one with more than the bundle has is refused.
func Read(ctx context.Context, c *cluster.Client, from []string, b *bundle.Bundle, live map[bundle.ID]*unstructured.Unstructured) (releases []Release, wrong []error, err error) {
	for _, rel := range takeover.Releases(from) {
		stored, err := storedOf(ctx, c, rel)
		if err != nil {
			return nil, nil, err
		}
		if err := rel.CheckObjects(len(stored) > 0, b.Objects, live); err != nil {
			wrong = append(wrong, err)
			continue
		}
		if len(stored) == 0 {
			continue
		}
		newest := stored[len(stored)-1]
		left, err := leftOf(ctx, c, rel, newest, b)
		if err != nil {
			return nil, nil, err
		}
		if err := rel.CheckLeft(left); err != nil {
			wrong = append(wrong, err)
			continue
		}
		releases = append(releases, Release{rel, takeover.Revision(newest)})
	}
	return releases, wrong, nil
}

// storedOf is what Helm stores of a release in Secrets or ConfigMaps, the newest last.
func storedOf(ctx context.Context, c *cluster.Client, rel takeover.Release) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for _, resource := range []cluster.Resource{cluster.Secrets, cluster.ConfigMaps} {
		items, err := c.List(ctx, resource, rel.Namespace, rel.Selector(), "")
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", rel, err)
		}
		for i := range items {
			items[i].SetGroupVersionKind(resource.GVK)
			all = append(all, &items[i])
		}
	}
	slices.SortFunc(all, func(a, b *unstructured.Unstructured) int { return takeover.Revision(a) - takeover.Revision(b) })
	return all, nil
}

// leftOf are the objects of a release that exist, and that the bundle neither contains
// nor names as absent.
func leftOf(ctx context.Context, c *cluster.Client, rel takeover.Release, newest *unstructured.Unstructured, b *bundle.Bundle) ([]string, error) {
	ids, err := takeover.Uninstalled(newest)
	if err != nil {
		return nil, err
	}
	var left []string
	for _, id := range ids {
		resource, served, err := c.AnyOrAbsent(ctx, id.GroupKind)
		switch {
		case err != nil:
			return nil, fmt.Errorf("%s: whether %s exists is unknown: %w", rel, bundle.Name(id), err)
		case !served:
			continue
		case !resource.Namespaced:
			id.Namespace = ""
		case id.Namespace == "":
			id.Namespace = rel.Namespace
		}
		if b.Names(id) {
			continue
		}
		u, err := c.Get(ctx, resource, id)
		if err != nil {
			return nil, fmt.Errorf("%s: whether %s exists is unknown: %w", rel, bundle.Name(id), err)
		}
		if u != nil {
			left = append(left, bundle.Name(id))
		}
	}
	return left, nil
}

// Forget makes Helm forget a release. What Helm stores stays as it is, but for a label.
// Helm looks at the newest one that it finds: so that one goes last.
func (r *Release) Forget(ctx context.Context, c *cluster.Client, inventory string) error {
	stored, err := storedOf(ctx, c, r.Release)
	if err != nil {
		return err
	}
	if len(stored) > 0 && takeover.Revision(stored[len(stored)-1]) != r.revision {
		return errors.New("it was changed by Helm during this run")
	}
	for _, u := range stored {
		id, resource := bundle.IDOf(u), cluster.Secrets
		if id.GroupKind == bundle.ConfigMapKind {
			resource = cluster.ConfigMaps
		}
		patch, err := takeover.Forget(u, inventory)
		if err != nil {
			return err
		}
		if _, err := c.Patch(ctx, resource, id, types.MergePatchType, patch, cluster.Write{}); err != nil {
			return fmt.Errorf("%s: %w", bundle.Name(id), err)
		}
	}
	return nil
}
