package preview

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/cli-utils/pkg/object/mutation"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/cluster/answers"
	"brine/bundle/plan"
	"brine/bundle/surrogate"
	"brine/bundle/takeover"
	"brine/bundle/write"
)

// One step of a plan is asked of the server.

// ask asks the server about one step.
func (p *previewer) ask(ctx context.Context, s *plan.Step) Result {
	switch {
	case s.Blocked != "":
		return Result{Action: plan.Failed, Err: errors.New(s.Blocked)}
	case s.Action == plan.Skipped:
		return Result{Action: plan.Skipped, Reason: s.Reason}
	case s.Action == plan.Pruned:
		return p.removed(s, p.writer.Delete(ctx, s))
	case s.Action == plan.Detached:
		return p.removed(s, p.writer.Detach(ctx, s))
	case s.Completed:
		return Result{Action: plan.Unchanged, Reason: s.Reason, Verified: byInventory}
	case s.Action == plan.Unchanged && s.Reason != "":
		return Result{Action: plan.Unchanged, Reason: s.Reason, Stored: s.Live, Verified: byLeftAlone}
	case s.Action == plan.Unchanged:
		return Result{Action: plan.Unchanged, Stored: s.Live, Verified: byFingerprint}
	}
	body, err := p.writer.Mutate(ctx, s)
	changing := p.changingSource(s)
	if err != nil && changing != "" && errors.Is(err, write.ErrNoSource) {
		return p.guess(s, s.Body, "its apply-time mutation takes a value from "+changing+", which is applied first")
	}
	if err != nil {
		return Result{Action: plan.Failed, Err: err}
	}
	r := p.askWith(ctx, s, body)
	if changing != "" && r.Err == nil {
		r.Verified = Unverified + "its apply-time mutation takes a value from " + changing + ", which this run may change"
	}
	return r
}

// askWith asks about an object with the body that is sent.
func (p *previewer) askWith(ctx context.Context, s *plan.Step, body write.Body) Result {
	gk := s.ID.GroupKind
	if p.newKinds[gk] || p.changedKinds[gk] && p.CRDs().Has(gk) {
		return p.askCRD(ctx, s, body)
	}
	resource, err := p.Client.Resource(s.GVK)
	if err != nil {
		service, later := p.servedBy(s)
		failed := p.Client.Failed(gk.Group)
		switch {
		case later && service.Live == nil:
			return p.guess(s, body.JSON, fmt.Sprintf("%s, which serves it, is new", bundle.Name(service.ID)))
		case later:
			return p.guess(s, body.JSON, fmt.Sprintf("%s, which serves it, is not available", bundle.Name(service.ID)))
		case failed != nil:
			return p.guess(s, body.JSON, failed.Error())
		}
		return Result{Action: plan.Failed, Err: err}
	}
	if p.fresh[s.ID.Namespace] {
		return p.askElsewhere(ctx, s, resource, body)
	}
	o := p.writer.Apply(ctx, s, resource, body, own(s))
	switch {
	case o.Err != nil:
		return p.refused(s, body, o)
	case o.Action == plan.Recreated:
		body.JSON = o.Body
		return p.showRecreated(ctx, s, resource, body, o)
	}
	return p.accepted(s, body, o)
}

// own is the place where an object belongs.
func own(s *plan.Step) surrogate.Place {
	return surrogate.Place{Namespace: s.ID.Namespace, Name: s.ID.Name}
}

// askElsewhere dry-runs a step whose namespace is new in one that is there.
// What only the surrogate has against it, its quota for one, is no error of the
// bundle: the next surrogate is asked.
func (p *previewer) askElsewhere(ctx context.Context, s *plan.Step, resource cluster.Resource, body write.Body) Result {
	why := "there is no surrogate for the new namespace " + s.ID.Namespace
	for _, namespace := range p.surrogates {
		there := s.ID
		there.Namespace = namespace
		place := surrogate.New(s.ID, namespace, p.taken.Has(there))
		o := p.writer.Apply(ctx, s, resource, body, place)
		if o.Err == nil {
			return p.accepted(s, body, o)
		}
		if answers.NamespaceRefuses(o.Err) {
			why = fmt.Sprintf("namespace %s, the surrogate for %s, does not admit it: %s", namespace, s.ID.Namespace, o.Err.Error())
			continue
		}
		o.Err = &elsewhere{place: place, id: s.ID, err: o.Err}
		return p.refused(s, body, o)
	}
	return p.guess(s, body.JSON, why)
}

// elsewhere is an error about an object in a surrogate, as one about the object.
type elsewhere struct {
	place surrogate.Place
	id    bundle.ID
	err   error
}

func (e *elsewhere) Error() string { return e.place.Message(e.err.Error(), e.id) }
func (e *elsewhere) Unwrap() error { return e.err }

// accepted is the result of a step that the server would carry out.
func (p *previewer) accepted(s *plan.Step, body write.Body, o write.Outcome) Result {
	if o.Stored == nil {
		r := p.guess(s, body.JSON, o.Unverified)
		r.Action, r.Reason = plan.Configured, o.Reason
		return r
	}
	r := Result{Action: s.Action, Reason: s.Reason, Stored: o.Stored, Verified: byServer, Warnings: o.Warnings}
	switch {
	case o.Unverified != "":
		r.Verified = Unverified + o.Unverified
	case o.Update:
		r.Verified = byUpdate
	case o.Place.Namespace != s.ID.Namespace:
		r.Verified = bySurrogate
	case o.Place.Account != "":
		r.Verified = byAccount
	}
	if o.Update {
		r.Action, r.Reason = plan.Configured, o.Reason
		return r
	}
	if s.Live == nil {
		return r
	}
	if s.Action == plan.Configured && !s.Changed(s.Live, o.Stored) {
		r.Action = plan.Unchanged
	}
	if r.Taken = takeover.Taken(s.Live, o.Stored); len(r.Taken) > 0 {
		r.Reason = "takes " + strings.Join(r.Taken, "; ")
		r.Warnings = append(slices.Clone(o.Warnings), r.Reason)
	}
	return r
}

// refused is the result of a step that the server answered with an error.
func (p *previewer) refused(s *plan.Step, body write.Body, o write.Outcome) Result {
	if right, ok := answers.MissingRight(o.Err); ok {
		p.denied.Store(true)
		r := p.guess(s, body.JSON, "no right to "+right)
		if o.Recreates {
			r.Action, r.Reason = plan.Recreated, o.Reason
		}
		return r
	}
	if p.Drift && o.Immutable {
		return p.immutable(s, body.JSON, o.Err)
	}
	if why, ok := p.excused(s, o.Err); ok && !o.Recreates && !o.Immutable {
		return p.guess(s, body.JSON, why)
	}
	return Result{Action: plan.Failed, Verified: byServer, Warnings: o.Warnings, Err: p.writer.Explain(s, o.Err)}
}

// showRecreated dry-runs an object that would be created again under another
// name: under its own there is an answer, but no object to show.
func (p *previewer) showRecreated(ctx context.Context, s *plan.Step, resource cluster.Resource, body write.Body, o write.Outcome) Result {
	place := surrogate.New(s.ID, s.ID.Namespace, true)
	shown := p.writer.Apply(ctx, s, resource, body, place)
	r := Result{Action: plan.Recreated, Reason: o.Reason, Stored: shown.Stored, Verified: byOtherName, Warnings: slices.Concat(o.Warnings, shown.Warnings), Claims: o.Claims}
	switch err := shown.Err; {
	case err == nil:
		return r
	case answers.Allocated(err) || answers.NamespaceRefuses(err):
		r = p.guess(s, body.JSON, "a second copy cannot be dry-run: "+place.Message(err.Error(), s.ID))
		r.Action, r.Reason, r.Warnings, r.Claims = plan.Recreated, o.Reason, o.Warnings, o.Claims
		return r
	}
	return Result{Action: plan.Failed, Verified: byOtherName, Err: p.writer.Explain(s, &elsewhere{place: place, id: s.ID, err: shown.Err})}
}

// changingSource names an object that an apply-time mutation takes a value from
// and that this run creates or changes.
func (p *previewer) changingSource(s *plan.Step) string {
	subs, err := mutation.ReadAnnotation(s.Object.Content)
	if err != nil || !mutation.HasAnnotation(s.Object.Content) {
		return ""
	}
	for _, sub := range subs {
		id := sub.SourceRef.ToObjMetadata()
		for _, namespace := range []string{id.Namespace, s.ID.Namespace} {
			at := bundle.ID{GroupKind: id.GroupKind, Namespace: namespace, Name: id.Name}
			if on, ok := p.steps[at]; ok && !on.Deletes() && on.Action != plan.Unchanged {
				return bundle.Name(at)
			}
		}
	}
	return ""
}

// removed is the result of a deletion or a detachment.
func (p *previewer) removed(s *plan.Step, o write.Outcome) Result {
	r := Result{Action: s.Action, Reason: cmp.Or(o.Reason, s.Reason), Stored: o.Stored, Verified: byServer}
	right, denied := answers.MissingRight(o.Err)
	switch {
	case denied:
		p.denied.Store(true)
		r.Verified = Unverified + "no right to " + right
	case o.Err != nil && o.Action == plan.Skipped:
		return Result{Action: plan.Skipped, Reason: o.Err.Error()}
	case answers.NoDryRun(o.Err):
		r.Verified = Unverified + o.Err.Error()
	case o.Err != nil:
		return Result{Action: plan.Failed, Verified: byServer, Err: o.Err}
	case s.Action == plan.Pruned && o.Resource.GVR.Resource == "":
		r.Verified = Unverified + "its kind is not served by the cluster"
	}
	return r
}
