package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"brine/bundle"
	"brine/bundle/check"
	"brine/bundle/ready"
	"brine/bundle/remedy"
	"brine/bundle/report"
	"brine/bundle/validate"
	"brine/cmd/brine/output"
)

func newCheck(s Streams) *cobra.Command {
	var in input
	var format, namespace, kubernetes, imagesIn, readiness string
	var verbose bool
	var denyFiles []string
	cmd := &cobra.Command{
		Use: "check -f BUNDLE", Short: "Read, order and validate a bundle without a cluster, and report all problems", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			in.Partial = true
			b, err := in.read(cmd.Context(), s)
			if b == nil {
				return err
			}
			kinds, wrong := readRules("readiness", readiness, ready.ReadTable)
			if wrong != nil {
				return wrong
			}
			c, checkErr := check.Bundle(b, namespace, kubernetes, kinds)
			if checkErr != nil {
				return checkErr
			}
			deny, wrong := readDeny(denyFiles)
			if wrong != nil {
				return wrong
			}
			denied, wrong := c.Denied(cmd.Context(), b, deny, kubernetes)
			if wrong != nil {
				return wrong
			}
			missing, err2 := lacking(b, imagesIn)
			if err2 != nil {
				return err2
			}
			c.Problems = slices.Concat(c.Problems, missing, denied)
			problems := together(bundle.ProblemsOf(err), slices.Concat(c.Problems, c.Faults))
			rules := c.Rules
			if !verbose {
				rules = nil
			}
			code := report.ExitOK
			if len(problems) > 0 {
				code = report.ExitBadBundle
			}
			return printed("print the check", output.Check(s.Out, format, b, c.Graph, rules, problems, verbose), code)
		},
	}
	in.flags(cmd)
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "also print the objects, in the order in which they are applied, and what each needs, and which rule decides when it is ready")
	in.ifEmpty = ": " + remedy.AllowEmpty + " if this is intended"
	cmd.Flags().BoolVar(&in.empty, "allow-empty", false, "let a bundle without objects pass")
	outputFlag(cmd, &format, "text, json or dot (Graphviz)", "text", "json", "dot")
	kubernetesVersion(cmd.Flags(), &kubernetes)
	readinessFlag(cmd.Flags(), &readiness)
	denyFlag(cmd.Flags(), &denyFiles)
	cmd.Flags().StringVar(&imagesIn, "images-in", "", "file with the images that a registry has, one a line: every other image of the bundle is a problem")
	cmd.Flags().StringVarP(&namespace, "namespace", "n", "default", "namespace of objects that do not set one")
	return cmd
}

// together are all problems by file and line. What reading found wrong with a
// field is not reported again.
func together(reading, checking []bundle.Problem) bundle.Problems {
	all := bundle.Problems(slices.Clone(reading))
	for _, c := range checking {
		if !slices.ContainsFunc(reading, func(r bundle.Problem) bool {
			return r.Source.File == c.Source.File && r.ID.GroupKind == c.ID.GroupKind && r.ID.Name == c.ID.Name &&
				r.Path != "" && (inside(c.Path, r.Path) || inside(r.Path, c.Path))
		}) {
			all = append(all, c)
		}
	}
	return all.Sorted()
}

// inside says whether a field is another one, or in it.
func inside(path, other string) bool {
	rest, ok := strings.CutPrefix(path, other)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

func kubernetesVersion(f *pflag.FlagSet, version *string) {
	known := validate.Versions()
	f.StringVar(version, "kubernetes-version", "", fmt.Sprintf("version of Kubernetes to validate for where no server is asked: %s to %s (default the newest)", known[len(known)-1], known[0]))
}
