package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"brine/bundle"
	"brine/bundle/cluster/answers"
	"brine/bundle/cluster/transport"
	"brine/bundle/fields"
)

// Before a version of a CRD goes, the objects that may be stored in it are rewritten.

const (
	// crdDelay is how long Kubernetes itself gives the API servers of a cluster to
	// learn of a CRD (apiextensions-apiserver's establishing controller).
	crdDelay = 5 * time.Second
	// oneServerDelay is for the parts of one API server, which hear of it one by one.
	oneServerDelay = time.Second
	// crdLimit bounds the wait for it.
	crdLimit = time.Minute
	// contendedTries is how often an object is read and written again that other
	// clients write meanwhile.
	contendedTries = 100
)

var errContended = errors.New("other clients changed it again and again")

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

// AwaitStorage waits until objects of the resource are stored in its version, whichever
// API server writes them: for crdDelay each answer has to say so, each on a connection of
// its own, which may lead to another server, and has to list them in that version. One
// server alone has what it says within a moment.
func (c *Client) AwaitStorage(ctx context.Context, r Resource) error {
	apart, start := c.Separate(), time.Now()
	defer apart.Close()
	delay := crdDelay
	// API servers identify themselves by Leases.
	if leases, err := c.ListMetadata(ctx, Leases, "kube-system", "apiserver.kubernetes.io/identity=kube-apiserver"); err == nil && len(leases) == 1 {
		delay = oneServerDelay
	}
	for since := start; ; {
		apart.Close() // the connection of the last round
		resources, err := apart.resourcesOf(ctx, r.GVR.GroupVersion())
		// Only the stored version has a hash.
		is := slices.ContainsFunc(resources, func(a metav1.APIResource) bool {
			return a.Name == r.GVR.Resource && a.StorageVersionHash != ""
		})
		if is { // discovery may know of it earlier than what serves it
			_, err = apart.Count(ctx, r, "")
			is = err == nil
		}
		if answers.ConversionFailed(err) { // it is asked again as in any other request, and no longer
			if _, err := c.Count(ctx, r, ""); err != nil {
				return fmt.Errorf("read the %s, to store them in %s: %w", r.GVR.GroupResource(), r.GVR.Version, err)
			}
		}
		switch {
		case !is:
			since = time.Now()
		case time.Since(since) >= delay:
			return nil
		}
		if time.Since(start) > crdLimit || !Sleep(ctx, 250*time.Millisecond) {
			return fmt.Errorf("%s does not become the version in which objects are stored: %w", r.GVR, errors.Join(err, cmp.Or(WhyEnded(ctx), context.DeadlineExceeded)))
		}
	}
}

// Rewrite writes each object of a resource as it is, which stores it in the present
// storage version, and returns how many there are. Objects that are gone
// by then need nothing. What is owned in the versions that moves names is owned in that of
// the resource from then on: the server leaves all ownership of an object as it was while
// some of it is in a version that its CRD does not have.
func (c *Client) Rewrite(ctx context.Context, r Resource, moves func(version string) bool) (int, error) {
	items, err := c.List(ctx, r, "", "", "")
	if err != nil {
		return 0, fmt.Errorf("list %s, to rewrite them: %w", r.GVR.GroupResource(), err)
	}
	var mu sync.Mutex
	var failed []error
	_ = bundle.AtOnce(ctx, transport.MaxConcurrency, items, func(ctx context.Context, item unstructured.Unstructured) error { // it returns none
		if err := c.rewrite(ctx, r, &item, moves); err != nil {
			mu.Lock()
			defer mu.Unlock()
			id := bundle.ID{GroupKind: r.GVK.GroupKind(), Namespace: item.GetNamespace(), Name: item.GetName()}
			failed = append(failed, fmt.Errorf("rewrite %s in %s: %w", bundle.Name(id), r.GVK.Version, err))
		}
		return nil
	})
	slices.SortFunc(failed, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	if len(failed) > 5 {
		failed = append(failed[:5], fmt.Errorf("and %d more", len(failed)-5))
	}
	return len(items), errors.Join(failed...)
}

// UnservedOwnership is the version of a custom resource in which fields are owned and
// which its CRD no longer has: the server refuses every apply of the object then
// (apiextensions-apiserver's apiserver/conversion/converter.go). It is "" for other
// errors.
func UnservedOwnership(err error, r Resource) string {
	if err == nil {
		return ""
	}
	_, after, ok := strings.Cut(err.Error(), "request to convert CR to an invalid group/version: "+r.GVK.Group+"/")
	version := strings.FieldsFunc(after, func(c rune) bool { return c != '-' && !unicode.IsLetter(c) && !unicode.IsDigit(c) })
	if !ok || len(version) == 0 || version[0] == r.GVK.Version {
		return ""
	}
	return version[0]
}

// MoveOwnership moves what is owned of an object in versions that its CRD no longer has to
// that of the resource, and returns the object. The server has told of the versions in gone,
// one at a time; it keeps the object as it is as long as one is left.
func (c *Client) MoveOwnership(ctx context.Context, r Resource, live *unstructured.Unstructured, gone []string, dryRun bool) (*unstructured.Unstructured, error) {
	moved, has := live.DeepCopy(), c.Versions(r.GVK.GroupKind())
	// What is served may have changed since discovery.
	if crd, err := c.Get(ctx, CRDs, bundle.ID{GroupKind: bundle.CRDKind, Name: r.GVR.GroupResource().String()}); err == nil && crd != nil {
		d, _ := bundle.DefinitionOf(crd)
		has = bundle.Each(d.Versions, func(v bundle.DefinedVersion) string { return v.Name })
	}
	from := moveOwnership(moved, r, func(version string) bool { return slices.Contains(gone, version) || !slices.Contains(has, version) })
	moved, err := c.SetManagedFields(ctx, r, live, moved.GetManagedFields(), Write{DryRun: dryRun})
	if err != nil {
		return nil, fmt.Errorf("move what is owned in %s, which is not served any more, to %s: %w", strings.Join(from, ", "), r.GVK.Version, err)
	}
	return moved, nil
}

// SetManagedFields replaces the managed fields of the very version of an object.
func (c *Client) SetManagedFields(ctx context.Context, r Resource, live *unstructured.Unstructured, entries []metav1.ManagedFieldsEntry, w Write) (*unstructured.Unstructured, error) {
	body, err := json.Marshal([]map[string]any{
		{"op": "replace", "path": "/metadata/managedFields", "value": entries},
		{"op": "replace", "path": "/metadata/resourceVersion", "value": live.GetResourceVersion()},
	})
	if err != nil {
		return nil, fmt.Errorf("encode its managed fields: %w", err)
	}
	id := bundle.ID{GroupKind: r.GVK.GroupKind(), Namespace: live.GetNamespace(), Name: live.GetName()}
	return c.Patch(ctx, r, id, types.JSONPatchType, body, w)
}

func (c *Client) rewrite(ctx context.Context, r Resource, u *unstructured.Unstructured, moves func(version string) bool) error {
	for range contendedTries {
		moveOwnership(u, r, moves)
		_, err := c.send(ctx, apierrors.IsConflict, func(ctx context.Context) (*unstructured.Unstructured, error) {
			return answers.About(u.GetName())(c.resource(r, u.GetNamespace()).Update(ctx, u, metav1.UpdateOptions{FieldManager: bundle.FieldManager}))
		})
		switch {
		case answers.ProvesAbsence(err, u.GetName()):
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
			return WhyEnded(ctx)
		}
	}
	return errContended
}

// moveOwnership moves what is owned in versions to the resource's, and returns these versions. A
// field that the object does not have there, because a webhook gave it another name, has no owner.
func moveOwnership(u *unstructured.Unstructured, r Resource, moves func(version string) bool) (from []string) {
	entries := u.GetManagedFields()
	for i := range entries {
		version, ok := strings.CutPrefix(entries[i].APIVersion, r.GVK.Group+"/")
		if !ok || version == r.GVK.Version || !moves(version) {
			continue
		}
		if !slices.Contains(from, version) {
			from = append(from, version)
		}
		entries[i].APIVersion = r.GVK.GroupVersion().String()
		owned := map[string]any{}
		if json.Unmarshal(entries[i].FieldsV1.GetRawBytes(), &owned) != nil {
			continue
		}
		fields.DropAbsent(owned, u.Object)
		if text, err := json.Marshal(owned); err == nil {
			entries[i].FieldsV1 = metav1.NewFieldsV1(string(text))
		}
	}
	u.SetManagedFields(unitedEntries(entries))
	return from
}

// unitedEntries has one entry of each manager in each version, as the server has: of two it
// drops the first (apimachinery's util/managedfields, BuildManagerIdentifier).
func unitedEntries(entries []metav1.ManagedFieldsEntry) (united []metav1.ManagedFieldsEntry) {
	for _, e := range entries {
		i := slices.IndexFunc(united, func(u metav1.ManagedFieldsEntry) bool {
			return u.Manager == e.Manager && u.Operation == e.Operation && u.Subresource == e.Subresource && u.APIVersion == e.APIVersion
		})
		if i < 0 {
			united = append(united, e)
			continue
		}
		all := &fieldpath.Set{}
		for _, f := range []*metav1.FieldsV1{united[i].FieldsV1, e.FieldsV1} {
			set := &fieldpath.Set{}
			if f != nil && set.FromJSON(f.GetRawReader()) == nil {
				all = all.Union(set)
			}
		}
		if text, err := all.ToJSON(); err == nil {
			united[i].FieldsV1 = metav1.NewFieldsV1(string(text))
		}
	}
	return united
}

// Unstore removes versions from the status of a CRD, in which no object is stored
// any more, and returns the CRD. to is the storage version: if it is another one by
// now, nothing is known any more.
func (c *Client) Unstore(ctx context.Context, name string, versions []string, to string) (*unstructured.Unstructured, error) {
	for range contendedTries {
		crd, err := c.Get(ctx, CRDs, bundle.ID{GroupKind: bundle.CRDKind, Name: name})
		if err != nil || crd == nil {
			return nil, errors.Join(err, fmt.Errorf("read CRD %s again", name))
		}
		d, _ := bundle.DefinitionOf(crd)
		if !slices.ContainsFunc(d.Versions, func(v bundle.DefinedVersion) bool { return v.Name == to && v.Storage }) {
			return nil, fmt.Errorf("another client changed the storage version of CRD %s from %s meanwhile", name, to)
		}
		stored := slices.DeleteFunc(bundle.Items[string](crd.Object, "status", "storedVersions"), func(v string) bool { return slices.Contains(versions, v) })
		body, err := json.Marshal(map[string]any{
			"metadata": map[string]any{"uid": crd.GetUID(), "resourceVersion": crd.GetResourceVersion()},
			"status":   map[string]any{"storedVersions": stored},
		})
		if err != nil {
			return nil, fmt.Errorf("encode status.storedVersions: %w", err)
		}
		crd, err = c.send(ctx, apierrors.IsConflict, func(ctx context.Context) (*unstructured.Unstructured, error) {
			return answers.About(name)(c.dynamic.Resource(CRDs.GVR).Patch(ctx, name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: bundle.FieldManager}, "status"))
		})
		if err == nil || !apierrors.IsConflict(err) {
			return crd, err
		}
		if !Sleep(ctx, firstPause) {
			return nil, WhyEnded(ctx)
		}
	}
	return nil, errContended
}
