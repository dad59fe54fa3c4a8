package order

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"brine/bundle"
	"brine/bundle/read/readtest"
)

// folder reads one of the real bundles, which are beside the repository, with
// the slots that Salt left in them filled.
func folder(t testing.TB, name string) []*bundle.Object {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", "..", "shared", "bundles", name, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		if os.Getenv("BRINE_TEST_REQUIRED") == "1" {
			t.Fatalf("no bundle at ../shared/bundles/%s, and BRINE_TEST_REQUIRED=1", name)
		}
		t.Skipf("SKIPPED: no bundle at ../shared/bundles/%s", name)
	}
	var all strings.Builder
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(bytes.ReplaceAll(text, []byte("__slot__:salt:"), []byte("filled ")))
		all.WriteString("\n---\n")
	}
	return readtest.Objects(t, all.String())
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
		for _, e := range g.External[i] {
			fmt.Fprintf(&b, "  external %s: %s%s\n", bundle.Name(e.On), e.Reason, e.similar)
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
