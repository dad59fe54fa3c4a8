package admin

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/read"
)

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
	return slices.ContainsFunc(s, func(p [3]string) bool {
		return (fits(p[0], kind) || fits(p[0], full)) && fits(p[1], id.Namespace) && fits(p[2], id.Name)
	})
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
