package admin

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/cluster/answers"
	"brine/bundle/read"
)

// Object is an object that a command found.
type Object struct {
	Group     string `json:"group"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Reason    string `json:"reason,omitempty"`
}

// ID names the object.
func (o *Object) ID() bundle.ID {
	return bundle.ID{GroupKind: schema.GroupKind{Group: o.Group, Kind: o.Kind}, Namespace: o.Namespace, Name: o.Name}
}

func objectOf(id bundle.ID, reason string) Object {
	return Object{Group: id.GroupKind.Group, Kind: id.GroupKind.Kind, Namespace: id.Namespace, Name: id.Name, Reason: reason}
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

// run lists the resources, in one namespace or with "" in all.
func (s *search) run(ctx context.Context, resources []cluster.Resource, namespace string) error {
	s.found = map[bundle.ID]metav1.PartialObjectMetadata{}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(readers)
	for _, r := range resources {
		group.Go(func() error { return s.list(ctx, r, namespace) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	slices.SortFunc(s.notSearched, func(a, b UnsearchedKind) int { return strings.Compare(a.Kind, b.Kind) })
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

// Selector chooses objects by patterns: KIND/NAMESPACE/NAME, or KIND/NAME for
// cluster-scoped objects. KIND may be KIND.GROUP, and * stands for any text in each
// part.
type Selector [][3]string

// ParseSelector reads the patterns.
func ParseSelector(patterns []string) (Selector, error) {
	var s Selector
	for _, p := range patterns {
		parts := strings.Split(p, "/")
		if len(parts) == 2 {
			parts = []string{parts[0], "", parts[1]}
		}
		if len(parts) != 3 || parts[0] == "" || parts[2] == "" {
			return nil, fmt.Errorf("%q: an object is KIND/NAMESPACE/NAME, or KIND/NAME without a namespace, and * stands for any text", p)
		}
		if _, err := path.Match(p, ""); err != nil {
			return nil, fmt.Errorf("%q: %w", p, err)
		}
		s = append(s, [3]string{strings.ToLower(parts[0]), parts[1], parts[2]})
	}
	return s, nil
}

// Chooses says whether one of the patterns fits.
func (s Selector) Chooses(id bundle.ID) bool {
	fits := func(pattern, text string) bool {
		ok, _ := path.Match(pattern, text)
		return ok
	}
	kind, full := strings.ToLower(id.GroupKind.Kind), strings.ToLower(id.GroupKind.String())
	for _, p := range s {
		if (fits(p[0], kind) || fits(p[0], full)) && fits(p[1], id.Namespace) && fits(p[2], id.Name) {
			return true
		}
	}
	return false
}

// IDsOf are the objects of a bundle, with the server's help where it names no
// namespace.
func IDsOf(ctx context.Context, c *cluster.Client, b *bundle.Bundle, namespace string) (map[bundle.ID]bool, error) {
	if err := c.Discover(ctx); err != nil {
		return nil, err
	}
	if err := read.Resolve(b, read.Resolver{Namespace: namespace, Scope: c.Scope, Quiet: true}); err != nil {
		return nil, err
	}
	ids := map[bundle.ID]bool{}
	for _, o := range b.Objects {
		if o.ID.Name != "" {
			ids[o.ID] = true
		}
	}
	return ids, nil
}

// Named are the objects that patterns without * name. The server says what their
// kinds are.
func (s Selector) Named(ctx context.Context, c *cluster.Client) ([]bundle.ID, error) {
	if err := c.Discover(ctx); err != nil {
		return nil, err
	}
	all, _ := c.Listable()
	var ids []bundle.ID
	for _, p := range s {
		if strings.ContainsAny(p[0]+p[1]+p[2], `*?[\`) {
			return nil, fmt.Errorf("%s/%s/%s: name each object, without *", p[0], p[1], p[2])
		}
		var kinds []string
		for _, r := range all {
			gk := r.GVK.GroupKind()
			if r.Namespaced == (p[1] != "") && (strings.EqualFold(gk.Kind, p[0]) || strings.EqualFold(gk.String(), p[0])) {
				kinds = append(kinds, gk.String())
				ids = append(ids, bundle.ID{GroupKind: gk, Namespace: p[1], Name: p[2]})
			}
		}
		switch {
		case len(kinds) == 0 && p[1] == "":
			return nil, fmt.Errorf("%s/%s: the cluster serves no cluster-scoped kind of this name", p[0], p[2])
		case len(kinds) == 0:
			return nil, fmt.Errorf("%s/%s/%s: the cluster serves no namespaced kind of this name", p[0], p[1], p[2])
		case len(kinds) > 1:
			return nil, fmt.Errorf("%s/%s/%s: several kinds have this name: use one of %s", p[0], p[1], p[2], strings.Join(kinds, ", "))
		}
	}
	return ids, nil
}
