package read

import (
	"cmp"
	"fmt"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"brine/bundle"
	"brine/bundle/sls"
)

// shape is what a document's root is to be read as.
func shape(root *yaml.Node, o Options) sls.Shape {
	forced := sls.Manifests
	switch o.InputFormat {
	case FormatManifests:
		return sls.Manifests
	case FormatHigh:
		forced = sls.High
	case FormatLow:
		forced = sls.Low
	}
	found := sls.Detect(root)
	if forced != sls.Manifests && found != sls.Errors && found != sls.Empty {
		return forced
	}
	return found
}

// rendered reads the bundle that is the text inside {"local": "…"}. Lines
// count from the start of that text.
func (r *reading) rendered(d *document, root *yaml.Node, o Options) {
	text, _ := sls.Text(root)
	o.InputFormat = FormatManifests
	for _, inner := range split(d.file+" (the text in it)", []byte(text)) {
		r.add(readDocument(inner, o))
	}
}

// states is a document of Salt's states, until those of all documents are read.
type states struct {
	*document
	*sls.Rendering
	present [][]*bundle.Object // by the rendering's documents
}

// states reads the manifests of Salt's states; link sees to their requisites.
func (r *reading) states(d *document, root *yaml.Node, s sls.Shape, o Options) {
	one := &states{document: d, Rendering: sls.Decode(root, s, sls.Options{IgnoreNonKubernetesStates: o.IgnoreNonKubernetesStates})}
	r.salt = append(r.salt, one)
	one.present = make([][]*bundle.Object, len(one.Documents))
	for i := range one.Documents {
		doc := &one.Documents[i]
		objects := r.state(d, *doc, o)
		doc.Node = nil
		if !doc.Absent {
			one.present[i] = objects
			r.objects = append(r.objects, objects...)
			continue
		}
		for _, obj := range objects {
			r.absent = append(r.absent, &bundle.Absent{ID: obj.ID, GVK: obj.GVK, Source: obj.Source})
		}
	}
}

// link gives the objects of Salt's states what their requisites ask for, in
// whichever document it is.
func link(all []*states) (problems bundle.Problems, warnings []bundle.Problem) {
	present := map[*sls.Rendering][][]*bundle.Object{}
	var renderings []*sls.Rendering
	for _, one := range all {
		renderings = append(renderings, one.Rendering)
		present[one.Rendering] = one.present
	}
	sls.Link(renderings...)
	for _, one := range all {
		for _, p := range one.Problems {
			problems = append(problems, one.place(p))
		}
		for _, w := range one.Warnings {
			warnings = append(warnings, one.place(w))
		}
		for i, doc := range one.Documents {
			for _, req := range doc.Requires {
				if on := req.In.Documents[req.Index]; on.Absent {
					warnings = append(warnings, afterAbsent(one.present[i], on, req.Reason)...)
				}
				for _, obj := range one.present[i] {
					for _, on := range present[req.In][req.Index] {
						obj.Requisites = append(obj.Requisites, bundle.Requisite{Object: on, Reason: req.Reason})
					}
				}
			}
		}
	}
	return problems, warnings
}

func (s *states) place(p sls.Problem) bundle.Problem {
	return bundle.Problem{Source: bundle.Source{File: cmp.Or(p.File, s.file), Line: s.line - 1 + p.Line, State: p.State, SLS: p.SLS}, Message: p.Message}
}

// state reads one state's manifest; its problems name the state.
func (r *reading) state(d *document, doc sls.Document, o Options) []*bundle.Object {
	one := reading{budget: r.budget}
	one.object(d, doc.Node, o, listDefaults{})
	for _, obj := range one.objects {
		inState(&obj.Source, doc)
	}
	for _, problems := range [][]bundle.Problem{one.problems, one.invalid, one.warnings} {
		for i := range problems {
			inState(&problems[i].Source, doc)
		}
	}
	objects := one.objects
	one.objects, r.budget = nil, one.budget
	r.add(one)
	return objects
}

func inState(source *bundle.Source, doc sls.Document) {
	source.State, source.SLS, source.File = doc.State, doc.SLS, cmp.Or(doc.File, source.File)
}

// afterAbsent warns of the one order that cannot be kept.
func afterAbsent(objects []*bundle.Object, absent sls.Document, reason string) (warnings []bundle.Problem) {
	for _, obj := range objects {
		warnings = append(warnings, bundle.Problem{Source: obj.Source, ID: obj.ID, Message: fmt.Sprintf(
			"%s: state %q removes its object, and objects are removed only after all others are applied", reason, absent.State)})
	}
	return warnings
}
