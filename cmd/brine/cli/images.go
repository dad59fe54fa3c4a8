package cli

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"brine/bundle"
	"brine/bundle/images"
	"brine/bundle/read"
	"brine/cmd/brine/output"
)

func newImages(s Streams) *cobra.Command {
	var in input
	var format string
	var since []string
	cmd := &cobra.Command{
		Use: "images -f BUNDLE [--since BUNDLE]", Short: "List the container images of a bundle", Args: cobra.NoArgs,
		Long: `Lists the container images of a bundle, for a registry of the site's own: those of pod
specs, and the fields of custom resources that their CRD, which has to be in the bundle,
calls image or ...Image. Arguments and variables that look like an image, and fields of
custom resources without a CRD, are guesses, and marked so.

With --since only images that the other bundle has not, and those that it alone has.`,
	}
	in.flags(cmd)
	outputFlag(cmd, &format, "text or json", "text", "json")
	cmd.Flags().StringSliceVar(&since, "since", nil, "files and folders of another bundle: list only what differs from it")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		uses, err := imagesOf(cmd, s, in)
		if err != nil {
			return err
		}
		if len(since) == 0 {
			return output.Images(s.Out, format, uses, nil, false)
		}
		other := in
		other.files = since
		before, err := imagesOf(cmd, s, other)
		if err != nil {
			return fmt.Errorf("--since: %w", err)
		}
		return output.Images(s.Out, format, without(uses, before), without(before, uses), true)
	}
	return cmd
}

func imagesOf(cmd *cobra.Command, s Streams, in input) ([]images.Use, error) {
	b, err := in.read(cmd.Context(), s)
	if err != nil {
		return nil, err
	}
	if problems := bundle.ProblemsOf(read.Resolve(b, read.Resolver{Quiet: true})); len(problems) > 0 {
		return nil, bundle.Problems(problems)
	}
	return images.InBundle(b.Objects), nil
}

// without are the uses of images that the others do not use.
func without(uses, others []images.Use) []images.Use {
	there := map[string]bool{}
	for _, use := range others {
		there[use.Image] = true
	}
	var rest []images.Use
	for _, use := range uses {
		if !there[use.Image] {
			rest = append(rest, use)
		}
	}
	return rest
}

// lacking are the images of a bundle that the file of --images-in does not list.
func lacking(b *bundle.Bundle, path string) ([]bundle.Problem, error) {
	if path == "" {
		return nil, nil
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("--images-in: %w", err)
	}
	defer file.Close() //nolint:errcheck // it is only read
	list, err := images.ReadList(file)
	if err != nil {
		return nil, fmt.Errorf("--images-in: %w", err)
	}
	problems, warnings := images.Lacking(b.Objects, list, path)
	b.Warnings = append(b.Warnings, warnings...)
	return problems, nil
}
