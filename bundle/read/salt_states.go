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

// states reads the manifests of Salt's states; link sees to their requisites.
func (r *reading) states(d *document, root *yaml.Node, s sls.Shape, o Options) {
	all := sls.Decode(root, s, sls.Options{IgnoreNonKubernetesStates: o.IgnoreNonKubernetesStates, File: d.file, Offset: d.line - 1})
	r.salt = append(r.salt, all)
	for _, doc := range all.Documents {
		objects := r.state(d, doc, o)
		doc.Node = nil
		if !doc.Absent {
			doc.Objects = objects
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
func link(all []*sls.Rendering) (problems bundle.Problems, warnings []bundle.Problem) {
	sls.Link(all...)
	for _, one := range all {
		problems, warnings = append(problems, one.Problems...), append(warnings, one.Warnings...)
		for _, doc := range one.Documents {
			for _, req := range doc.Requires {
				if req.On.Absent {
					warnings = append(warnings, afterAbsent(doc, req)...)
				}
				for _, obj := range doc.Objects {
					for _, on := range req.On.Objects {
						obj.Requisites = append(obj.Requisites, bundle.Requisite{Object: on, Reason: req.Reason})
					}
				}
			}
		}
	}
	return problems, warnings
}

// state reads one state's manifest; its problems name the state.
func (r *reading) state(d *document, doc *sls.Document, o Options) []*bundle.Object {
	one := reading{budget: r.budget}
	o.AllowGenerateName = o.AllowGenerateName && !doc.Absent // what has no name cannot be found
	one.object(d, doc.Node, o, listDefaults{})
	name := func(source *bundle.Source) {
		source.State, source.SLS, source.File = doc.State, doc.SLS, cmp.Or(doc.File, source.File)
	}
	for _, obj := range one.objects {
		name(&obj.Source)
	}
	for _, problems := range [][]bundle.Problem{one.problems, one.invalid, one.warnings} {
		for i := range problems {
			name(&problems[i].Source)
		}
	}
	objects := one.objects
	one.objects, r.budget = nil, one.budget
	r.add(one)
	return objects
}

// afterAbsent warns of the one order that cannot be kept.
func afterAbsent(doc *sls.Document, req sls.Require) []bundle.Problem {
	return bundle.Each(doc.Objects, func(o *bundle.Object) bundle.Problem {
		return bundle.Problem{Source: o.Source, ID: o.ID, Message: fmt.Sprintf(
			"%s: state %q removes its object, and objects are removed only after all others are applied", req.Reason, req.On.State)}
	})
}
