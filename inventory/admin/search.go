package admin

import (
	"context"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/cluster/answers"
)

// Object is an object that a command found.
type Object struct {
	bundle.FullReference
	Reason string `json:"reason,omitempty"`
}

func objectOf(id bundle.ID, reason string) Object {
	return Object{bundle.ReferFullyTo(id), reason}
}

// UnsearchedKind is a kind that could not be searched.
type UnsearchedKind struct {
	Kind   string `json:"kind"` // Deployment.apps; or a group and version
	Reason string `json:"reason"`
}

type search struct {
	client   *cluster.Client
	selector string
	// namespaces are where to list what may not be listed everywhere; nil where they
	// are not known.
	namespaces []string
	// wanted says whether an object is kept.
	wanted func(metav1.PartialObjectMetadata) bool

	mu          sync.Mutex
	found       map[bundle.ID]metav1.PartialObjectMetadata
	notSearched []UnsearchedKind
}

func (s *search) skip(kind string, err error) {
	s.notSearched = append(s.notSearched, UnsearchedKind{Kind: kind, Reason: err.Error()})
}

// everything is each kind that can be listed, with those that the API server which was
// asked does not know yet.
func (s *search) everything(ctx context.Context) []cluster.Resource {
	if err := s.client.LearnDefined(ctx); err != nil {
		s.skip("CustomResourceDefinition.apiextensions.k8s.io", err)
	}
	all, failed := s.client.Listable()
	for gv, err := range failed {
		s.skip(gv.String(), err)
	}
	return all
}

// run lists the resources, in one namespace or with "" in all.
func (s *search) run(ctx context.Context, resources []cluster.Resource, namespace string) error {
	s.found = map[bundle.ID]metav1.PartialObjectMetadata{}
	err := bundle.AtOnce(ctx, readers, resources, func(ctx context.Context, r cluster.Resource) error { return s.list(ctx, r, namespace) })
	if err != nil {
		return err
	}
	slices.SortFunc(s.notSearched, func(a, b UnsearchedKind) int { return strings.Compare(a.Kind, b.Kind) })
	s.notSearched = slices.CompactFunc(s.notSearched, func(a, b UnsearchedKind) bool { return a.Kind == b.Kind })
	return nil
}

func (s *search) list(ctx context.Context, r cluster.Resource, namespace string) error {
	items, err := s.client.ListMetadata(ctx, r, namespace, s.selector)
	if apierrors.IsForbidden(err) && s.namespaces != nil && r.Namespaced {
		items, err = nil, nil
		for _, namespace := range s.namespaces {
			more, listErr := s.client.ListMetadata(ctx, r, namespace, s.selector)
			if items = append(items, more...); listErr != nil {
				err = listErr
			}
		}
	}
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if answers.NotServed(err) { // its CRD went since discovery
		if served, unproven := s.client.ServedOrAbsent(ctx, r.GVK.GroupKind()); unproven == nil && !served {
			err = nil
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil && !apierrors.IsMethodNotSupported(err) {
		s.skip(r.GVK.GroupKind().String(), err)
	}
	for _, item := range items {
		if s.wanted == nil || s.wanted(item) {
			s.found[bundle.ID{GroupKind: r.GVK.GroupKind(), Namespace: item.Namespace, Name: item.Name}] = item
		}
	}
	return nil
}
