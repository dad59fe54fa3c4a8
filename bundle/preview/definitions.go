package preview

import (
	"context"
	"errors"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/cluster/answers"
	"brine/bundle/diff"
	"brine/bundle/fields"
	"brine/bundle/plan"
	"brine/bundle/takeover"
	"brine/bundle/write"
)

// definedKinds are the kinds that the CRDs of a plan define.
func definedKinds(p *plan.Plan) sets.Set[schema.GroupKind] {
	kinds := sets.New[schema.GroupKind]()
	for _, s := range p.Steps {
		if !s.Deletes() && s.ID.GroupKind == bundle.CRDKind {
			for _, resource := range cluster.Defined(s.Object.Content) {
				kinds.Insert(resource.GVK.GroupKind())
			}
		}
	}
	return kinds
}

// learn notes which kinds the server cannot judge, because their CRDs are new
// or change.
func (p *previewer) learn(results []Result) {
	for i, s := range p.Plan.Steps {
		if s.Deletes() || s.ID.GroupKind != bundle.CRDKind {
			continue
		}
		for _, resource := range cluster.Defined(s.Object.Content) {
			gk := resource.GVK.GroupKind()
			switch r := results[i]; {
			case s.Live == nil:
				p.newKinds[gk] = true
			case r.Action == plan.Unchanged:
			case r.Stored == nil:
				p.changedKinds[gk] = true
			default:
				for _, c := range diff.Objects(s.Live, r.Stored, nil).Changes {
					if c.Path == "spec" || strings.HasPrefix(c.Path, "spec.") {
						p.changedKinds[gk] = true
					}
				}
			}
		}
	}
}

// servedBy is the APIService of this bundle that serves a step's kind, if one
// does.
func (p *previewer) servedBy(s *plan.Step) (*plan.Step, bool) {
	for _, need := range s.Needs {
		if on := p.Plan.Steps[need.Step]; on.ID.GroupKind == bundle.APIServiceKind && !on.Deletes() {
			if bundle.At[string](on.Object.Content.Object, "spec", "group") == s.ID.GroupKind.Group {
				return on, true
			}
		}
	}
	return nil, false
}

// askCRD judges a resource by the CRD of the bundle, with the server's own code.
// A kind that is served already is shown to the server as well: it alone knows
// of conflicts, and of fields that change hands.
func (p *previewer) askCRD(ctx context.Context, s *plan.Step, body write.Body) Result {
	sent, err := sentOf(s, body.JSON)
	if err != nil {
		return Result{Action: plan.Failed, Err: err}
	}
	stored, problems, _ := p.CRDs().Check(ctx, s.Object, sent, s.Live)
	if len(problems) > 0 {
		return Result{Action: plan.Failed, Verified: ByCRD, Err: bundle.Problems(problems)}
	}
	r := Result{Action: s.Action, Reason: s.Reason, Stored: stored, Verified: ByCRD}
	if warning := p.CRDs().Warning(s.GVK); warning != "" {
		r.Warnings = append(r.Warnings, warning)
	}
	if why := p.CRDs().Unverified(s.GVK, s.Live); why != "" {
		r.Verified = Unverified + why
	}
	if s.Live == nil {
		return r
	}
	changed := !diff.Equal(s.Live, r.Stored)
	if resource, err := p.Client.Resource(s.GVK); err == nil {
		o := p.writer.Apply(ctx, s, resource, body, own(s))
		switch right, denied := answers.MissingRight(o.Err); {
		case denied:
			p.denied.Store(true)
			r.Verified = Unverified + "no right to " + right
		case len(answers.FieldConflicts(o.Err)) > 0:
			return Result{Action: plan.Failed, Verified: byServer, Err: p.writer.Explain(s, o.Err)}
		case o.Err == nil && o.Stored != nil:
			// The server answered by the schema that goes.
			changed = changed || s.Changed(fields.WithoutSelf(s.Live), fields.WithoutSelf(o.Stored))
			if r.Taken = takeover.Taken(s.Live, o.Stored); len(r.Taken) > 0 {
				r.Reason = "takes " + strings.Join(r.Taken, "; ")
			}
		}
		if _, webhook := answers.DeniedBy(errors.New(o.Reason)); o.Recreates && webhook != "" { // else it is a rule of the schema that goes
			r.Action, r.Reason, r.Claims = plan.Recreated, o.Reason, o.Claims
			return r
		}
	}
	if s.Action == plan.Configured && !changed {
		r.Action = plan.Unchanged
	}
	return r
}
