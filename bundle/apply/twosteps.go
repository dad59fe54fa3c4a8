package apply

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/cli-utils/pkg/object/mutation"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/plan"
)

// askTakeOver asks about an apply that takes another manager's fields over. The
// server cannot be asked for both requests in one: it dry-runs the take-over,
// and an update with the object as the apply would leave it then.
func (g *ground) askTakeOver(ctx context.Context, s *plan.Step, resource cluster.Resource) verdict {
	for try := 1; ; try++ {
		v, err := g.askTakeOverOf(ctx, s, resource)
		if !cluster.Overtaken(err) || try == takeOverTries {
			return v
		}
		// Somebody wrote the object since it was read: its status, as a rule.
		live, err := g.client.Get(ctx, resource, s.ID)
		if err != nil || live == nil {
			return v
		}
		again := *s
		again.Live, s = live, &again
	}
}

const takeOverTries = 10

// askTakeOverOf returns the server's error as well.
func (g *ground) askTakeOverOf(ctx context.Context, s *plan.Step, resource cluster.Resource) (verdict, error) {
	managers := strings.Join(g.Plan.TakeOverFrom, ", ")
	v := verdict{action: plan.Configured, reason: "takes over the fields of " + managers, verified: byUpdate}
	patch, err := takeOverPatch(s.Live, g.Plan.TakeOverFrom)
	var moved *unstructured.Unstructured
	if err == nil {
		moved, err = g.client.Patch(ctx, resource, s.ID, types.JSONPatchType, patch, cluster.Write{DryRun: true})
	}
	if err != nil {
		return g.refused(ctx, s, resource, fmt.Errorf("take over the fields of %s: %w", managers, err), nil), err
	}
	sent := &unstructured.Unstructured{}
	if err := json.Unmarshal(s.Body, &sent.Object); err != nil {
		return verdict{action: plan.Failed, err: fmt.Errorf("decode what is to be applied: %w", err)}, nil
	}
	would, err := g.merged(ctx, s, moved, sent)
	if len(cluster.FieldConflicts(err)) > 0 {
		return verdict{action: plan.Failed, verified: byServer, err: g.explain(s, err)}, nil
	}
	if err != nil {
		v = g.guess(s, err.Error())
		v.action, v.reason = plan.Configured, "takes over the fields of "+managers
		return v, nil
	}
	v.stored, v.warnings, err = g.client.DryUpdate(ctx, resource, would)
	if right, ok := cluster.MissingRight(err); ok {
		v.stored, v.verified = would, unverified+"no right to "+right
		return v, nil
	}
	if err != nil {
		return g.refused(ctx, s, resource, err, v.warnings), err
	}
	return v, nil
}

// merged is the object as an apply of sent would leave it.
func (g *ground) merged(ctx context.Context, s *plan.Step, live, sent *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	read, _ := g.types.LoadOrStore(s.GVK.GroupVersion(), sync.OnceValues(func() (managedfields.TypeConverter, error) {
		return g.client.Types(ctx, s.GVK.GroupVersion())
	}))
	types, err := read.(func() (managedfields.TypeConverter, error))() //nolint:forcetypeassert // nothing else is put there
	if err != nil {
		return nil, err
	}
	return applied(types, live, sent, g.client.Forces())
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
