package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"brine/bundle"
)

// rendered are ConfigMaps, each "NAME ORIGIN", in which an origin that is no file is an SLS.
func rendered(words ...string) (objects []*bundle.Object) {
	for _, word := range words {
		name, origin, _ := strings.Cut(word, " ")
		source := bundle.Source{File: origin}
		if origin != "" && !strings.Contains(origin, "/") {
			source = bundle.Source{File: "compiled SLS", SLS: origin}
		}
		objects = append(objects, &bundle.Object{ID: bundle.ID{GroupKind: schema.GroupKind{Kind: "ConfigMap"}, Name: name}, Source: source})
	}
	return objects
}

func TestRemovals(t *testing.T) {
	salt := func(tree ...string) *bundle.Rendering { return &bundle.Rendering{Saltenv: "base", Tree: tree} }
	tests := []struct {
		name          string
		earlier, now  []string
		salt          *bundle.Rendering
		removed       []string
		refuse        bool
		files         []string
		refused, told []string // ORIGIN NAMES
	}{
		{name: "an SLS that is not included any more", earlier: []string{"a p.web", "b p.db", "c p.db"}, now: []string{"a p.web"}, salt: salt("p/web.sls", "p/db.sls"), refused: []string{"p.db b,c"}},
		{name: "as a folder with an init.sls", earlier: []string{"a p.web", "b p.db"}, now: []string{"a p.web"}, salt: salt("p/db/init.sls"), refused: []string{"p.db b"}},
		{name: "a file", earlier: []string{"a salt://p/web.yaml (rendered)", "b salt://p/db.yaml (rendered)"}, now: []string{"a salt://p/web.yaml (rendered)"}, salt: salt("p/web.yaml", "p/db.yaml"), refused: []string{"salt://p/db.yaml b"}},
		{name: "read from a revision", earlier: []string{"a revision-3:salt://p/web.yaml", "b revision-3:salt://p/db.yaml"}, now: []string{"a salt://p/web.yaml"}, salt: salt("p/db.yaml"), refused: []string{"salt://p/db.yaml b"}},
		{name: "it is meant", earlier: []string{"a p.web", "b p.db"}, now: []string{"a p.web"}, salt: salt("p/db.sls"), removed: []string{"p.db"}, told: []string{"p.db b"}},
		{name: "all of them are meant", earlier: []string{"a p.web", "b p.db"}, now: []string{"a p.web"}, salt: salt("p/db.sls"), removed: []string{"p.*"}, refuse: true, told: []string{"p.db b"}},
		{name: "another one is meant", earlier: []string{"a p.web", "b p.db"}, now: []string{"a p.web"}, salt: salt("p/db.sls"), removed: []string{"p.d"}, refused: []string{"p.db b"}},
		{name: "gone from the tree", earlier: []string{"a p.web", "b p.db"}, now: []string{"a p.web"}, salt: salt("p/web.sls"), told: []string{"p.db b"}},
		{name: "gone from the tree, and refused", earlier: []string{"a p.web", "b p.db"}, now: []string{"a p.web"}, salt: salt("p/web.sls"), refuse: true, refused: []string{"p.db b"}},
		{name: "an empty tree", earlier: []string{"a p.web", "b p.db"}, now: []string{"a p.web"}, salt: &bundle.Rendering{Tree: []string{}}, told: []string{"p.db b"}},
		{name: "a tree that is not known", earlier: []string{"a p.web", "b p.db"}, now: []string{"a p.web"}, salt: &bundle.Rendering{}, refused: []string{"p.db b"}},
		{name: "one object of several that stay", earlier: []string{"a p.web", "b p.web"}, now: []string{"a p.web"}, salt: salt("p/web.sls")},
		{name: "renamed", earlier: []string{"a p.web", "b p.web"}, now: []string{"a p.site", "b p.site"}, salt: salt("p/site.sls")},
		{name: "renamed, without one of its objects", earlier: []string{"a p.web", "b p.web"}, now: []string{"a p.site"}, salt: salt("p/site.sls")},
		{name: "still there, and shares an object", earlier: []string{"ns p.db", "b p.db", "a p.web"}, now: []string{"ns p.web", "a p.web"}, salt: salt("p/db.sls", "p/web.sls"), refused: []string{"p.db b"}},
		{name: "it gives nothing any more", earlier: []string{"a p.web", "b p.db"}, now: []string{"a p.web"}, salt: &bundle.Rendering{SLS: []string{"p.web", "p.db"}, Tree: []string{"p/db.sls"}}, told: []string{"p.db b"}},
		{name: "a file here", earlier: []string{"a /srv/a.yaml", "b /srv/b.yaml", "c /srv/c.yaml"}, now: []string{"a /srv/a.yaml"}, salt: salt(), files: []string{"/srv/b.yaml"}, refused: []string{"/srv/b.yaml b"}, told: []string{"/srv/c.yaml c"}},
		{name: "an object without an origin", earlier: []string{"a p.web", "b "}, now: []string{"a p.web"}, salt: salt()},
		{name: "the command line", earlier: []string{"a shop/web.yaml", "b shop/db.yaml"}, now: []string{"a shop/web.yaml"}, told: []string{"shop/db.yaml b"}},
		{name: "the command line refuses", earlier: []string{"a shop/web.yaml", "b shop/db.yaml"}, now: []string{"a shop/web.yaml"}, refuse: true, refused: []string{"shop/db.yaml b"}},
		{name: "the command line, in another checkout", earlier: []string{"a /tmp/1/shop/web.yaml", "b /tmp/1/shop/web.yaml"}, now: []string{"a /tmp/2/shop/web.yaml"}},
		{name: "the command line, one of two of a name", earlier: []string{"a cart/k8s/web.yaml", "b pay/k8s/web.yaml"}, now: []string{"a cart/k8s/web.yaml"}, refuse: true, refused: []string{"pay/k8s/web.yaml b"}},
		{name: "the command line, both in another checkout", earlier: []string{"a /1/cart/k8s/web.yaml", "b /1/pay/k8s/web.yaml", "c /1/pay/k8s/web.yaml"}, now: []string{"a /2/cart/k8s/web.yaml", "b /2/pay/k8s/web.yaml"}},
		{name: "the command line, renamed", earlier: []string{"a shop/web.yaml", "b shop/web.yaml"}, now: []string{"a shop/site.yaml"}},
		{name: "twice, as runs without pruning leave it", earlier: []string{"a p.web", "b p.db", "b p.old"}, now: []string{"a p.web"}, salt: salt("p/db.sls", "p/old.sls"), refused: []string{"p.db b"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := Removals{
				Revision: 3, Earlier: rendered(test.earlier...), Now: &bundle.Bundle{Objects: rendered(test.now...), Rendering: test.salt}, Removed: test.removed, Refuse: test.refuse,
				IsFile: func(path string) bool { return slices.Contains(test.files, path) },
			}
			for _, o := range r.Earlier {
				if !slices.ContainsFunc(r.Now.Objects, func(stays *bundle.Object) bool { return stays.ID == o.ID }) {
					r.Pruned = append(r.Pruned, o.ID)
				}
			}
			var refused, told []string
			for _, one := range r.Find() {
				var names []string
				for _, id := range one.Objects {
					names = append(names, id.Name)
					if !strings.Contains(one.String(), "ConfigMap "+id.Name) {
						t.Errorf("%s does not name %s", one, id.Name)
					}
				}
				text := one.Origin + " " + strings.Join(names, ",")
				if one.Refused {
					refused = append(refused, text)
				} else {
					told = append(told, text)
				}
				if one.Refused != strings.Contains(one.String(), "give --removed="+one.Origin) || !strings.HasPrefix(one.String(), one.Origin+", from which revision 3 was made") {
					t.Error(one)
				}
			}
			if fmt.Sprint(refused, told) != fmt.Sprint(test.refused, test.told) {
				t.Errorf("refused %v, told %v", refused, told)
			}
		})
	}
	if found := (Removals{Earlier: rendered("b p.db"), Now: &bundle.Bundle{Rendering: salt("p/db.sls")}}).Find(); len(found) > 0 {
		t.Errorf("what is not pruned: %v", found)
	}
}
