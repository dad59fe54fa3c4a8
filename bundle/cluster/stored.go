package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"golang.org/x/sync/errgroup"

	"brine/bundle"
)

const (
	// crdDelay is how long Kubernetes itself gives the API servers of a cluster to
	// learn of a CRD (apiextensions-apiserver's establishing controller).
	crdDelay = 5 * time.Second
	// crdLimit bounds the wait for it.
	crdLimit = time.Minute
)

// DefinedIn is how a CRD serves its kind in a version, or, where it does not serve
// that, in another one.
func DefinedIn(crd *unstructured.Unstructured, version string) (Resource, error) {
	served := Defined(crd)
	if len(served) == 0 {
		return Resource{}, errNoVersion
	}
	at := max(slices.IndexFunc(served, func(r Resource) bool { return r.GVK.Version == version }), 0)
	return served[at], nil
}

// AwaitStorage waits until objects of the resource are stored in its version,
// whichever API server writes them: for crdDelay each answer has to say so.
func (c *Client) AwaitStorage(ctx context.Context, r Resource) error {
	start := time.Now()
	for since := start; time.Since(since) < crdDelay; {
		resources, err := c.resourcesOf(ctx, r.GVR.GroupVersion())
		// Only the stored version has a hash.
		is := slices.ContainsFunc(resources, func(a metav1.APIResource) bool {
			return a.Name == r.GVR.Resource && a.StorageVersionHash != ""
		})
		if !is {
			since = time.Now()
		}
		if time.Since(start) > crdLimit {
			return fmt.Errorf("%s does not become the version in which objects are stored: %w", r.GVR, errors.Join(err, context.DeadlineExceeded))
		}
		if !Sleep(ctx, 250*time.Millisecond) {
			return context.Cause(ctx)
		}
	}
	return nil
}

// Rewrite writes each object of a resource as it is, which stores it in the present
// storage version, and returns how many there are. Objects that are gone
// by then need nothing. from are versions whose field ownership moves to that of
// the resource: the server drops what is owned in a version that it does not know.
func (c *Client) Rewrite(ctx context.Context, r Resource, from []string) (int, error) {
	items, err := c.List(ctx, r, "", "", "")
	if err != nil {
		return 0, fmt.Errorf("list %s, to rewrite them: %w", r.GVR.GroupResource(), err)
	}
	var mu sync.Mutex
	var failed []error
	var group errgroup.Group
	group.SetLimit(MaxConcurrency)
	for i := range items {
		group.Go(func() error {
			if err := c.rewrite(ctx, r, &items[i], from); err != nil {
				mu.Lock()
				defer mu.Unlock()
				id := bundle.ID{GroupKind: r.GVK.GroupKind(), Namespace: items[i].GetNamespace(), Name: items[i].GetName()}
				failed = append(failed, fmt.Errorf("rewrite %s in %s: %w", bundle.Name(id), r.GVK.Version, err))
			}
			return nil
		})
	}
	_ = group.Wait() // no error is ever returned
	slices.SortFunc(failed, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	if len(failed) > 5 {
		failed = append(failed[:5], fmt.Errorf("and %d more", len(failed)-5))
	}
	return len(items), errors.Join(failed...)
}

func (c *Client) rewrite(ctx context.Context, r Resource, u *unstructured.Unstructured, from []string) error {
	for {
		moveOwnership(u, r, from)
		err := c.retry(ctx, func(ctx context.Context) error {
			_, err := c.resource(r, u.GetNamespace()).Update(ctx, u, metav1.UpdateOptions{FieldManager: bundle.FieldManager})
			if apierrors.IsConflict(err) {
				return &permanent{err}
			}
			return err
		})
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case !apierrors.IsConflict(err):
			return err
		}
		// Another client wrote it, perhaps before it was stored in the new version.
		live, err := c.Get(ctx, r, bundle.ID{GroupKind: r.GVK.GroupKind(), Namespace: u.GetNamespace(), Name: u.GetName()})
		if live == nil || err != nil {
			return err
		}
		u = live
		if !Sleep(ctx, firstPause) {
			return context.Cause(ctx)
		}
	}
}

func moveOwnership(u *unstructured.Unstructured, r Resource, from []string) {
	entries := u.GetManagedFields()
	for i := range entries {
		if version, ok := strings.CutPrefix(entries[i].APIVersion, r.GVK.Group+"/"); ok && slices.Contains(from, version) {
			entries[i].APIVersion = r.GVK.GroupVersion().String()
		}
	}
	u.SetManagedFields(entries)
}

// Unstore removes versions from the status of a CRD, in which no object is stored
// any more, and returns the CRD. to is the storage version: if it is another one by
// now, nothing is known any more.
func (c *Client) Unstore(ctx context.Context, name string, versions []string, to string) (*unstructured.Unstructured, error) {
	for {
		crd, err := c.Get(ctx, CRDs, bundle.ID{GroupKind: bundle.CRDKind, Name: name})
		if err != nil || crd == nil {
			return nil, errors.Join(err, fmt.Errorf("read CRD %s again", name))
		}
		d, _ := bundle.DefinitionOf(crd)
		if !slices.ContainsFunc(d.Versions, func(v bundle.DefinedVersion) bool { return v.Name == to && v.Storage }) {
			return nil, fmt.Errorf("another client changed the storage version of CRD %s from %s meanwhile", name, to)
		}
		stored, _, _ := unstructured.NestedStringSlice(crd.Object, "status", "storedVersions")
		stored = slices.DeleteFunc(stored, func(v string) bool { return slices.Contains(versions, v) })
		body, err := json.Marshal(map[string]any{
			"metadata": map[string]any{"uid": crd.GetUID(), "resourceVersion": crd.GetResourceVersion()},
			"status":   map[string]any{"storedVersions": stored},
		})
		if err != nil {
			return nil, fmt.Errorf("encode status.storedVersions: %w", err)
		}
		err = c.retry(ctx, func(ctx context.Context) (err error) {
			crd, err = c.dynamic.Resource(CRDs.GVR).Patch(ctx, name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: bundle.FieldManager}, "status")
			if apierrors.IsConflict(err) {
				return &permanent{err}
			}
			return err
		})
		if err == nil || !apierrors.IsConflict(err) {
			return crd, err
		}
		if !Sleep(ctx, firstPause) {
			return nil, context.Cause(ctx)
		}
	}
}
