package read

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
)

// realSize is a bundle as large as the largest real one: 223 documents in
// 4.8 MB, most of it dashboards and CRDs.
func realSize() []byte {
	var b bytes.Buffer
	panel := `          {"title": "{{instance}}", "type": "graph", "targets": [{"expr": "sum(rate(x{job=\"y\"}[5m])) by (instance)"}]},` + "\n"
	for i := range 223 {
		switch {
		case i%10 == 0: // a CRD
			fmt.Fprintf(&b, "---\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: t%d.example.com\nspec:\n  group: example.com\n  names: {kind: T%d}\n  versions:\n  - name: v1\n    served: true\n    schema:\n      openAPIV3Schema:\n        properties:\n", i, i)
			for j := range 700 {
				fmt.Fprintf(&b, "          field%d:\n            description: What this field means, in a sentence that is\n              longer than one line can be.\n            type: string\n", j)
			}
		case i%10 < 4: // a dashboard
			fmt.Fprintf(&b, "---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: d%d\n  namespace: n\ndata:\n  dashboard.json: |\n    {\"panels\": [\n%s    ]}\n", i, strings.Repeat(panel, 300))
		default:
			fmt.Fprintf(&b, "---\n%s", strings.Replace(deployment("registry/x:1", ""), "name: a", fmt.Sprintf("name: a%d", i), 1))
		}
	}
	return b.Bytes()
}

func BenchmarkRead(b *testing.B) {
	text := realSize()
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		bundle, err := Bundle(context.Background(), Options{Files: []string{Stdin}, Stdin: bytes.NewReader(text)})
		if err != nil || len(bundle.Objects) != 223 {
			b.Fatal(err)
		}
	}
}

func BenchmarkResolve(b *testing.B) {
	bundle, err := Bundle(context.Background(), Options{Files: []string{Stdin}, Stdin: bytes.NewReader(realSize())})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := Resolve(bundle, Resolver{}); err != nil {
			b.Fatal(err)
		}
	}
}

// longList is one List of ConfigMaps, of seven lines each behind the first three.
func longList(n int) []byte {
	var b bytes.Buffer
	b.WriteString("apiVersion: v1\nkind: List\nitems:\n")
	for i := range n {
		fmt.Fprintf(&b, "- apiVersion: v1\n  kind: ConfigMap\n  metadata:\n    name: c%d\n    namespace: ns\n  data:\n    key: value\n", i)
	}
	return b.Bytes()
}

// BenchmarkLines: each item of a list has a problem. It must not take longer for each item of a
// longer list.
func BenchmarkLines(b *testing.B) {
	for _, n := range []int{1000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			text := longList(n)
			for b.Loop() {
				bundle, err := Bundle(context.Background(), Options{Files: []string{Stdin}, Stdin: bytes.NewReader(text)})
				if err != nil || len(bundle.Objects) != n {
					b.Fatal(err)
				}
				for _, o := range bundle.Objects {
					_ = o.Line("data.key")
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/item")
		})
	}
}

func TestLinesOfALongList(t *testing.T) {
	const n = 20_000
	bundle, err := Bundle(t.Context(), Options{Files: []string{Stdin}, Stdin: bytes.NewReader(longList(n))})
	if err != nil || len(bundle.Objects) != n {
		t.Fatal(err)
	}
	for i, o := range bundle.Objects {
		if got, want := [...]int{o.Source.Line, o.Line("metadata.namespace"), o.Line("data.key"), o.Line("data.none")}, [...]int{7*i + 4, 7*i + 8, 7*i + 10, 7*i + 9}; got != want {
			t.Fatalf("item %d: lines %v, want %v", i, got, want)
		}
	}
}
