package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"brine/bundle"
	"brine/bundle/apply"
	"brine/bundle/validate"
	"brine/cmd/brine/output"
)

func newCheck(s streams) *cobra.Command {
	var in input
	var format, namespace, kubernetes string
	cmd := &cobra.Command{
		Use: "check -f BUNDLE", Short: "Read, order and validate a bundle without a cluster, and tell all that is wrong with it", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			b, err := in.read(cmd, s)
			if b == nil {
				return &coded{apply.ExitBadBundle, err}
			}
			c, checkErr := apply.Check(b, namespace, kubernetes)
			if checkErr != nil {
				return &coded{apply.ExitBadBundle, checkErr}
			}
			problems := append(problemsOf(err), c.Problems...)
			problems = append(problems, c.Faults...)
			g := c.Graph
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
	kubernetesVersion(cmd.Flags(), &kubernetes)
	cmd.Flags().StringVarP(&namespace, "namespace", "n", "default", "namespace of namespaced objects that name none")
	return cmd
}

func problemsOf(err error) []bundle.Problem {
	if problems, ok := errors.AsType[bundle.Problems](err); ok {
		return problems
	}
	if err != nil {
		return []bundle.Problem{{Message: err.Error()}}
	}
	return nil
}

func kubernetesVersion(f *pflag.FlagSet, version *string) {
	known := validate.Versions()
	f.StringVar(version, "kubernetes-version", "", fmt.Sprintf("what a server is taken to serve where none is asked: %s to %s (default the newest)", known[len(known)-1], known[0]))
}
