// Package check says what can be known of a bundle without a server.
package check

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"brine/bundle"
	"brine/bundle/fields"
	"brine/bundle/order"
	"brine/bundle/plan"
	"brine/bundle/preview"
	"brine/bundle/read"
	"brine/bundle/ready"
	"brine/bundle/report"
	"brine/bundle/review"
	"brine/bundle/sls"
	"brine/bundle/validate"
	"brine/inventory"
)

// Findings are what can be known of a bundle without a server.
type Findings struct {
	Graph *order.Graph
	// Problems must stop a run before its first write; Faults are what a server
	// would refuse single objects for.
	Problems, Faults []bundle.Problem
	CRDs             *validate.CRDs
	// Rules say which rule decides whether an object is ready.
	Rules map[bundle.ID]string
}

// Bundle resolves, orders and validates a bundle without a server, for the
// version of Kubernetes, "" being the newest known. namespace is that of objects
// that name none, kinds has the rules of kinds. Warnings are added to the bundle's.
func Bundle(b *bundle.Bundle, namespace, kubernetesVersion string, kinds ready.Table) (*Findings, error) {
	c := &Findings{}
	c.Problems = append(c.Problems, bundle.ProblemsOf(read.Resolve(b, read.Resolver{Namespace: namespace, Quiet: true}))...)
	c.Problems = append(c.Problems, bundle.ProblemsOf(sls.FillSlots(b, nil))...)
	c.Problems = append(c.Problems, read.FillDigests(b)...)
	g, wrong := order.Build(b.Objects, order.Options{})
	notes, invalid := outside(b, g)
	c.Graph, c.Problems = g, slices.Concat(c.Problems, wrong, invalid)
	rules, _, wrong := Rules(b.Objects, kinds)
	c.Problems, c.Rules = append(c.Problems, wrong...), map[bundle.ID]string{}
	for _, o := range b.Objects {
		c.Rules[o.ID] = ready.RuleOf(o.GVK, rules[o.ID])
	}
	crds, faults := validate.Compile(b.Objects)
	found, warnings, err := validate.Offline(b.Objects, validate.Options{KubernetesVersion: kubernetesVersion, CRDs: crds})
	if err != nil {
		return nil, err
	}
	c.CRDs, c.Faults = crds, slices.DeleteFunc(slices.Concat(faults, found), func(f bundle.Problem) bool {
		return slices.ContainsFunc(c.Problems, func(p bundle.Problem) bool { return p.ID == f.ID && p.Path == f.Path && p.Path != "" })
	})
	for _, left := range fields.Left(b.Objects, nil) {
		warnings = append(warnings, left.Problem())
	}
	b.WarnOnce(append(warnings, notes...))
	var s report.Secrets
	s.Bundle(b.Objects)
	for _, list := range [][]bundle.Problem{c.Problems, c.Faults, b.Warnings} {
		for i := range list {
			list[i].Message = s.About(bundle.Name(list[i].ID), list[i].Message)
		}
	}
	return c, nil
}

// Preview records a plan as an apply would carry it out on a cluster that has nothing yet.
func (c *Findings) Preview(ctx context.Context, record *report.Recorder, p *plan.Plan, kubernetesVersion string) []*report.ObjectResult {
	faults := map[*bundle.Object]bundle.Problems{}
	for _, f := range c.Faults {
		o := owner(c.Graph.Objects, f)
		if o == nil {
			record.Fail(f.Error())
			continue
		}
		faults[o] = append(faults[o], f)
	}
	objects := record.Start(p)
	results := make([]preview.Result, len(p.Steps))
	for i, s := range p.Steps {
		results[i] = resultOf(ctx, s, c.CRDs, faults[s.Object], kubernetesVersion)
	}
	preview.Propagate(p, results)
	preview.Report(record, p, objects, results)
	record.Result.Review = review.Of(preview.Changes(p, objects, results), review.Cluster{Unread: true})
	return objects
}

// Denied are what rules find in a bundle that was checked, on a cluster that has nothing yet.
func (c *Findings) Denied(ctx context.Context, b *bundle.Bundle, deny report.Deny, kubernetesVersion string) ([]bundle.Problem, error) {
	if len(deny) == 0 || len(c.Problems) > 0 {
		return nil, nil
	}
	p, problems := plan.Build(plan.Input{Graph: c.Graph, Absent: b.Absent, Inventory: inventory.Empty("default", "check", ""), Options: plan.Options{Policy: plan.AdoptIfNoInventory}})
	if len(problems) > 0 {
		return problems, nil
	}
	record := report.New(report.Header{Command: "check", DryRun: report.Client}, func(report.Event) {})
	record.Secrets.Bundle(b.Objects)
	objects := c.Preview(ctx, record, p, kubernetesVersion)
	denied, err := deny.Problems(record.Result, p, objects)
	for i := range denied {
		denied[i].Message = record.Secrets.Text(denied[i].Message)
	}
	return denied, err
}

// owner is the object that a problem is about: objects without names of their
// own (generateName) are distinguished by their place in the file.
func owner(objects []*bundle.Object, p bundle.Problem) *bundle.Object {
	var best *bundle.Object
	for _, o := range objects {
		if o.ID == p.ID && o.Source.File == p.Source.File && (best == nil || o.Source.Line <= p.Source.Line) {
			best = o
		}
	}
	return best
}

// resultOf says who vouches for an object, and shows it as a CRD of the
// bundle would have it stored, or as it is sent.
func resultOf(ctx context.Context, s *plan.Step, crds *validate.CRDs, faults bundle.Problems, kubernetesVersion string) preview.Result {
	r := preview.Result{Action: s.Action, Reason: s.Reason}
	switch {
	case s.Deletes():
		r.Verified = preview.Unverified + "no server was asked"
		return r
	case crds.Has(s.GVK.GroupKind()):
		r.Verified = preview.ByCRD
	case validate.Knows(s.GVK):
		r.Verified = "Kubernetes " + validate.Version(kubernetesVersion) + " (without a server)"
	default:
		r.Verified = preview.Unverified + "its kind is not known without a server"
	}
	if len(faults) > 0 {
		r.Action, r.Err = plan.Failed, faults
		return r
	}
	stored := s.Object.Content
	if crds.Has(s.GVK.GroupKind()) {
		if full, _, known := crds.Check(ctx, s.Object, s.Object.Content, nil); known && full != nil {
			stored = full
		}
		if why := crds.Unverified(s.GVK, nil); why != "" {
			r.Verified = preview.Unverified + why
		}
	}
	r.Stored = stored
	return r
}

// Rules are the objects' rules of readiness with those of kinds, and what is wrong
// with these and with what every kind has, whatever the server is.
func Rules(objects []*bundle.Object, kinds ready.Table) (map[bundle.ID]*ready.Rules, ready.Table, []bundle.Problem) {
	metadata := make([][]bundle.Problem, len(objects))
	bundle.Parallel(len(objects), func(i int) { metadata[i] = validate.Metadata(objects[i]) })
	rules, kinds, problems := ready.Compile(objects, kinds)
	for i, o := range objects {
		problems = append(append(problems, fields.Check(o)...), metadata[i]...)
	}
	return rules, kinds, problems
}

// Definitions compiles the CRDs of which the bundle holds resources. What is wrong
// with a CRD itself, the server says.
func Definitions(objects []*bundle.Object) *validate.CRDs {
	kinds := bundle.SetOf(objects, func(o *bundle.Object) schema.GroupKind { return o.ID.GroupKind })
	crds, _ := validate.Compile(bundle.Where(objects, func(o *bundle.Object) bool {
		d, ok := bundle.DefinitionOf(o.Content)
		return ok && kinds.Has(d.Kind)
	}))
	return crds
}

// outside are the dependencies on what is outside the bundle: notes, and problems of those on
// objects that were left out of it as invalid.
func outside(b *bundle.Bundle, g *order.Graph) (notes, problems []bundle.Problem) {
	g.Outside(func(i int, e order.External) {
		switch {
		case slices.ContainsFunc(b.Invalid, func(p bundle.Problem) bool { return p.ID == e.On }):
			problems = append(problems, g.Problem(i, e, "is invalid"))
		case !b.Partial:
			notes = append(notes, g.Problem(i, e, "is not in the bundle: it has to be on the cluster, and is waited for"))
		}
	})
	return notes, problems
}
