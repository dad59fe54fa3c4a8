package apply

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/cli-utils/pkg/object/mutation"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/plan"
)

// askTakeOver dry-runs an apply that takes another manager's fields over. The
// server cannot be asked for both requests in one, so what follows from the
// second is its answer to that one alone, with force.
func (g *ground) askTakeOver(ctx context.Context, s *plan.Step, resource cluster.Resource) verdict {
	managers := strings.Join(g.Plan.TakeOverFrom, ", ")
	patch, err := takeOverPatch(s.Live, g.Plan.TakeOverFrom)
	if err == nil {
		_, err = g.client.Patch(ctx, resource, s.ID, types.JSONPatchType, patch, cluster.Write{DryRun: true})
	}
	if err != nil {
		return g.refused(ctx, s, resource, fmt.Errorf("take over the fields of %s: %w", managers, err), nil)
	}
	stored, warnings, err := g.client.Apply(ctx, resource, s.ID, s.Body, cluster.Write{DryRun: true, Force: true})
	if err != nil {
		return g.refused(ctx, s, resource, err, warnings)
	}
	return verdict{
		action: plan.Configured, reason: "takes over the fields of " + managers, stored: stored, warnings: warnings,
		verified: unverified + "fields of " + managers + " that the bundle does not set go as well, which no single dry run shows",
	}
}

// askMutated dry-runs an object with the values that its apply-time mutations
// would put in now.
func (g *ground) askMutated(ctx context.Context, s *plan.Step, resource cluster.Resource) verdict {
	sent, err := (&execution{run: g.run}).mutate(ctx, &node{Step: s})
	moving := g.movingSource(s)
	if errors.Is(err, errNoSource) && moving != "" {
		return g.guess(s, "its apply-time mutation takes a value from "+moving+", which is applied first")
	}
	if err != nil {
		return verdict{action: plan.Failed, err: err}
	}
	mutated := *s
	mutated.Body = sent.body
	var v verdict
	if g.fresh[s.ID.Namespace] {
		v = g.askElsewhere(ctx, &mutated, resource)
	} else {
		stored, warnings, err := g.client.Apply(ctx, resource, s.ID, sent.body, cluster.Write{DryRun: true})
		if err != nil {
			v = g.refused(ctx, &mutated, resource, err, warnings)
		} else {
			v = g.accepted(&mutated, stored, byServer, warnings)
		}
	}
	if moving != "" {
		v.verified = unverified + "its apply-time mutation takes a value from " + moving + ", which this run may change"
	}
	v.hidden = sent.secret
	return v
}

// movingSource names an object that a mutation takes a value from and that this
// run makes or changes.
func (g *ground) movingSource(s *plan.Step) string {
	subs, err := mutation.ReadAnnotation(s.Object.Content)
	if err != nil {
		return ""
	}
	for _, sub := range subs {
		id := sub.SourceRef.ToObjMetadata()
		for _, namespace := range []string{id.Namespace, s.ID.Namespace} {
			at := bundle.ID{GroupKind: id.GroupKind, Namespace: namespace, Name: id.Name}
			if on, ok := g.steps[at]; ok && !on.Deletes() && on.Action != plan.Unchanged {
				return bundle.Name(at)
			}
		}
	}
	return ""
}
