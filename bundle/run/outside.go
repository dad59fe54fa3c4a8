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
	"brine/inventory/store"
)

// Objects of the bundle may depend on objects outside of it. Those are read before the
// plan is made and waited for, but never written. They are no members of the inventory.

// outsideObject is what a read of an object outside the bundle gave: neither of the two if
// there is none.
type outsideObject struct {
	live *unstructured.Unstructured
	err  error // why it is not known
}

const readersOutside = 8

// readAllOutside reads what the objects of the run depend on outside the bundle,
// unless it is a member, which is read anyway.
func readAllOutside(ctx context.Context, c *cluster.Client, o *Options, t target, inv *store.Inventory) map[bundle.ID]outsideObject {
	var ids []bundle.ID
	t.eachOutside(func(_ int, e order.External) {
		if _, member := inv.Members[e.On]; !member && o.Mode != Drift && !slices.Contains(ids, e.On) {
			ids = append(ids, e.On)
		}
	})
	found := make([]outsideObject, len(ids))
	var reading errgroup.Group
	reading.SetLimit(readersOutside)
	for i, id := range ids {
		reading.Go(func() error {
			c.AskFailed(ctx, func(group string) bool { return group == id.GroupKind.Group })
			found[i].live, found[i].err = c.Find(ctx, id)
			return nil // every error is kept with its object
		})
	}
	_ = reading.Wait()
	all := map[bundle.ID]outsideObject{}
	for i, id := range ids {
		all[id] = found[i]
	}
	return all
}

// eachOutside are the dependencies of the run's objects on what is outside the bundle.
func (t target) eachOutside(each func(i int, e order.External)) {
	t.graph.Outside(func(i int, e order.External) {
		if t.takes(t.graph.Objects[i]) {
			each(i, e)
		}
	})
}

// liveOutside are the objects outside the bundle that its objects depend on. Where there is
// none it is a problem of the bundle, where that is not known an error. A drift waits
// for nothing.
func (now situation) liveOutside(o *Options) (map[bundle.ID]*unstructured.Unstructured, []bundle.Problem, error) {
	if o.Mode == Drift {
		return nil, nil, nil
	}
	outside := map[bundle.ID]*unstructured.Unstructured{}
	var problems []bundle.Problem
	stop := &report.Stop{Code: report.ExitUnreachable}
	now.eachOutside(func(i int, e order.External) {
		at, ok := now.outside[e.On]
		if !ok { // a member, or an object that was left out of the bundle
			at = outsideObject{live: now.live.Live[e.On], err: now.live.Unknown[e.On]}
		}
		switch {
		case at.live != nil:
			outside[e.On] = at.live
		case at.err != nil:
			problem := now.graph.Problem(i, e, "is not in the bundle, and cannot be read from the cluster: "+at.err.Error()+unreadableRemedy(at.err))
			stop.Errors = append(stop.Errors, problem)
		case now.inventory.Fingerprints[e.On].Completed != "": // a Job that its TTL removed
		default:
			problems = append(problems, now.graph.Problem(i, e, "is neither in the bundle nor on the cluster: "+now.absentRemedy(e.On)))
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

func (t target) absentRemedy(id bundle.ID) string {
	for _, o := range t.bundle.Objects {
		if d, ok := bundle.DefinitionOf(o.Content); ok && d.Kind == id.GroupKind {
			return fmt.Sprintf("the bundle has its CRD (%s) only. Add the object, or remove the dependency", o.Source)
		}
	}
	return "apply it first, add it to the bundle, or remove the dependency"
}

// compileRulesOutside compiles the rules of readiness that objects outside the bundle have. Invalid
// ones are for their owner to correct.
func compileRulesOutside(record *report.Recorder, t target, p *plan.Plan) {
	for _, s := range p.Outside {
		rules, wrong := t.kinds.Rules(s.Object)
		for _, problem := range wrong {
			record.Warn(fmt.Sprintf("%s, which is not in the bundle: %s: %s: ignored", bundle.Name(s.ID), problem.Path, problem.Message))
		}
		if rules != nil {
			t.rules[s.ID] = rules
		}
	}
}

func previewOutside(ctx context.Context, s *session, in intent) {
	if len(in.plan.Outside) == 0 {
		return
	}
	hints := hintsOf(ctx, s, in)
	for i, step := range in.plan.Outside {
		status := ready.Of(step.Live, in.rules[step.ID], hints)
		o := s.record.Result.Outside[i]
		o.Ready, o.Reason = string(status.State), status.Reason
	}
}
