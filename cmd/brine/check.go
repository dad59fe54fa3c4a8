package main

import (
	"errors"

	"github.com/spf13/cobra"

	"brine/bundle"
	"brine/bundle/apply"
	"brine/bundle/order"
	"brine/bundle/ready"
	"brine/cmd/brine/output"
)

func newCheck(s streams) *cobra.Command {
	var in input
	var format, namespace string
	cmd := &cobra.Command{
		Use: "check -f BUNDLE", Short: "Read and order a bundle without a cluster, and tell all that is wrong with it", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			b, err := in.read(cmd, s)
			if b == nil {
				return &coded{apply.ExitBadBundle, err}
			}
			problems := problemsOf(err)
			problems = append(problems, problemsOf(b.Resolve(bundle.Resolver{Namespace: namespace}))...)
			problems = append(problems, b.Digests()...)
			problems = append(problems, problemsOf(b.FillSlots(nil))...)
			g, wrong := order.Build(b.Objects, order.Options{External: func(bundle.ID) bool { return false }})
			problems = append(problems, wrong...)
			for _, o := range b.Objects {
				_, wrong := ready.Compile(o)
				problems = append(problems, wrong...)
			}
			if err := output.Check(s.out, format, b, g, problems); err != nil {
				return err
			}
			if len(problems) > 0 {
				return &exit{apply.ExitBadBundle}
			}
			return nil
		},
	}
	in.flags(cmd.Flags())
	cmd.Flags().StringVarP(&format, "output", "o", "text", "text, json or dot (Graphviz)")
	cmd.Flags().StringVarP(&namespace, "namespace", "n", "default", "namespace of namespaced objects that name none")
	return cmd
}

func problemsOf(err error) []bundle.Problem {
	var problems bundle.Problems
	if errors.As(err, &problems) {
		return problems
	}
	if err != nil {
		return []bundle.Problem{{Message: err.Error()}}
	}
	return nil
}
