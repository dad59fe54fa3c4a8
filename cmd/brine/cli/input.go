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
	read.Options
	empty   bool   // a bundle without objects is no mistake
	ifEmpty string // what else a command says about one
}

func (in *input) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	in.InputFormat = read.FormatAuto
	f.StringSliceVarP(&in.Files, "filename", "f", nil, "files and folders of the bundle; - is standard input")
	f.BoolVarP(&in.Recursive, "recursive", "R", false, "read folders and all folders below them")
	enumFlag(cmd, &in.InputFormat, "input-format", "", "auto, manifests, high (Salt's high data) or low (its low data)",
		read.FormatAuto, read.FormatManifests, read.FormatHigh, read.FormatLow)
	f.BoolVar(&in.AllowGenerateName, "allow-generate-name", false, "allow objects with generateName: each run creates new ones, which are not tracked")
	f.BoolVar(&in.IgnoreNonKubernetesStates, "ignore-foreign-states", false, "ignore Salt states that are no Kubernetes objects")
}

func (in *input) read(ctx context.Context, s Streams) (*bundle.Bundle, error) {
	if len(in.Files) == 0 {
		return nil, errNoBundle
	}
	in.Stdin = s.In
	b, err := read.Bundle(ctx, in.Options)
	if err == nil && len(b.Objects)+len(b.Absent)+len(b.Invalid) == 0 && !in.empty {
		names := strings.Join(in.Files, ", ")
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
	for _, file := range in.Files {
		if path, named := namedFile(file); named {
			sources = append(sources, filepath.Join(filepath.Base(filepath.Dir(path)), filepath.Base(path)))
		}
	}
	return sources
}

var errNoBundle = errors.New("no bundle: give files or folders with -f, or - for standard input")
