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
		other.Files = since
		before, err := imagesOf(cmd, s, other)
		if err != nil {
			return fmt.Errorf("--since: %w", err)
		}
		return output.Images(s.Out, format, images.Without(uses, before), images.Without(before, uses), true)
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
