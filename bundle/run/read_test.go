package run

import (
	"os"
	"testing"

	"brine/bundle/order"
	"brine/bundle/plan"
	"brine/bundle/read"
	"brine/inventory"
)

// BenchmarkReadOrderPlan is what scripts/bench measures for the time that a
// bundle takes before anything is asked or validated: the file BRINE_BENCH_BUNDLE.
func BenchmarkReadOrderPlan(b *testing.B) {
	file := os.Getenv("BRINE_BENCH_BUNDLE")
	if file == "" {
		b.Skip("BRINE_BENCH_BUNDLE names no bundle")
	}
	for b.Loop() {
		in, err := read.Bundle(b.Context(), read.Options{Files: []string{file}})
		if err == nil {
			err = read.Resolve(in, read.Resolver{Namespace: "default", Quiet: true})
		}
		if err != nil {
			b.Fatal(err)
		}
		graph, problems := order.Build(in.Objects, order.Options{})
		if len(problems) > 0 {
			b.Fatal(problems)
		}
		p, problems := plan.Build(plan.Input{Graph: graph, Inventory: inventory.Empty("default", "bench", "")})
		if len(problems) > 0 {
			b.Fatal(problems)
		}
		b.ReportMetric(float64(len(p.Steps)), "objects")
	}
}
