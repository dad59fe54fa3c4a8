package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"golang.org/x/sync/errgroup"

	"brine/bundle"
)

// RoleLabel is on the roles and bindings that brine rbac writes for a bundle's
// namespaces: they go with them.
const RoleLabel = "brine.dev/rbac"

// fewNamespaces are searched one by one; more of them by LISTs of everything.
const fewNamespaces = 3

// passing are kinds that controllers write beside what they control, and that
// nobody misses.
var passing = map[schema.GroupKind]bool{
	{Kind: "Event"}:                                    true,
	{Kind: "Endpoints"}:                                true,
	{Group: "events.k8s.io", Kind: "Event"}:            true,
	{Group: "discovery.k8s.io", Kind: "EndpointSlice"}: true,
	{Group: "coordination.k8s.io", Kind: "Lease"}:      true,
	{Group: "apps", Kind: "ControllerRevision"}:        true,
}

// Search is a question for what Namespaces and CRDs hold.
type Search struct {
	// Holders are the live Namespaces and CRDs.
	Holders []*unstructured.Unstructured
	// Deleted are the objects that are deleted before their holder, or were. What
	// they own goes with them, unless Orphan says that it stays.
	Deleted []*unstructured.Unstructured
	Orphan  bool
	// Keeps says whether annotations forbid to delete an object.
	Keeps func(annotations map[string]string) bool
	// Auxiliary says whether labels are those of the inventory's own objects.
	Auxiliary func(labels map[string]string) bool
}

// Contents finds what would be lost with the Namespaces and CRDs that are to be
// deleted: every object in them but those that are deleted before, what these
// own, and what Kubernetes itself makes in every namespace. What cannot be read
// is Unknown, and never taken for nothing.
func (c *Client) Contents(ctx context.Context, q Search) (map[bundle.ID]bundle.Contents, error) {
	s := &search{
		Search: q, client: c, namespaces: map[string]bool{}, holders: map[schema.GroupKind]bundle.ID{},
		deleted: map[types.UID]bool{}, found: map[types.UID]*item{}, listed: map[place]bool{}, unknown: map[bundle.ID][]string{},
		goes: map[types.UID]bool{},
	}
	for _, u := range q.Deleted {
		if u.GetUID() != "" {
			s.deleted[u.GetUID()] = true
		}
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
	s.listNamespaces(groupCtx, group)
	for _, crd := range crds {
		s.listResources(groupCtx, group, crd)
	}
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("look for what namespaces and CRDs hold that are to be deleted: %w", err)
	}
	return s.contents(ctx), nil
}

type item struct {
	id   bundle.ID
	meta metav1.PartialObjectMetadata
}

// place is a kind in a namespace.
type place struct {
	kind      schema.GroupKind
	namespace string
}

type search struct {
	Search
	client     *Client
	namespaces map[string]bool                // that are searched
	holders    map[schema.GroupKind]bundle.ID // the CRDs that are searched, by what they define
	deleted    map[types.UID]bool
	goes       map[types.UID]bool // what is known of the owners so far

	mu      sync.Mutex
	found   map[types.UID]*item
	listed  map[place]bool // where all objects of a kind were found
	unknown map[bundle.ID][]string
}

func namespaceID(name string) bundle.ID {
	return bundle.ID{GroupKind: bundle.NamespaceKind, Name: name}
}

// doubt notes what could not be looked at in a holder.
func (s *search) doubt(holder bundle.ID, what string, err error) {
	reason := err.Error()
	if apierrors.IsForbidden(err) {
		reason = "no right to list them"
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unknown[holder] = append(s.unknown[holder], what+" ("+reason+")")
}

func (s *search) listNamespaces(ctx context.Context, group *errgroup.Group) {
	if len(s.namespaces) == 0 {
		return
	}
	names := slices.Sorted(maps.Keys(s.namespaces))
	for gv, err := range s.client.failedGroups() {
		if s.isDeleted(bundle.APIServiceKind, gv.Version+"."+gv.Group) {
			continue // it goes first, and is asked for again then
		}
		group.Go(func() error {
			if s.client.absentAPIService(ctx, gv) == nil {
				return nil
			}
			for _, name := range names {
				s.doubt(namespaceID(name), gv.String(), err)
			}
			return ctx.Err()
		})
	}
	for _, r := range s.client.Namespaced() {
		if passing[r.GVK.GroupKind()] {
			continue
		}
		if !r.Can("list") {
			for _, name := range names {
				s.doubt(namespaceID(name), r.GVR.GroupResource().String(), errNotListed)
			}
			continue
		}
		if len(names) > fewNamespaces {
			group.Go(func() error { return s.listEverywhere(ctx, r, names) })
			continue
		}
		for _, name := range names {
			group.Go(func() error { return s.listIn(ctx, r, name) })
		}
	}
}

var errNotListed = errors.New("the server does not list them")

func (s *search) isDeleted(kind schema.GroupKind, name string) bool {
	return slices.ContainsFunc(s.Deleted, func(u *unstructured.Unstructured) bool {
		return u.GetName() == name && u.GroupVersionKind().GroupKind() == kind
	})
}

// listEverywhere looks into many namespaces with one LIST, or one by one where
// that is forbidden.
func (s *search) listEverywhere(ctx context.Context, r Resource, names []string) error {
	items, err := s.client.ListMetadata(ctx, r, "", "")
	if err == nil {
		s.add(r, items, names...)
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
	if NotServed(err) {
		err = s.client.absent(ctx, r)
	}
	if err != nil {
		s.doubt(namespaceID(namespace), r.GVR.GroupResource().String(), err)
		return ctx.Err()
	}
	s.add(r, items, namespace)
	return nil
}

// listResources lists those of a CRD, in a version that the CRD itself says is
// served: discovery may not know it, or not any more.
func (s *search) listResources(ctx context.Context, group *errgroup.Group, crd *unstructured.Unstructured) {
	holder := bundle.ID{GroupKind: bundle.CRDKind, Name: crd.GetName()}
	served := Defined(crd)
	if len(served) == 0 {
		s.doubt(holder, crd.GetName(), errNoVersion)
		return
	}
	r := served[0]
	s.holders[r.GVK.GroupKind()] = holder
	group.Go(func() error {
		items, err := s.client.ListMetadata(ctx, r, "", "")
		if err != nil {
			s.doubt(holder, r.GVR.GroupResource().String(), err)
			return ctx.Err()
		}
		s.add(r, items)
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
			Verbs: []string{"delete", "get", "list", "patch", "watch"},
		})
	}
	return resources
}

// add notes what was found; with namespaces given, of that only what is in them.
func (s *search) add(r Resource, items []metav1.PartialObjectMetadata, namespaces ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	gk := r.GVK.GroupKind()
	for _, name := range namespaces {
		s.listed[place{gk, name}] = true
	}
	for i := range items {
		if len(namespaces) > 0 && !s.namespaces[items[i].Namespace] {
			continue
		}
		id := bundle.ID{Namespace: items[i].Namespace, Name: items[i].Name, GroupKind: gk}
		if items[i].UID == "" { // some aggregated API servers give none
			items[i].UID = types.UID(id.String())
		}
		s.found[items[i].UID] = &item{id: id, meta: items[i]}
	}
}

// contents says of everything found whether it would be lost.
func (s *search) contents(ctx context.Context) map[bundle.ID]bundle.Contents {
	unmanaged := map[bundle.ID][]string{}
	for _, i := range s.found {
		if s.leaves(ctx, i) {
			continue
		}
		if s.namespaces[i.id.Namespace] {
			unmanaged[namespaceID(i.id.Namespace)] = append(unmanaged[namespaceID(i.id.Namespace)], bundle.Name(i.id))
		}
		if holder, ok := s.holders[i.id.GroupKind]; ok {
			unmanaged[holder] = append(unmanaged[holder], bundle.Name(i.id))
		}
	}
	all := map[bundle.ID]bundle.Contents{}
	for _, u := range s.Holders {
		id := bundle.ID{GroupKind: u.GroupVersionKind().GroupKind(), Name: u.GetName()}
		slices.Sort(unmanaged[id])
		slices.Sort(s.unknown[id])
		all[id] = bundle.Contents{Unmanaged: slices.Compact(unmanaged[id]), Unknown: slices.Compact(s.unknown[id])}
	}
	return all
}

// leaves says whether an object goes without anybody losing it: it is deleted
// already, or its owners are, or it comes with the namespace.
func (s *search) leaves(ctx context.Context, i *item) bool {
	if known, ok := s.goes[i.meta.UID]; ok {
		return known
	}
	s.goes[i.meta.UID] = false // owners in a circle own themselves
	s.goes[i.meta.UID] = s.leavesNow(ctx, i)
	return s.goes[i.meta.UID]
}

func (s *search) leavesNow(ctx context.Context, i *item) bool {
	owned := func(owner metav1.OwnerReference) bool { return s.ownerLeaves(ctx, i.id.Namespace, owner) }
	switch {
	case s.deleted[i.meta.UID], i.meta.DeletionTimestamp != nil:
		return true
	case s.Keeps(i.meta.Annotations):
		return false
	case s.byItself(i):
		return true
	}
	owners := i.meta.OwnerReferences
	return len(owners) > 0 && !s.Orphan && !slices.ContainsFunc(owners, func(o metav1.OwnerReference) bool { return !owned(o) })
}

// ownerLeaves says whether an owner is deleted, or gone: the garbage collector
// deletes what it owned.
func (s *search) ownerLeaves(ctx context.Context, namespace string, owner metav1.OwnerReference) bool {
	if s.deleted[owner.UID] {
		return true
	}
	if i, ok := s.found[owner.UID]; ok {
		return s.leaves(ctx, i)
	}
	if known, ok := s.goes[owner.UID]; ok {
		return known
	}
	gv, err := schema.ParseGroupVersion(owner.APIVersion)
	if err != nil {
		return false
	}
	gk := gv.WithKind(owner.Kind).GroupKind()
	if s.listed[place{gk, namespace}] {
		return true // all of them were listed, and it is not there
	}
	r, err := s.client.Any(gk)
	if err != nil {
		return false
	}
	id := bundle.ID{GroupKind: gk, Name: owner.Name}
	if r.Namespaced {
		id.Namespace = namespace
	}
	live, err := s.client.Get(ctx, r, id)
	switch {
	case err != nil:
		return false
	case live == nil || live.GetUID() != owner.UID:
		s.goes[owner.UID] = true
		return true
	}
	return s.leaves(ctx, &item{id: id, meta: metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		UID: live.GetUID(), DeletionTimestamp: live.GetDeletionTimestamp(), OwnerReferences: live.GetOwnerReferences(), Annotations: live.GetAnnotations(),
	}}})
}

// byItself says whether an object comes with the namespace, or with what is
// deleted in it.
func (s *search) byItself(i *item) bool {
	switch i.id.GroupKind {
	case bundle.ServiceAccountKind:
		return i.id.Name == "default"
	case bundle.ConfigMapKind:
		return i.id.Name == "kube-root-ca.crt" || i.id.Name == "openshift-service-ca.crt" || s.Auxiliary(i.meta.Labels)
	case bundle.SecretKind:
		return i.meta.Annotations["kubernetes.io/service-account.name"] != "" || s.Auxiliary(i.meta.Labels)
	case schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "Role"}, schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}:
		return i.meta.Labels[RoleLabel] != ""
	case bundle.PersistentVolumeClaimKind:
		return slices.ContainsFunc(s.Deleted, func(u *unstructured.Unstructured) bool { return Claims(u, &i.meta) })
	}
	return false
}

// Claims says whether a StatefulSet's controller made a PersistentVolumeClaim,
// which has no owner: it is called <template>-<set>-<ordinal>, and carries the
// labels of the set's selector (kube's getPersistentVolumeClaims).
func Claims(set *unstructured.Unstructured, claim *metav1.PartialObjectMetadata) bool {
	if set.GroupVersionKind().GroupKind() != bundle.StatefulSetKind || set.GetNamespace() != claim.Namespace {
		return false
	}
	selector, _, _ := unstructured.NestedStringMap(set.Object, "spec", "selector", "matchLabels")
	for key, value := range selector {
		if claim.Labels[key] != value {
			return false
		}
	}
	templates, _, _ := unstructured.NestedSlice(set.Object, "spec", "volumeClaimTemplates")
	return slices.ContainsFunc(templates, func(t any) bool {
		template, _ := t.(map[string]any)
		name, _, _ := unstructured.NestedString(template, "metadata", "name")
		ordinal, ok := strings.CutPrefix(claim.Name, name+"-"+set.GetName()+"-")
		return ok && ordinal != "" && strings.Trim(ordinal, "0123456789") == ""
	})
}
