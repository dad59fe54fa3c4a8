package validate

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"brine/bundle"
	"brine/bundle/cluster/clustertest"
	"brine/bundle/read"
)

// mistake is an object of a real bundle with one thing in it that people get wrong.
type mistake struct {
	object *bundle.Object
	what   string // the path and the new value
	found  []string
	answer error
}

// TestMistakes asks a real API server about mistakes in objects of real bundles: nothing that
// it accepts is a problem for Offline, and of what it refuses at least nine
// tenths of what testdata/mistakes.txt has are found (BRINE_UPDATE=1 writes it).
func TestMistakes(t *testing.T) {
	clustertest.Shared(t).Needs(t, 37, "all fields of the types that brine checks with")
	files, err := filepath.Glob("../../../shared/bundles/*/*.yaml")
	if more, _ := filepath.Glob("../../../shared/bundles/upstream/*-new/*.yaml"); err == nil {
		files = append(files, more...)
	}
	if len(files) == 0 {
		if os.Getenv("BRINE_TEST_REQUIRED") == "1" {
			t.Fatal("no bundles at ../../../shared/bundles, and BRINE_TEST_REQUIRED=1")
		}
		t.Skip("SKIPPED: no bundles at ../../../shared/bundles")
	}
	a := newAsker(t)
	all := mistakes(t, files)
	bundle.Parallel(len(all), func(i int) {
		m := all[i]
		m.answer = a.ask(context.WithoutCancel(t.Context()), m.object.Content)
		problems, _, err := Offline([]*bundle.Object{m.object}, Options{})
		if err != nil {
			m.found = []string{err.Error()}
		}
		m.found = append(m.found, slices.Concat(text(problems), text(Metadata(m.object)))...)
	})
	refused, found := map[string]int{}, map[string]int{}
	for _, m := range all {
		kind := m.object.GVK.Kind
		switch {
		case m.answer == nil && len(m.found) > 0:
			t.Errorf("%s, %s: the server accepts it, but: %v", bundle.Name(m.object.ID), m.what, m.found)
		case m.answer != nil && invalid(m.answer):
			refused[kind]++
			if len(m.found) > 0 {
				found[kind]++
			} else {
				t.Logf("not found: %s, %s: %v", bundle.Name(m.object.ID), m.what, m.answer)
			}
		case m.answer != nil:
			t.Logf("not about the object: %s, %s: %v", bundle.Name(m.object.ID), m.what, m.answer)
		}
	}
	var table strings.Builder
	sum, of := 0, 0
	for _, kind := range slices.Sorted(maps.Keys(refused)) {
		fmt.Fprintf(&table, "%s: %d of %d\n", kind, found[kind], refused[kind])
		sum, of = sum+found[kind], of+refused[kind]
	}
	found["all"], refused["all"] = sum, of
	fmt.Fprintf(&table, "all: %d of %d\n", sum, of)
	golden := "testdata/mistakes.txt"
	if os.Getenv("BRINE_UPDATE") != "" {
		if err := os.WriteFile(golden, []byte(table.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(want)) {
		var kind string
		var was, outOf int
		if _, err := fmt.Sscanf(strings.Replace(line, ":", " ", 1), "%s %d of %d", &kind, &was, &outOf); err != nil {
			t.Fatal(line, err)
		}
		if found[kind]*outOf*10 < was*refused[kind]*9 {
			t.Errorf("%s: %d of %d are found, before it was %d of %d", kind, found[kind], refused[kind], was, outOf)
		}
	}
	t.Logf("found of what the server refuses:\n%s", &table)
}

// invalid is a refusal for what the object is, whatever else the cluster has.
func invalid(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || strings.Contains(err.Error(), "failed to create typed patch object")
}

// mistakes makes them of the built-in kinds: of each at most eight objects, and of each object
// those of the issue and forty more, always the same.
func mistakes(t *testing.T, files []string) []*mistake {
	count := map[schema.GroupKind]int{}
	var all []*mistake
	objects := accepted(t)
	for _, file := range files {
		objects = append(objects, readObjects(t, read.Options{Files: []string{file}, IgnoreNonKubernetesStates: true})...)
	}
	for n, o := range objects {
		gk := o.GVK.GroupKind()
		if count[gk]++; known(o.GVK) == nil || gk == bundle.CRDKind || count[gk] > 8 || strings.Contains(o.GVK.Version, "alpha") {
			continue
		}
		var of []*mistake
		var walk func(v any, path []any)
		try := func(path []any, v any) {
			wrong := *o
			wrong.Content = o.Content.DeepCopy()
			set(wrong.Content.Object, path, v)
			wrong.ID.Name = wrong.Content.GetName()
			what := fmt.Sprintf("%v=%.40v", path, v)
			of = append(of, &mistake{object: &wrong, what: what})
		}
		walk = func(v any, path []any) {
			switch v := v.(type) {
			case map[string]any:
				for _, k := range slices.Sorted(maps.Keys(v)) {
					if at := append(slices.Clone(path), k); len(path) > 0 || k != "apiVersion" && k != "kind" && k != "status" {
						if k != "name" || len(path) != 1 {
							try(at, nil)
						}
						walk(v[k], at)
					}
				}
			case []any:
				try(path, []any{})
				for i, item := range v[:min(len(v), 3)] {
					if i == 0 {
						try(path, append(slices.Clone(v), item))
					}
					walk(item, append(slices.Clone(path), i))
				}
			case string:
				for _, s := range []string{"", "Web_1", "has space", "-x", strings.Repeat("x", 300), "010.0.0.1", "x.static.k8s.io", "{{ .Release.Name }}"} {
					if s != "" || len(path) != 2 || path[1] != "name" {
						try(path, s)
					}
				}
			case int64:
				for _, n := range []int64{-3, 0, 99999} {
					try(path, n)
				}
			}
		}
		walk(o.Content.Object, nil)
		r := rand.New(rand.NewPCG(uint64(n), 1))
		r.Shuffle(len(of), func(i, j int) { of[i], of[j] = of[j], of[i] })
		all = append(all, of[:min(len(of), 40)]...)
	}
	return all
}

// set writes a value anywhere; nil takes a field out.
func set(in any, path []any, v any) {
	parent, last := at(in, path[:len(path)-1]), path[len(path)-1]
	switch p := parent.(type) {
	case map[string]any:
		if v == nil {
			delete(p, last.(string))
			return
		}
		p[last.(string)] = v
	case []any:
		p[last.(int)] = v
	}
}
