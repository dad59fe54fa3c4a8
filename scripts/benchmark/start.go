package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// The works that show what it costs to begin.
const (
	nothing  = "version"
	five     = "five objects, start to end"
	fiveMore = "five objects, nothing changed"
	oneState = "status of one object"
	reading  = "4.8 MB of 223 objects read, ordered, planned"
)

var startWorks = []string{nothing, five, fiveMore, oneState, reading}

func (b *bench) starts(ctx context.Context, run int) error {
	if err := b.take(ctx, nil, command{args: []string{b.brine, "version"}}, result{Tool: "brine", Work: nothing, Run: run}); err != nil {
		return err
	}
	large := filepath.Join(b.work, "large.yaml")
	if err := os.WriteFile(large, realSize(), 0o666); err != nil {
		return err
	}
	c := command{env: []string{"BRINE_BENCH_BUNDLE=" + large}, args: []string{b.reader, "-test.run=^$", "-test.bench=ReadOrderPlan", "-test.benchtime=1x"}}
	if err := b.take(ctx, nil, c, result{Tool: "brine", Work: reading, Count: 223, Run: run}); err != nil {
		return err
	}
	made, err := generate(filepath.Join(b.work, "5"), 5)
	if err != nil {
		return err
	}
	return b.onFresh(ctx, 0, func(s *server, kubeconfig string) error {
		for _, tool := range b.tools {
			parallel := 0
			if tool == "raw" {
				parallel = b.parallel[0]
			}
			for _, w := range []struct{ work, as string }{{first, five}, {unchanged, fiveMore}, {destroy, "destroy of five"}} {
				r := result{Tool: tool, Work: w.as, Count: 5, Run: run, Parallel: parallel}
				if err := b.take(ctx, s, b.mixedCommand(tool, w.work, kubeconfig, made, parallel), r); err != nil {
					return err
				}
			}
		}
		return b.oneObject(ctx, s, kubeconfig, run)
	})
}

// oneObject compares brine's status of an inventory with one object with one GET.
func (b *bench) oneObject(ctx context.Context, s *server, kubeconfig string, run int) error {
	made, err := generate(filepath.Join(b.work, "1"), 1)
	if err != nil {
		return err
	}
	if _, messages, err := launch(ctx, filepath.Join(b.work, "said"), nil, b.mixedCommand("brine", first, kubeconfig, made, 0).args); err != nil {
		return fmt.Errorf("apply one object: %w\n%s", err, messages)
	}
	for _, c := range []struct {
		tool string
		args []string
	}{
		{"raw", []string{b.self, "raw", "get", "--kubeconfig", kubeconfig, "--requests", made.requests, "--parallel", "1"}},
		{"brine", []string{b.brine, "status", "--kubeconfig", kubeconfig, "--inventory", "default/bench"}},
	} {
		if err := b.take(ctx, s, command{args: c.args}, result{Tool: c.tool, Work: oneState, Run: run}); err != nil {
			return err
		}
	}
	return nil
}

// realSize is a bundle as large as the largest real one: 223 documents in
// 4.8 MB, most of it dashboards and CRDs.
func realSize() []byte {
	var b bytes.Buffer
	panel := `          {"title": "{{instance}}", "type": "graph", "targets": [{"expr": "sum(rate(x{job=\"y\"}[5m])) by (instance)"}]},` + "\n"
	for i := range 223 {
		switch {
		case i%10 == 0: // a CRD
			fmt.Fprintf(&b, "---\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: t%d.example.com\nspec:\n  group: example.com\n  scope: Namespaced\n  names: {kind: T%d, plural: t%d}\n  versions:\n  - name: v1\n    served: true\n    storage: true\n    schema:\n      openAPIV3Schema:\n        type: object\n        properties:\n", i, i, i)
			for j := range 700 {
				fmt.Fprintf(&b, "          field%d:\n            description: What this field means, in a sentence that is\n              longer than one line can be.\n            type: string\n", j)
			}
		case i%10 < 4: // a dashboard
			fmt.Fprintf(&b, "---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: d%d\n  namespace: n\ndata:\n  dashboard.json: |\n    {\"panels\": [\n%s    ]}\n", i, strings.Repeat(panel, 300))
		default:
			fmt.Fprintf(&b, "---\napiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: a%d\n  namespace: n\nspec:\n  selector: {matchLabels: {app: a%d}}\n  template:\n    metadata: {labels: {app: a%d}}\n    spec:\n      containers:\n      - {name: c, image: \"registry/x:1\"}\n", i, i, i)
		}
	}
	return b.Bytes()
}
