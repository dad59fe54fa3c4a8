package order

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"brine/bundle"
)

// objects reads YAML documents that are known to be good. Cluster-scoped
// objects lose their namespace, as they do when a server knows them.
func objects(t testing.TB, file, text string) []*bundle.Object {
	t.Helper()
	var objs []*bundle.Object
	line := 1
	for doc := range strings.SplitSeq(text, "\n---\n") {
		at := line
		line += strings.Count(doc, "\n") + 2
		for doc != strings.TrimLeft(doc, "\n") {
			doc, at = doc[1:], at+1
		}
		content := map[string]any{}
		if err := yaml.Unmarshal([]byte(doc), &content); err != nil {
			t.Fatalf("%s:%d: %v", file, at, err)
		}
		if len(content) == 0 {
			continue
		}
		u := &unstructured.Unstructured{Object: content}
		if clusterScoped[u.GroupVersionKind().GroupKind()] {
			u.SetNamespace("")
		}
		objs = append(objs, &bundle.Object{
			ID:      bundle.ID{GroupKind: u.GroupVersionKind().GroupKind(), Namespace: u.GetNamespace(), Name: u.GetName()},
			GVK:     u.GroupVersionKind(),
			Content: u,
			Source:  bundle.Source{File: file, Line: at},
		})
	}
	return objs
}

// folder reads one of the real bundles.
func folder(t testing.TB, name string) []*bundle.Object {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", "..", "shared", "bundles", name, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		if os.Getenv("BRINE_TEST_REQUIRED") == "1" {
			t.Fatalf("../shared/bundles/%s is not there", name)
		}
		t.Skipf("../shared/bundles/%s is not there: the real bundles are NOT tested", name)
	}
	var objs []*bundle.Object
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		text = bytes.TrimSuffix(text, []byte("\n---\n"))
		objs = append(objs, objects(t, filepath.Base(f), string(text))...)
	}
	return objs
}

// print shows a graph as the tests expect it: each object that needs something,
// what it needs, then what was dropped and what is wrong.
func print(g *Graph, problems []bundle.Problem) string {
	var b strings.Builder
	edge := func(e Edge) {
		strength := ""
		if !e.Weak {
			strength = " !"
		}
		fmt.Fprintf(&b, "  %s %s%s: %s\n", e.Want, bundle.Name(g.Objects[e.To].ID), strength, e.Reason)
	}
	for i, o := range g.Objects {
		if len(g.Needs[i]) == 0 && len(g.External[i]) == 0 {
			continue
		}
		fmt.Fprintln(&b, bundle.Name(o.ID))
		for _, e := range g.Needs[i] {
			edge(e)
		}
		for _, id := range g.External[i] {
			fmt.Fprintf(&b, "  external %s\n", bundle.Name(id))
		}
	}
	for _, e := range g.Dropped {
		fmt.Fprintf(&b, "dropped: %s\n", bundle.Name(g.Objects[e.From].ID))
		edge(e)
	}
	for _, p := range problems {
		fmt.Fprintf(&b, "problem: %v\n", p.Error())
	}
	for _, p := range g.Notices {
		fmt.Fprintf(&b, "notice: %v\n", p.Error())
	}
	return b.String()
}
