package run

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/order"
	"brine/bundle/plan"
	"brine/bundle/ready"
	"brine/bundle/report"
)

// Objects of the bundle may depend on objects outside of it. Those are read before the
// plan is made and waited for, but never written. They are no members of the inventory.

// seen is what a read of an object outside the bundle gave: neither of the two if
// there is none.
type seen struct {
	live *unstructured.Unstructured
	err  error // why it is not known
}

// readersOutside are parallel reads of objects outside the bundle.
const readersOutside = 8

// startReadingOutside reads what the objects of the run depend on outside the bundle,
// unless it is a member, which is read anyway. The function that it returns waits.
func (r *run) startReadingOutside(ctx context.Context, t target) func() map[bundle.ID]seen {
	var ids []bundle.ID
	t.eachOutside(func(_ int, e order.External) {
		if _, member := r.inv.Members[e.On]; !member && r.Wanted == "" && !slices.Contains(ids, e.On) {
			ids = append(ids, e.On)
		}
	})
	found, done := make([]seen, len(ids)), make(chan struct{})
	go func() {
		defer close(done)
		var reading errgroup.Group
		reading.SetLimit(readersOutside)
		for i, id := range ids {
			reading.Go(func() error {
				found[i].live, found[i].err = r.readOutside(ctx, id)
				return nil
			})
		}
		_ = reading.Wait() // every error is kept with its object
	}()
	return func() map[bundle.ID]seen {
		<-done
		all := map[bundle.ID]seen{}
		for i, id := range ids {
			all[id] = found[i]
		}
		return all
	}
}

func (r *run) readOutside(ctx context.Context, id bundle.ID) (*unstructured.Unstructured, error) {
	r.client.AskFailed(ctx, func(group string) bool { return group == id.GroupKind.Group })
	resource, served, err := r.client.AnyOrAbsent(ctx, id.GroupKind)
	if err != nil || !served {
		return nil, err
	}
	return r.client.Get(ctx, resource, id)
}

// eachOutside are the dependencies of the run's objects on what is outside the bundle.
func (t target) eachOutside(each func(i int, e order.External)) {
	t.graph.Outside(func(i int, e order.External) {
		if t.chosen == nil || t.chosen[t.graph.Objects[i]] {
			each(i, e)
		}
	})
}

// liveOutside are the objects outside the bundle that its objects depend on. Where there is
// none it is a problem of the bundle, where that is not known an error. A drift waits
// for nothing.
func (r *run) liveOutside(t target, live *cluster.Snapshot) (map[bundle.ID]*unstructured.Unstructured, []bundle.Problem, error) {
	if r.Wanted != "" {
		return nil, nil, nil
	}
	outside := map[bundle.ID]*unstructured.Unstructured{}
	var problems []bundle.Problem
	stop := &report.Stop{Code: report.ExitUnreachable}
	t.eachOutside(func(i int, e order.External) {
		at, ok := r.outside[e.On]
		if !ok { // a member, or an object that was left out of the bundle
			at = seen{live: live.Live[e.On], err: live.Unknown[e.On]}
		}
		switch {
		case at.live != nil:
			outside[e.On] = at.live
		case at.err != nil:
			problem := t.graph.Problem(i, e, "is not in the bundle, and cannot be read from the cluster: "+at.err.Error()+unreadableRemedy(at.err))
			stop.Errors = append(stop.Errors, problem)
		case r.inv.Fingerprints[e.On].Completed != "": // a Job that its TTL removed
		default:
			problems = append(problems, t.graph.Problem(i, e, "is neither in the bundle nor on the cluster: "+r.absentRemedy(e.On)))
		}
	})
	if len(stop.Errors) > 0 {
		return nil, nil, stop
	}
	return outside, problems, nil
}

func unreadableRemedy(err error) string {
	if apierrors.IsForbidden(err) {
		return ". Grant the right to get it, or remove the dependency"
	}
	return ". Run it again when its API is available, or remove the dependency"
}

func (r *run) absentRemedy(id bundle.ID) string {
	for _, o := range r.bundle.Objects {
		if d, ok := bundle.DefinitionOf(o.Content); ok && d.Kind == id.GroupKind {
			return fmt.Sprintf("the bundle has its CRD (%s) only. Add the object, or remove the dependency", o.Source)
		}
	}
	return "apply it first, add it to the bundle, or remove the dependency"
}

// ruleOutside compiles the rules of readiness that objects outside the bundle have. Invalid
// ones are for their owner to correct.
func (r *run) ruleOutside(t target, p *plan.Plan) {
	for _, s := range p.Outside {
		rules, wrong := t.kinds.Rules(s.Object)
		for _, problem := range wrong {
			r.record.Warn(fmt.Sprintf("%s, which is not in the bundle: %s: %s: ignored", bundle.Name(s.ID), problem.Path, problem.Message))
		}
		if rules != nil {
			t.rules[s.ID] = rules
		}
	}
}

// previewOutside says of the objects outside the bundle whether they are ready now.
func (r *run) previewOutside(ctx context.Context, t target, p *plan.Plan) {
	if len(p.Outside) == 0 {
		return
	}
	hints := r.hints(ctx, p)
	for i, s := range p.Outside {
		status := ready.Of(s.Live, t.rules[s.ID], hints)
		o := r.record.Result.Outside[i]
		o.Ready, o.Reason = string(status.State), status.Reason
	}
}

// outsideOffline are the dependencies on what is outside the bundle, as far as they are known without
// a server: notes, and problems of those on objects that were left out of it as invalid.
func outsideOffline(b *bundle.Bundle, g *order.Graph) (notes, problems []bundle.Problem) {
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
