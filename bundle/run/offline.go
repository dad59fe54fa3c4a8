package run

import (
	"context"
	"errors"
	"slices"

	"brine/bundle"
	"brine/bundle/fields"
	"brine/bundle/order"
	"brine/bundle/plan"
	"brine/bundle/preview"
	"brine/bundle/read"
	"brine/bundle/ready"
	"brine/bundle/remedy"
	"brine/bundle/report"
	"brine/bundle/review"
	"brine/bundle/sls"
	"brine/bundle/validate"
	"brine/inventory"
)

// Checked is what can be known of a bundle without a server.
type Checked struct {
	Graph *order.Graph
	// Problems must stop a run before its first write; Faults are what a server
	// would refuse single objects for.
	Problems, Faults []bundle.Problem
	CRDs             *validate.CRDs
	// Rules say which rule decides whether an object is ready.
	Rules map[bundle.ID]string
}

// Check resolves, orders and validates a bundle without a server, for the
// version of Kubernetes, "" being the newest known. namespace is that of objects
// that name none, kinds has the rules of kinds. Warnings are added to the bundle's.
func Check(b *bundle.Bundle, namespace, kubernetesVersion string, kinds ready.Table) (*Checked, error) {
	c := &Checked{}
	c.Problems = append(c.Problems, bundle.ProblemsOf(read.Resolve(b, read.Resolver{Namespace: namespace, Quiet: true}))...)
	c.Problems = append(c.Problems, bundle.ProblemsOf(sls.FillSlots(b, nil))...)
	c.Problems = append(c.Problems, read.FillDigests(b)...)
	g, wrong := order.Build(b.Objects, order.Options{})
	notes, invalid := outsideOffline(b, g)
	c.Graph, c.Problems = g, slices.Concat(c.Problems, wrong, invalid)
	rules, _, wrong := compileRules(b.Objects, kinds)
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

// Offline is Run without a server: what apply would do on a cluster that has
// nothing yet, as far as it can be known without asking one.
func Offline(ctx context.Context, b *bundle.Bundle, o Options, kubernetesVersion string, emit func(report.Event)) *report.Result {
	record := report.New(o.Header, emit)
	err := offline(ctx, record, b, &o, kubernetesVersion)
	return record.Finish(ctx, ExitCode(err), err, map[string]int{})
}

func offline(ctx context.Context, record *report.Recorder, b *bundle.Bundle, o *Options, kubernetesVersion string) error {
	if o.Mode == Destroy {
		return &report.Stop{Code: report.ExitBadBundle, Errors: []error{errors.New(remedy.DryRun + "=client cannot preview a destroy, because only the cluster knows the members of the inventory: use " + remedy.DryRun + "=server")}}
	}
	reportInvalid(record, b.Invalid)
	c, err := checkOffline(record, b, o, kubernetesVersion)
	record.Secrets.Bundle(b.Objects)
	if err != nil {
		return err
	}
	for _, w := range b.Warnings {
		record.Warn(w.Error())
	}
	for _, notice := range c.Graph.Notices {
		record.Warn(notice.Error())
	}
	if len(c.Problems) > 0 {
		return report.BadBundle(c.Problems...)
	}
	inv := inventory.Empty(o.Inventory.Namespace, o.Inventory.Name, o.Inventory.ID)
	record.Result.Inventory.ID = inv.ID
	if holdsSecrets(o, b) {
		inv.Key = inventory.NewKey(inv.Namespace, inv.Name)
	}
	keyDigests(record, o, b, inv.Key, nil)
	options := o.planning(b)
	options.Policy = plan.AdoptIfNoInventory
	p, problems := plan.Build(plan.Input{Graph: c.Graph, Absent: b.Absent, Inventory: inv, Options: options})
	if len(problems) > 0 {
		return report.BadBundle(problems...)
	}
	objects := c.preview(ctx, record, p, kubernetesVersion)
	if err := o.Deny.Stop(record.Result, p, objects); err != nil {
		return err
	}
	if len(c.Faults) > 0 && !o.SkipInvalid {
		return &report.Stop{Code: report.ExitBadBundle}
	}
	return nil
}

// preview records a plan as an apply would carry it out on a cluster that has nothing yet.
func (c *Checked) preview(ctx context.Context, record *report.Recorder, p *plan.Plan, kubernetesVersion string) []*report.ObjectResult {
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
		results[i] = offlineResult(ctx, s, c.CRDs, faults[s.Object], kubernetesVersion)
	}
	preview.Propagate(p, results)
	preview.Report(record, p, objects, results)
	record.Result.Review = review.Of(preview.Changes(p, objects, results), review.Cluster{Unread: true})
	return objects
}

// Denied are what rules find in a bundle that was checked, on a cluster that has nothing yet.
func (c *Checked) Denied(ctx context.Context, b *bundle.Bundle, deny report.Deny, kubernetesVersion string) ([]bundle.Problem, error) {
	if len(deny) == 0 || len(c.Problems) > 0 {
		return nil, nil
	}
	p, problems := plan.Build(plan.Input{Graph: c.Graph, Absent: b.Absent, Inventory: inventory.Empty("default", "check", ""), Options: plan.Options{Policy: plan.AdoptIfNoInventory}})
	if len(problems) > 0 {
		return problems, nil
	}
	record := report.New(report.Header{Command: "check", DryRun: report.Client}, func(report.Event) {})
	record.Secrets.Bundle(b.Objects)
	objects := c.preview(ctx, record, p, kubernetesVersion)
	denied, err := deny.Problems(record.Result, p, objects)
	for i := range denied {
		denied[i].Message = record.Secrets.Text(denied[i].Message)
	}
	return denied, err
}

// checkOffline is Check, again without the invalid objects until there are none
// where SkipInvalid says so: who depends on them is next.
func checkOffline(record *report.Recorder, b *bundle.Bundle, o *Options, kubernetesVersion string) (*Checked, error) {
	for {
		c, err := Check(b, o.Namespace, kubernetesVersion, o.Readiness)
		if err != nil {
			return nil, &report.Stop{Code: report.ExitBadBundle, Errors: []error{err}}
		}
		c.Problems = append(c.Problems, inventory.Reserved(o.Inventory.Namespace, o.Inventory.Name, b)...)
		invalid := c.Problems
		if len(invalid) == 0 { // as apply does before it writes; other faults are for the server to find
			invalid = slices.DeleteFunc(slices.Clone(c.Faults), func(p bundle.Problem) bool { return !c.CRDs.Sound(p.ID.GroupKind) })
		}
		if !o.SkipInvalid || len(invalid) == 0 {
			return c, nil
		}
		if err := skipInvalid(record, o, b, invalid); err != nil {
			return nil, err
		}
	}
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

// offlineResult says who vouches for an object, and shows it as a CRD of the
// bundle would have it stored, or as it is sent.
func offlineResult(ctx context.Context, s *plan.Step, crds *validate.CRDs, faults bundle.Problems, kubernetesVersion string) preview.Result {
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
		if full, _, known := crds.Check(ctx, s.Object, s.Object.Content, nil, true); known && full != nil {
			stored = full
		}
		if why := crds.Unverified(s.GVK, nil); why != "" {
			r.Verified = preview.Unverified + why
		}
	}
	r.Stored = stored
	return r
}
