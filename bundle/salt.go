package bundle

import (
	"fmt"

	"sigs.k8s.io/kustomize/kyaml/yaml"

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
		one := readDocument(inner, o)
		r.objects = append(r.objects, one.objects...)
		r.problems = append(r.problems, one.problems...)
		r.warnings = append(r.warnings, one.warnings...)
		r.invalid = append(r.invalid, one.invalid...)
		r.dropped += one.dropped
	}
}

// states reads the manifests of Salt's states and what their requisites ask.
func (r *reading) states(d *document, root *yaml.Node, s sls.Shape, o Options) {
	docs, problems, warnings := sls.Decode(root, s, sls.Options{IgnoreForeignStates: o.IgnoreForeignStates})
	place := func(p sls.Problem) Problem {
		return Problem{Source: Source{File: d.file, Line: d.line - 1 + p.Line, State: p.State, SLS: p.SLS}, Message: p.Message}
	}
	for _, p := range problems {
		r.problems = append(r.problems, place(p))
	}
	for _, w := range warnings {
		r.warnings = append(r.warnings, place(w))
	}
	present := make([][]*Object, len(docs))
	for i, doc := range docs {
		objects := r.state(d, doc, o)
		if !doc.Absent {
			present[i] = objects
			r.objects = append(r.objects, objects...)
			continue
		}
		for _, obj := range objects {
			r.absent = append(r.absent, &Absent{ID: obj.ID, GVK: obj.GVK, Source: obj.Source})
		}
	}
	for i, doc := range docs {
		for _, req := range doc.Requires {
			if docs[req.Index].Absent {
				r.afterAbsent(present[i], docs[req.Index], req.Why)
			}
			for _, obj := range present[i] {
				for _, on := range present[req.Index] {
					obj.needs = append(obj.needs, need{on: on, why: req.Why})
				}
			}
		}
	}
}

// state reads one state's manifest; what is wrong with it names the state.
func (r *reading) state(d *document, doc sls.Document, o Options) []*Object {
	objects, problems, warnings, invalid := len(r.objects), len(r.problems), len(r.warnings), len(r.invalid)
	r.object(d, doc.Node, o, listDefaults{})
	read := append([]*Object(nil), r.objects[objects:]...)
	r.objects = r.objects[:objects]
	for _, obj := range read {
		obj.Source.State, obj.Source.SLS = doc.State, doc.SLS
	}
	for i := range r.problems[problems:] {
		p := &r.problems[problems+i]
		p.Source.State, p.Source.SLS = doc.State, doc.SLS
	}
	for i := range r.invalid[invalid:] {
		p := &r.invalid[invalid+i]
		p.Source.State, p.Source.SLS = doc.State, doc.SLS
	}
	for i := range r.warnings[warnings:] {
		w := &r.warnings[warnings+i]
		w.Source.State, w.Source.SLS = doc.State, doc.SLS
	}
	return read
}

// afterAbsent warns of the one order that cannot be kept.
func (r *reading) afterAbsent(objects []*Object, absent sls.Document, why string) {
	for _, obj := range objects {
		r.warnings = append(r.warnings, Problem{Source: obj.Source, ID: obj.ID, Message: fmt.Sprintf(
			"%s: state %q removes its object, and objects are removed only after all others are applied", why, absent.State)})
	}
}
