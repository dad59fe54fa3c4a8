package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"brine/bundle"
	"brine/bundle/cluster/answers"
)

// What Namespaces and CRDs hold, found with few LISTs; lost.go judges what of it would be
// lost.

// RoleLabel is on the roles and bindings that brine rbac writes for a bundle's
// namespaces: they go with them.
const RoleLabel = "brine.dev/rbac"

const (
	// fewNamespaces are searched one by one; more of them by LISTs of everything.
	fewNamespaces = 3
	// perList is how many objects cost the server and brine about as much as another
	// LIST, so that asking for everything is at most twice as dear as one by one.
	perList = 50
)

// disposableKinds are kinds of objects that controllers write and that may be lost.
var disposableKinds = bundle.Kinds("Event", "Endpoints", "Event.events.k8s.io", "EndpointSlice.discovery.k8s.io", "Lease.coordination.k8s.io", "ControllerRevision.apps")

// Search is a question for what Namespaces and CRDs hold.
type Search struct {
	// Holders are the live Namespaces and CRDs.
	Holders []*unstructured.Unstructured
	// Deleted are the objects that are deleted before their holder, or were. What
	// they own goes with them, unless Orphan says that it stays.
	Deleted *Deleted
	Orphan  bool
	// Counts says whether an object is looked for; nil: each is.
	Counts func(metav1.ObjectMeta) bool
	// Keeps says whether annotations forbid to delete an object: it is to stay, or another
	// inventory's.
	Keeps func(metav1.Object) bool
	// Auxiliary says whether an object of these labels is the inventory itself, or a part of it.
	Auxiliary func(id bundle.ID, labels map[string]string) bool
	// Strict: what goes with a namespace that is meant to go counts as well: Leases, the
	// claims of StatefulSets, and the roles of brine rbac.
	Strict bool
}

// Contents finds what would be lost with the Namespaces and CRDs that are to be
// deleted: every object in them but those that are deleted before, what these
// own, and what Kubernetes itself makes in every namespace. What cannot be read
// is Unknown, and never taken for nothing.
func (c *Client) Contents(ctx context.Context, q Search) (map[bundle.ID]bundle.Contents, error) {
	s := &search{
		Search: q, client: c, namespaces: map[string]bool{}, holders: map[schema.GroupKind]bundle.ID{},
		found: map[types.UID]*item{}, unknown: map[bundle.ID][]string{},
		disposables: map[types.UID]bool{},
	}
	var crds []*unstructured.Unstructured
	for _, u := range q.Holders {
		switch u.GroupVersionKind().GroupKind() {
		case bundle.NamespaceKind:
			s.namespaces[u.GetName()] = true
		case bundle.CRDKind:
			crds = append(crds, u)
		}
	}
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(readers)
	if len(s.namespaces) > 0 {
		c.AskFailed(ctx, func(string) bool { return true })
		if err := c.LearnDefined(ctx); err != nil {
			for name := range s.namespaces {
				s.addUnknown(namespaceID(name), CRDs.GVR.GroupResource().String(), err)
			}
		}
		s.listNamespaces(groupCtx, group)
	}
	for _, crd := range crds {
		s.listResources(groupCtx, group, crd)
	}
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("list the contents of the namespaces and CRDs to be deleted: %w", err)
	}
	return s.contents(ctx), nil
}

type item struct {
	id   bundle.ID
	meta metav1.PartialObjectMetadata
}

type search struct {
	Search
	client      *Client
	namespaces  map[string]bool                // that are searched
	holders     map[schema.GroupKind]bundle.ID // the CRDs that are searched, by what they define
	disposables map[types.UID]bool             // what is known so far

	mu      sync.Mutex
	found   map[types.UID]*item
	unknown map[bundle.ID][]string
}

func namespaceID(name string) bundle.ID {
	return bundle.ID{GroupKind: bundle.NamespaceKind, Name: name}
}

func (s *search) addUnknown(holder bundle.ID, what string, err error) {
	reason := err.Error()
	if apierrors.IsForbidden(err) {
		reason = "no right to list them"
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unknown[holder] = append(s.unknown[holder], what+" ("+reason+")")
}

func (s *search) listNamespaces(ctx context.Context, group *errgroup.Group) {
	names := slices.Sorted(maps.Keys(s.namespaces))
	resources, failed := s.client.Listable()
	for gv, err := range failed {
		if s.Deleted.apiService(gv.Version + "." + gv.Group) {
			continue // it is deleted first, and checked again then
		}
		group.Go(func() error {
			if s.client.absentAPIService(ctx, gv, err) == nil {
				return nil
			}
			for _, name := range names {
				s.addUnknown(namespaceID(name), gv.String(), err)
			}
			return ctx.Err()
		})
	}
	for _, r := range resources {
		if !r.Namespaced || !r.Can("delete") || s.disposes(r.GVK.GroupKind()) {
			continue
		}
		size, _ := s.client.sizes.Load(r.GVR)
		if known, _ := size.(int); len(names) > fewNamespaces && known < perList*len(names) {
			group.Go(func() error { return s.listEverywhere(ctx, r, names) })
			continue
		}
		for _, name := range names {
			group.Go(func() error { return s.listIn(ctx, r, name) })
		}
	}
}

func (s *search) disposes(kind schema.GroupKind) bool {
	return disposableKinds.Has(kind) && (kind != bundle.LeaseKind || !s.Strict)
}

// listEverywhere looks into many namespaces with one LIST, or one by one where
// that is forbidden, or other namespaces have so many that it is dearer.
func (s *search) listEverywhere(ctx context.Context, r Resource, names []string) error {
	items, all, err := s.client.listMetadata(ctx, r, "", "", perList*len(names))
	if err == nil {
		s.client.sizes.Store(r.GVR, len(items))
	}
	if all {
		s.add(r, items, true)
		return nil
	}
	for _, name := range names {
		if err := s.listIn(ctx, r, name); err != nil {
			return err
		}
	}
	return nil
}

func (s *search) listIn(ctx context.Context, r Resource, namespace string) error {
	items, err := s.client.ListMetadata(ctx, r, namespace, "")
	if answers.NotServed(err) {
		items, err = s.listNow(ctx, r, namespace)
	}
	if err != nil {
		s.addUnknown(namespaceID(namespace), r.GVR.GroupResource().String(), err)
		return ctx.Err()
	}
	s.add(r, items, true)
	return nil
}

// listNow lists in a version that the CRD serves by now, as discovery's is not
// served any more: none, if the kind is proven to be gone.
func (s *search) listNow(ctx context.Context, r Resource, namespace string) ([]metav1.PartialObjectMetadata, error) {
	crd, err := s.client.Get(ctx, CRDs, bundle.ID{GroupKind: bundle.CRDKind, Name: r.GVR.GroupResource().String()})
	if err == nil && crd != nil {
		for _, now := range Defined(crd) {
			if now.GVR != r.GVR {
				return s.client.ListMetadata(ctx, now, namespace, "")
			}
		}
	}
	return nil, s.client.absent(ctx, r)
}

// listResources lists those of a CRD, in a version that the CRD itself says is
// served: discovery may not know it, or not any more.
func (s *search) listResources(ctx context.Context, group *errgroup.Group, crd *unstructured.Unstructured) {
	holder := bundle.ID{GroupKind: bundle.CRDKind, Name: crd.GetName()}
	served := Defined(crd)
	if len(served) == 0 {
		s.addUnknown(holder, crd.GetName(), errNoVersion)
		return
	}
	r := served[0]
	s.holders[r.GVK.GroupKind()] = holder
	group.Go(func() error {
		items, err := s.client.ListMetadata(ctx, r, "", "")
		if err != nil {
			s.addUnknown(holder, r.GVR.GroupResource().String(), err)
			return ctx.Err()
		}
		s.add(r, items, false)
		return nil
	})
}

var errNoVersion = errors.New("the CRD serves no version")

// Defined are the resources that a CustomResourceDefinition says it serves, none
// of an object of another kind.
func Defined(crd *unstructured.Unstructured) []Resource {
	d, _ := bundle.DefinitionOf(crd)
	var resources []Resource
	for _, version := range d.Served() {
		gvk := d.Kind.WithVersion(version)
		resources = append(resources, Resource{
			GVR: gvk.GroupVersion().WithResource(d.Plural), GVK: gvk, Namespaced: d.Namespaced,
			Verbs:  []string{"delete", "get", "list", "patch", "watch"},
			Status: hasStatusOf(crd, version),
		})
	}
	return resources
}

func hasStatusOf(crd *unstructured.Unstructured, version string) bool {
	return slices.ContainsFunc(bundle.Items[map[string]any](crd.Object, "spec", "versions"), func(v map[string]any) bool {
		_, has := bundle.At[map[string]any](v, "subresources")["status"]
		return v["name"] == version && has
	})
}

// add notes what was found, or of that only what is in the namespaces that are searched.
func (s *search) add(r Resource, items []metav1.PartialObjectMetadata, inThem bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	gk := r.GVK.GroupKind()
	for i := range items {
		if inThem && !s.namespaces[items[i].Namespace] {
			continue
		}
		id := bundle.ID{Namespace: items[i].Namespace, Name: items[i].Name, GroupKind: gk}
		if items[i].UID == "" { // some aggregated API servers give none
			items[i].UID = types.UID(id.String())
		}
		s.found[items[i].UID] = &item{id: id, meta: items[i]}
	}
}
