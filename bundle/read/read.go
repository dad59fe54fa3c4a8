// Package read turns text into a Bundle: files, YAML and JSON documents, Salt's
// renderings, values and their traps; then the identities and digests of its objects.
package read

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"brine/bundle"
	"brine/bundle/redact"
	"brine/bundle/sls"
)

// The values of Options.InputFormat.
const (
	FormatAuto      = "auto"
	FormatManifests = "manifests"
	FormatHigh      = "high"
	FormatLow       = "low"
)

// Options are what to read, and what to accept.
type Options struct {
	// Files are files, folders (their *.yaml, *.yml, *.json and *.sls by name)
	// or "-" for Stdin.
	Files     []string
	Recursive bool // into the folders of folders
	Stdin     io.Reader
	// InputFormat is auto (or ""), manifests, high or low.
	InputFormat string
	// AllowGenerateName lets objects pass that have metadata.generateName and
	// no name. Their ID has no name.
	AllowGenerateName bool
	// SkipInvalid leaves out objects that are wrong, and notes what is wrong with
	// them in Bundle.Invalid. What cannot be read at all is still an error.
	SkipInvalid bool
	// Partial returns the objects without problems along with the Problems, so that
	// more checks can run. Such a Bundle must not be applied.
	Partial bool
	// DuplicateKeys lets the last of equal keys count, with a warning. Keys that name the
	// object stay a problem.
	DuplicateKeys bool
	// IgnoreNonKubernetesStates skips Salt states that are not Kubernetes objects.
	IgnoreNonKubernetesStates bool
}

// Bundle reads and cleans all documents, in parallel, and reports all problems at
// once: the error is Problems (or the context's), and there is no bundle then but
// with Options.Partial. Identities are not settled before Resolve.
func Bundle(ctx context.Context, o Options) (*bundle.Bundle, error) {
	switch o.InputFormat {
	case "", FormatAuto, FormatManifests, FormatHigh, FormatLow:
	default:
		return nil, fmt.Errorf("unknown input format %q: use auto, manifests, high or low", o.InputFormat)
	}
	files, problems, warnings := readFiles(ctx, o)
	rendering, err := renderingOf(files)
	if err != nil {
		problems = append(problems, fileProblem(Stdin, err))
	}
	perFile := make([][]*document, len(files))
	each(ctx, len(files), func(i int) { perFile[i] = split(files[i].name, files[i].data) })
	docs := slices.Concat(perFile...)
	results := make([]reading, len(docs))
	each(ctx, len(docs), func(i int) { results[i] = readDocument(docs[i], o) })
	if ctx.Err() != nil {
		return nil, fmt.Errorf("read %s: %w", strings.Join(o.Files, ", "), context.Cause(ctx))
	}

	all := reading{problems: problems, warnings: warnings}
	for i, file := range files {
		in := reading{}
		for _, r := range results[:len(perFile[i])] {
			in.add(r)
		}
		if results = results[len(perFile[i]):]; in.empty() && len(files) > 1 {
			in.warnings = append(in.warnings, bundle.Problem{Source: bundle.Source{File: file.name}, Message: "is empty: nothing was rendered, or only comments"})
		}
		all.add(in)
	}
	wrong, odd := link(all.salt)
	problems = slices.Concat(all.problems, wrong)
	b := &bundle.Bundle{Objects: all.objects, Absent: all.absent, Warnings: append(all.warnings, odd...), Invalid: all.invalid, Rendering: rendering}
	if all.dropped > 0 {
		b.Warnings = append(b.Warnings, bundle.Problem{Message: fmt.Sprintf("%s: metadata that only a server sets (uid, resourceVersion, …) was dropped", bundle.Count(all.dropped, "object"))})
	}
	if len(problems) > 0 { // a problem may quote a value that a Secret of the bundle has
		var r redact.Redactor
		for _, o := range b.Objects {
			r.Public(o.ID.Name, o.ID.Namespace)
			r.Add(o.Content.Object)
		}
		for i := range problems {
			problems[i].Message = r.Text(problems[i].Message)
		}
	}
	err = problems.Err()
	if err != nil && !o.Partial {
		return nil, err
	}
	b.Partial = err != nil
	return b, err
}

// each calls do for 0..n-1 on all processors, until ctx ends.
func each(ctx context.Context, n int, do func(i int)) {
	bundle.Parallel(n, func(i int) {
		if ctx.Err() == nil {
			do(i)
		}
	})
}

// reading is what one document contains.
type reading struct {
	objects  []*bundle.Object
	absent   []*bundle.Absent
	problems bundle.Problems
	warnings []bundle.Problem
	invalid  []bundle.Problem // of objects that were left out
	salt     []*sls.Rendering
	dropped  int // objects that carried server-set metadata
	budget
	expanding []*yaml.Node // aliases that the object being read came through
}

// add adds what another document, or a part of this one, gave.
func (r *reading) add(other reading) {
	r.objects = append(r.objects, other.objects...)
	r.absent = append(r.absent, other.absent...)
	r.problems = append(r.problems, other.problems...)
	r.warnings = append(r.warnings, other.warnings...)
	r.invalid = append(r.invalid, other.invalid...)
	r.salt = append(r.salt, other.salt...)
	r.dropped += other.dropped
}

func (r *reading) empty() bool {
	return len(r.objects)+len(r.absent)+len(r.problems)+len(r.invalid)+len(r.salt) == 0
}

func readDocument(d *document, o Options) reading {
	var r reading
	roots, err := d.parse()
	if err != nil {
		r.problems = bundle.Problems{d.explain(err)}
		return r
	}
	for _, root := range roots {
		r.root(d, root, o)
	}
	return r
}

func (r *reading) root(d *document, root *yaml.Node, o Options) {
	if root.Kind == yaml.ScalarNode && root.Tag == yaml.NodeTagNull {
		return // an empty document
	}
	switch s := shape(root, o); {
	case s == sls.Rendered:
		r.rendered(d, root, o)
	case s != sls.Manifests:
		r.states(d, root, s, o)
	case o.InputFormat == FormatManifests:
		r.object(d, root, o, listDefaults{})
	default:
		r.object(d, sls.Unwrap(root), o, listDefaults{})
	}
}
