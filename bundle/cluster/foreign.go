package cluster

import (
	"context"
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

var crdKind = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}

// fewNamespaces are searched one by one; more of them by LISTs of everything.
const fewNamespaces = 3

// passing are kinds that controllers write beside what they control, and that
// nobody misses.
var passing = map[string]bool{
	"Event": true, "Endpoints": true, "EndpointSlice": true, "Lease": true, "ControllerRevision": true,
}

// Foreign finds what would go with the namespaces and CRDs among doomed though
// it is not ours: neither doomed itself, nor owned by what is doomed, nor made
// by Kubernetes in every namespace. It returns names as messages show them.
// Kinds that may not be listed are passed over.
func (c *Client) Foreign(ctx context.Context, doomed []bundle.ID, live map[bundle.ID]*unstructured.Unstructured, side func(labels map[string]string) bool) (map[bundle.ID][]string, error) {
	s := &search{client: c, side: side, ours: map[bundle.ID]bool{}, uids: map[types.UID]bool{}, found: map[bundle.ID]metav1.PartialObjectMetadata{}}
	namespaces := map[string]bool{}
	var crds []bundle.ID
	for _, id := range doomed {
		s.ours[id] = true
		if u := live[id]; u != nil {
			s.uids[u.GetUID()] = true
			s.claims(u)
			switch id.GroupKind {
			case namespaceKind:
				namespaces[id.Name] = true
			case crdKind:
				crds = append(crds, id)
			}
		}
	}
	if len(namespaces) == 0 && len(crds) == 0 {
		return nil, nil
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(readers)
	s.namespaces(ctx, group, namespaces)
	holders := s.resources(ctx, group, crds, live)
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("look for objects of others in what is to be deleted: %w", err)
	}
	return s.foreign(namespaces, holders), nil
}

type search struct {
	client *Client
	side   func(map[string]string) bool
	ours   map[bundle.ID]bool
	uids   map[types.UID]bool
	pvcs   []string // namespace/prefix of the claims that our StatefulSets made

	mu    sync.Mutex
	found map[bundle.ID]metav1.PartialObjectMetadata
}

// claims notes the names of the PersistentVolumeClaims that a StatefulSet
// makes: they carry no owner.
func (s *search) claims(u *unstructured.Unstructured) {
	if u.GetKind() != "StatefulSet" {
		return
	}
	templates, _, _ := unstructured.NestedSlice(u.Object, "spec", "volumeClaimTemplates")
	for _, t := range templates {
		if template, ok := t.(map[string]any); ok {
			name, _, _ := unstructured.NestedString(template, "metadata", "name")
			s.pvcs = append(s.pvcs, u.GetNamespace()+"/"+name+"-"+u.GetName()+"-")
		}
	}
}

func (s *search) namespaces(ctx context.Context, group *errgroup.Group, namespaces map[string]bool) {
	if len(namespaces) == 0 {
		return
	}
	scopes := slices.Sorted(maps.Keys(namespaces))
	if len(scopes) > fewNamespaces {
		scopes = []string{""}
	}
	for _, r := range s.client.Namespaced() {
		if passing[r.GVK.Kind] {
			continue
		}
		for _, scope := range scopes {
			group.Go(func() error { return s.list(ctx, r, scope, namespaces) })
		}
	}
}

// resources lists those of doomed CRDs; it returns the CRD of each kind.
func (s *search) resources(ctx context.Context, group *errgroup.Group, crds []bundle.ID, live map[bundle.ID]*unstructured.Unstructured) map[schema.GroupKind]bundle.ID {
	holders := map[schema.GroupKind]bundle.ID{}
	for _, id := range crds {
		g, _, _ := unstructured.NestedString(live[id].Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(live[id].Object, "spec", "names", "kind")
		gk := schema.GroupKind{Group: g, Kind: kind}
		r, err := s.client.Any(gk)
		if err != nil {
			continue // not served: there are none
		}
		holders[gk] = id
		group.Go(func() error { return s.list(ctx, r, "", nil) })
	}
	return holders
}

// list notes the objects of a resource; those of the given namespaces only,
// unless that is nil.
func (s *search) list(ctx context.Context, r Resource, scope string, namespaces map[string]bool) error {
	items, err := s.client.ListMetadata(ctx, r, scope, "")
	switch {
	case apierrors.IsForbidden(err), apierrors.IsMethodNotSupported(err), gone(err), apierrors.IsServiceUnavailable(err):
		return nil
	case err != nil:
		return fmt.Errorf("list %s: %w", r.GVR.GroupResource(), err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, item := range items {
		if namespaces == nil || namespaces[item.Namespace] {
			s.found[bundle.ID{Namespace: item.Namespace, Name: item.Name, GroupKind: r.GVK.GroupKind()}] = item
		}
	}
	return nil
}

func (s *search) foreign(namespaces map[string]bool, holders map[schema.GroupKind]bundle.ID) map[bundle.ID][]string {
	for more := true; more; { // owners of owners
		more = false
		for _, item := range s.found {
			if s.uids[item.UID] {
				continue
			}
			for _, owner := range item.OwnerReferences {
				if s.uids[owner.UID] {
					s.uids[item.UID], more = true, true
				}
			}
		}
	}
	foreign := map[bundle.ID][]string{}
	for id, item := range s.found {
		if s.ours[id] || s.uids[item.UID] || item.DeletionTimestamp != nil || s.byItself(id, &item) {
			continue
		}
		if namespaces[id.Namespace] {
			holder := bundle.ID{GroupKind: namespaceKind, Name: id.Namespace}
			foreign[holder] = append(foreign[holder], bundle.Name(id))
		}
		if holder, ok := holders[id.GroupKind]; ok {
			foreign[holder] = append(foreign[holder], bundle.Name(id))
		}
	}
	for _, names := range foreign {
		slices.Sort(names)
	}
	return foreign
}

// byItself says whether an object comes with the namespace, or with what is
// doomed in it.
func (s *search) byItself(id bundle.ID, item *metav1.PartialObjectMetadata) bool {
	switch id.GroupKind.Kind {
	case "ServiceAccount":
		return id.Name == "default"
	case "ConfigMap":
		return id.Name == "kube-root-ca.crt" || id.Name == "openshift-service-ca.crt" || s.side(item.Labels)
	case "Secret":
		return item.Annotations["kubernetes.io/service-account.name"] != "" || s.side(item.Labels)
	case "PersistentVolumeClaim":
		return slices.ContainsFunc(s.pvcs, func(prefix string) bool { return strings.HasPrefix(id.Namespace+"/"+id.Name, prefix) })
	}
	return false
}
