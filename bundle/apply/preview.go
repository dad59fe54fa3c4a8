package apply

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/plan"
	"brine/bundle/report"
)

// verdict is what a dry run says of one step.
type verdict struct {
	action   plan.Action
	reason   string
	stored   *unstructured.Unstructured // as it would be on the cluster; nil where it would not be, or nobody knows
	verified string
	warnings []string
	err      error
	hidden   bool // what was sent holds values of a Secret: no diff
}

// Who vouches for a verdict, as ObjectResult.Verified says it.
const (
	byServer      = "server"
	bySurrogate   = "server (surrogate namespace)"
	byUpdate      = "server (as an update, with the fields taken over)"
	byOtherName   = "server (surrogate name)"
	byFingerprint = "server (unchanged since the last apply)"
	byLeftAlone   = "server (left alone)"
	byBundleCRD   = "bundle CRD"
	unverified    = "not verified: "
)

// preview asks the server what the plan would do, and changes nothing: no
// object, not the inventory, not the lock.
func (r *run) preview(ctx context.Context) error {
	results := r.record.Start(r.plan)
	verdicts, err := r.verdicts(ctx)
	if err != nil {
		return err
	}
	for i, s := range r.plan.Steps {
		r.tell(s, results[i], verdicts[i])
	}
	if err := r.lacking(); err != nil {
		return err
	}
	if len(r.plan.Refused) > 0 {
		return report.BadBundle(r.plan.Refused...) // and no plan to carry out is written
	}
	return r.handOut(ctx, verdicts)
}

// verdicts asks about every step, in parallel, CRDs before what they define.
func (r *run) verdicts(ctx context.Context) ([]verdict, error) {
	g, err := r.survey(ctx)
	if err != nil {
		return nil, err
	}
	verdicts := make([]verdict, len(r.plan.Steps))
	for _, definitions := range []bool{true, false} {
		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(cluster.MaxConcurrency)
		for i, s := range r.plan.Steps {
			if isDefinition := !s.Deletes() && s.ID.GroupKind == bundle.CRDKind; isDefinition != definitions {
				continue
			}
			group.Go(func() error {
				verdicts[i] = g.ask(ctx, s)
				return ctx.Err()
			})
		}
		if err := group.Wait(); err != nil {
			return nil, fmt.Errorf("preview: %w", errors.Join(err, context.Cause(ctx)))
		}
		if definitions {
			g.learn(verdicts)
		}
	}
	r.follow(verdicts)
	if g.denied.Load() {
		return verdicts, r.missingRights(ctx)
	}
	return verdicts, nil
}

// follow skips what apply would skip: what needs an object that fails, and all
// deletions once anything was not applied.
func (r *run) follow(verdicts []verdict) {
	notApplied := 0
	for i, s := range r.plan.Steps {
		v := &verdicts[i]
		if !s.Deletes() {
			if s.Action != plan.Unchanged && v.action != plan.Failed {
				r.skip(s, v, verdicts)
			}
			if v.action == plan.Failed || v.action == plan.Skipped {
				notApplied++
			}
			continue
		}
		if notApplied > 0 && s.Action != plan.Skipped {
			*v = verdict{action: plan.Skipped, reason: notAppliedReason(notApplied)}
			continue
		}
		if v.action != plan.Failed && v.action != plan.Skipped {
			r.skip(s, v, verdicts)
		}
	}
}

// skip settles a step one of whose needs comes to nothing. What the server said
// of the step itself is kept where it was an error.
func (r *run) skip(s *plan.Step, v *verdict, verdicts []verdict) {
	for _, need := range s.Needs {
		on, came := r.plan.Steps[need.Step], verdicts[need.Step]
		if came.action != plan.Failed && came.action != plan.Skipped {
			continue
		}
		why := "failed"
		if came.action == plan.Skipped {
			why = "was skipped"
		}
		if s.Deletes() {
			if came.action == plan.Skipped && !on.Kept && need.Weak {
				continue
			}
			*v = verdict{action: plan.Skipped, reason: keptFor(on.ID, need, strings.Replace(why, "skipped", "kept", 1))}
			return
		}
		*v = verdict{action: plan.Skipped, reason: blockedBy(on.ID, need.Want, why, need.Reason), verified: v.verified, warnings: v.warnings}
		return
	}
}

// tell puts a verdict into the result.
func (r *run) tell(s *plan.Step, o *report.ObjectResult, v verdict) {
	o.Action, o.Verified = v.action, v.verified
	if v.reason != "" {
		o.Reason = v.reason
	}
	for _, w := range v.warnings {
		r.record.Warn(bundle.Name(s.ID) + ": " + w)
	}
	about := func(message string) string {
		text := bundle.Name(s.ID) + ": " + message
		if at := o.Source.String(); at != "" {
			text = at + ": " + text
		}
		return text
	}
	var problems bundle.Problems
	switch {
	case errors.As(v.err, &problems):
		var lines []string
		for _, p := range problems {
			r.record.Fail(p.Error())
			lines = append(lines, fieldOf(p))
		}
		o.Error = strings.Join(lines, "\n")
		o.Reason = o.Error
	case v.err != nil:
		o.Error, o.Reason = v.err.Error(), v.err.Error()
		r.record.Fail(about(v.err.Error()))
	case s.Deletes() && s.Kept && v.action == plan.Skipped:
		r.record.Fail(about("not deleted: " + o.Reason))
	case v.action == plan.Pruned:
		if copiesSecret(s.Live) {
			break
		}
		d := r.record.Secrets.Diff(s.Live, nil)
		o.Diff, o.Changes = d.Unified, d.Changes
	case v.stored != nil && v.action != plan.Unchanged && v.action != plan.Skipped && !v.hidden && !copiesSecret(s.Live):
		d := r.record.Secrets.Diff(s.Live, v.stored)
		o.Diff, o.Changes = d.Unified, d.Changes
	}
	r.record.Settled()
	r.record.Emit(report.Event{Type: report.Acted, Object: o, Reason: o.Reason, Error: o.Error})
}

// fieldOf is a problem without the object that is named beside it:
// "spec.size: is required (a.yaml:7)".
func fieldOf(p bundle.Problem) string {
	text := p.Message
	if p.Path != "" {
		text = p.Path + ": " + text
	}
	if at := p.Source.String(); at != "" {
		text += " (" + at + ")"
	}
	return text
}
