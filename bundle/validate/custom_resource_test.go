package validate

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/bundle/read"
	"brine/bundle/read/readtest"
)

// read gives the objects of manifests, with their identities settled.
func readObjects(t testing.TB, o read.Options) []*bundle.Object {
	t.Helper()
	b, err := read.Bundle(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	if err := read.Resolve(b, read.Resolver{}); err != nil {
		t.Fatal(err)
	}
	return b.Objects
}

func testCRDs(t testing.TB) *CRDs {
	t.Helper()
	crds, problems := Compile(readObjects(t, read.Options{Files: []string{"testdata/crds.yaml"}}))
	for _, p := range problems {
		t.Error(p)
	}
	return crds
}

// text is each problem as "path: message".
func text(problems []bundle.Problem) []string {
	var out []string
	for _, p := range problems {
		out = append(out, bundle.Problem{Path: p.Path, Message: p.Message}.Error())
	}
	return out
}

// same compares the problems, in any order: each wanted text begins one.
func same(t *testing.T, got, want []string) {
	t.Helper()
	got = slices.Clone(got)
	for _, w := range want {
		i := slices.IndexFunc(got, func(g string) bool { return strings.HasPrefix(g, w) })
		if i < 0 {
			t.Errorf("no problem %q", w)
			continue
		}
		got = slices.Delete(got, i, i+1)
	}
	for _, g := range got {
		t.Errorf("unwanted problem %q", g)
	}
}

func TestCheck(t *testing.T) {
	crds := testCRDs(t)
	for _, c := range crCases {
		t.Run(c.name, func(t *testing.T) {
			var live *unstructured.Unstructured
			if c.old != "" {
				old := readtest.Objects(t, c.old)[0]
				var problems []bundle.Problem
				if live, problems, _ = crds.Check(t.Context(), old, old.Content, nil); len(problems) > 0 {
					t.Fatal(problems)
				}
			}
			o := readtest.Objects(t, c.yaml)[0]
			before := o.Content.DeepCopy()
			stored, problems, known := crds.Check(t.Context(), o, o.Content, live)
			if !known {
				t.Fatal("its kind is not known")
			}
			if !reflect.DeepEqual(o.Content, before) {
				t.Error("Check changed the object")
			}
			same(t, text(problems), c.want)
			if c.stored == "" {
				return
			}
			got, err := json.Marshal(stored.Object["spec"])
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != c.stored {
				t.Errorf("stored %s\nwant   %s", got, c.stored)
			}
		})
	}
}
