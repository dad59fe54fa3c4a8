package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"brine/bundle"
	"brine/bundle/read"
)

// input are the options of the commands that read a bundle.
type input struct {
	files       []string
	recursive   bool
	format      string
	generate    bool
	foreign     bool
	skipInvalid bool
	partial     bool
	duplicates  bool
	empty       bool   // a bundle without objects is no mistake
	ifEmpty     string // what else a command says about one
}

func (in *input) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	in.format = read.FormatAuto
	f.StringSliceVarP(&in.files, "filename", "f", nil, "files and folders of the bundle; - is standard input")
	f.BoolVarP(&in.recursive, "recursive", "R", false, "read folders and all folders below them")
	enumFlag(cmd, &in.format, "input-format", "", "auto, manifests, high (Salt's high data) or low (its low data)",
		read.FormatAuto, read.FormatManifests, read.FormatHigh, read.FormatLow)
	f.BoolVar(&in.generate, "allow-generate-name", false, "allow objects with generateName: each run creates new ones, which are not tracked")
	f.BoolVar(&in.foreign, "ignore-foreign-states", false, "ignore Salt states that are no Kubernetes objects")
}

func (in *input) read(ctx context.Context, s Streams) (*bundle.Bundle, error) {
	if len(in.files) == 0 {
		return nil, errNoBundle
	}
	b, err := read.Bundle(ctx, read.Options{
		Files: in.files, Recursive: in.recursive, Stdin: s.In, InputFormat: in.format,
		AllowGenerateName: in.generate, IgnoreNonKubernetesStates: in.foreign, SkipInvalid: in.skipInvalid, Partial: in.partial, DuplicateKeys: in.duplicates,
	})
	if err == nil && len(b.Objects)+len(b.Absent)+len(b.Invalid) == 0 && !in.empty {
		names := strings.Join(in.files, ", ")
		if names == "-" {
			names = "standard input"
		}
		return nil, fmt.Errorf("%s: the bundle is empty: nothing was rendered, or only comments%s", names, in.ifEmpty)
	}
	return b, err
}

// sources are the files and folders as a revision keeps them.
func (in *input) sources() []string {
	var sources []string
	for _, file := range in.files {
		if path, err := filepath.Abs(file); err == nil && file != "-" {
			sources = append(sources, filepath.Join(filepath.Base(filepath.Dir(path)), filepath.Base(path)))
		}
	}
	return sources
}

var errNoBundle = errors.New("no bundle: give files or folders with -f, or - for standard input")
