package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/cli-utils/pkg/object/mutation"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/diff"
	"brine/bundle/plan"
	"brine/bundle/report"
	"brine/bundle/surrogate"
)

// ask gets the verdict on one step.
func (g *ground) ask(ctx context.Context, s *plan.Step) verdict {
	ctx = report.WithStep(ctx, s)
	switch {
	case s.Blocked != "":
		return verdict{action: plan.Failed, err: errors.New(s.Blocked)}
	case s.Action == plan.Skipped:
		return verdict{action: plan.Skipped, reason: s.Reason}
	case s.Action == plan.Pruned:
		return g.askDelete(ctx, s)
	case s.Action == plan.Detached:
		return g.askDetach(ctx, s)
	case s.Action == plan.Unchanged && s.Reason != "":
		return verdict{action: plan.Unchanged, reason: s.Reason, stored: s.Live, verified: byLeftAlone}
	case s.Action == plan.Unchanged:
		return verdict{action: plan.Unchanged, stored: s.Live, verified: byFingerprint}
	}
	gk := s.ID.GroupKind
	if g.unborn[gk] || g.moved[gk] && g.crds.Has(gk) {
		return g.askCRD(ctx, s)
	}
	resource, err := g.client.Resource(s.GVK)
	if err != nil {
		service, later := g.servedBy(s)
		failed := g.client.Failed(gk.Group)
		switch {
		case later && service.Live == nil:
			return g.guess(s, fmt.Sprintf("%s, which serves it, is new", bundle.Name(service.ID)))
		case later:
			return g.guess(s, fmt.Sprintf("%s, which serves it, is not available", bundle.Name(service.ID)))
		case failed != nil:
			return g.guess(s, failed.Error())
		}
		return verdict{action: plan.Failed, err: err}
	}
	if s.Live != nil && plan.Manages(s.Live, g.Plan.TakeOverFrom) {
		return g.askTakeOver(ctx, s, resource)
	}
	if mutation.HasAnnotation(s.Object.Content) {
		return g.askMutated(ctx, s, resource)
	}
	if g.fresh[s.ID.Namespace] {
		return g.askElsewhere(ctx, s, resource)
	}
	here := surrogate.Place{Namespace: s.ID.Namespace, Name: s.ID.Name}
	stored, warnings, err := g.send(ctx, s, resource, &here)
	verified := byServer
	if here.Account != "" {
		verified = "server (surrogate service account)"
	}
	if err != nil {
		return g.refused(ctx, s, resource, err, warnings)
	}
	return g.accepted(s, stored, verified, warnings)
}

// send dry-runs a step in a place and returns the answer as it would be where
// the object belongs.
func (g *ground) send(ctx context.Context, s *plan.Step, resource cluster.Resource, p *surrogate.Place) (*unstructured.Unstructured, []string, error) {
	sent := &unstructured.Unstructured{}
	if err := json.Unmarshal(s.Body, &sent.Object); err != nil {
		return nil, nil, fmt.Errorf("decode what is to be applied: %w", err)
	}
	if s.ID.Name == "" { // generateName: created, never tracked
		u := &unstructured.Unstructured{}
		if err := json.Unmarshal(s.Body, &u.Object); err != nil {
			return nil, nil, fmt.Errorf("decode what is to be created: %w", err)
		}
		if s.ID.Namespace != "" {
			u.SetNamespace(p.Namespace)
		}
		stored, err := g.client.Create(ctx, resource, u, cluster.Write{DryRun: true})
		if err == nil {
			stored.SetName("")
			stored.SetNamespace(s.ID.Namespace)
			stored = surrogate.Unallocated(stored, sent)
		}
		return stored, nil, err
	}
	body, id := s.Body, s.ID
	if p.Namespace != s.ID.Namespace || p.Name != s.ID.Name || s.ID.GroupKind.Kind == "Pod" {
		var err error
		if body, err = p.Move(s.Body, g.newAccount); err != nil {
			return nil, nil, err
		}
		id.Namespace, id.Name = p.Namespace, p.Name
	}
	stored, warnings, err := g.client.Apply(ctx, resource, id, body, cluster.Write{DryRun: true})
	if err != nil {
		return nil, warnings, err
	}
	if id != s.ID || p.Account != "" {
		stored = p.MoveBack(stored, sent, s.ID)
	}
	if s.Live == nil || id != s.ID {
		stored = surrogate.Unallocated(stored, sent)
	}
	return stored, warnings, nil
}

// askElsewhere dry-runs a step whose namespace is new in one that is there.
// What only the surrogate refuses, by its quota for example, is not held against
// the bundle: the next surrogate is asked.
func (g *ground) askElsewhere(ctx context.Context, s *plan.Step, resource cluster.Resource) verdict {
	why := "there is no surrogate for the new namespace " + s.ID.Namespace
	for _, namespace := range g.surrogates {
		there := s.ID
		there.Namespace = namespace
		p := surrogate.New(s.ID, namespace, g.taken[there])
		stored, warnings, err := g.send(ctx, s, resource, &p)
		if err == nil {
			return g.accepted(s, stored, bySurrogate, warnings)
		}
		if cluster.NamespaceRefuses(err) {
			why = fmt.Sprintf("namespace %s, the surrogate for %s, does not admit it: %s", namespace, s.ID.Namespace, err.Error())
			continue
		}
		return g.refused(ctx, s, resource, &moved{place: p, id: s.ID, err: err}, warnings)
	}
	return g.guess(s, why)
}

// moved is an error about an object in its surrogate namespace, as one about the object.
type moved struct {
	place surrogate.Place
	id    bundle.ID
	err   error
}

func (m *moved) Error() string { return m.place.Message(m.err.Error(), m.id) }
func (m *moved) Unwrap() error { return m.err }

// accepted is the verdict on a step that the server would carry out.
func (g *ground) accepted(s *plan.Step, stored *unstructured.Unstructured, verified string, warnings []string) verdict {
	v := verdict{action: s.Action, reason: s.Reason, stored: stored, verified: verified, warnings: warnings}
	if s.Live == nil {
		return v
	}
	if s.Action == plan.Configured && !plan.Changed(s.Live, stored) {
		v.action = plan.Unchanged
	}
	if lost := plan.Taken(s.Live, stored); len(lost) > 0 {
		v.reason = "takes " + strings.Join(lost, "; ")
		v.warnings = append(slices.Clone(warnings), v.reason)
	}
	return v
}

// refused is the verdict on a step that the server answered with an error.
func (g *ground) refused(ctx context.Context, s *plan.Step, resource cluster.Resource, err error, warnings []string) verdict {
	failed := verdict{action: plan.Failed, verified: byServer, warnings: warnings}
	if right, ok := cluster.MissingRight(err); ok {
		g.denied.Store(true)
		return g.guess(s, "no right to "+right)
	}
	if cluster.Immutable(err) && s.Live != nil {
		if s.Recreate {
			return g.askRecreate(ctx, s, resource, err)
		}
		err = needsRecreate(s, err)
	} else if why, ok := g.excused(s, err); ok {
		return g.guess(s, why)
	}
	failed.err = g.explain(s, err)
	return failed
}

// explain makes the server's answer something to act on.
func (g *ground) explain(s *plan.Step, err error) error {
	return (&execution{run: g.run}).explain(&node{Step: s}, err)
}

// askRecreate dry-runs an object anew, under another name: its own is still
// taken.
func (g *ground) askRecreate(ctx context.Context, s *plan.Step, resource cluster.Resource, why error) verdict {
	reason := "deleted and created anew: " + why.Error()
	if _, err := g.client.Delete(ctx, resource, s.ID, cluster.Deletion{UID: s.Live.GetUID(), DryRun: true}); err != nil {
		if right, ok := cluster.MissingRight(err); ok {
			g.denied.Store(true)
			v := g.guess(s, "no right to "+right)
			v.action, v.reason = plan.Recreated, reason
			return v
		}
		return verdict{action: plan.Failed, verified: byServer, err: g.explain(s, fmt.Errorf("delete it, to create it anew: %w", err))}
	}
	// Under its own name there is an answer, but no object to show.
	if _, err := provesCreation(ctx, g.client, resource, s.Body); err != nil {
		if right, ok := cluster.MissingRight(err); ok {
			g.denied.Store(true)
			v := g.guess(s, "no right to "+right)
			v.action, v.reason = plan.Recreated, reason
			return v
		}
		return verdict{action: plan.Failed, verified: byServer, err: g.explain(s, err)}
	}
	p := surrogate.New(s.ID, s.ID.Namespace, true)
	stored, warnings, err := g.send(ctx, s, resource, &p)
	if err == nil {
		return verdict{action: plan.Recreated, reason: reason, stored: stored, verified: byOtherName, warnings: warnings}
	}
	if cluster.Allocated(err) || cluster.NamespaceRefuses(err) {
		v := g.guess(s, "what it holds now cannot be had twice: "+p.Message(err.Error(), s.ID))
		v.action, v.reason = plan.Recreated, reason
		return v
	}
	return verdict{action: plan.Failed, verified: byOtherName, err: g.explain(s, &moved{place: p, id: s.ID, err: err})}
}

// askCRD judges a resource by the CRD of the bundle, with the server's own code.
// A kind that is served already is shown to the server as well: it alone knows
// of conflicts, and of fields that change hands.
func (g *ground) askCRD(ctx context.Context, s *plan.Step) verdict {
	stored, problems, _ := g.crds.Check(ctx, s.Object, s.Object.Content, s.Live, true)
	if len(problems) > 0 {
		return verdict{action: plan.Failed, verified: byBundleCRD, err: bundle.Problems(problems)}
	}
	v := verdict{action: s.Action, reason: s.Reason, stored: g.branded(stored), verified: byBundleCRD}
	if warning := g.crds.Warning(s.GVK); warning != "" {
		v.warnings = append(v.warnings, warning)
	}
	if why := g.crds.Unverified(s.GVK, s.Live); why != "" {
		v.verified = unverified + why
	}
	if s.Live == nil {
		return v
	}
	changed := !diff.Equal(s.Live, v.stored)
	if resource, err := g.client.Resource(s.GVK); err == nil {
		answer, _, err := g.send(ctx, s, resource, &surrogate.Place{Namespace: s.ID.Namespace, Name: s.ID.Name})
		switch right, denied := cluster.MissingRight(err); {
		case denied:
			g.denied.Store(true)
			v.verified = unverified + "no right to " + right
		case len(cluster.FieldConflicts(err)) > 0:
			return verdict{action: plan.Failed, verified: byServer, err: g.explain(s, err)}
		case err == nil:
			changed = changed || plan.Changed(s.Live, answer)
			if lost := plan.Taken(s.Live, answer); len(lost) > 0 {
				v.reason = "takes " + strings.Join(lost, "; ")
			}
		}
	}
	if s.Action == plan.Configured && !changed {
		v.action = plan.Unchanged
	}
	return v
}

// branded is an object with the marks of a member.
func (g *ground) branded(u *unstructured.Unstructured) *unstructured.Unstructured {
	if u == nil {
		return nil
	}
	u = u.DeepCopy()
	g.inv.SetOwner(u)
	return u
}

// askDelete dry-runs a deletion: of the very object that was looked at.
func (g *ground) askDelete(ctx context.Context, s *plan.Step) verdict {
	v := verdict{action: plan.Pruned, reason: s.Reason, verified: byServer}
	resource, err := g.client.Any(s.ID.GroupKind)
	if err != nil {
		v.verified = unverified + "its kind is not served by the cluster"
		return v
	}
	_, err = g.client.Delete(ctx, resource, s.ID, cluster.Deletion{UID: s.Live.GetUID(), Propagation: g.Cascade, DryRun: true})
	if right, ok := cluster.MissingRight(err); ok {
		g.denied.Store(true)
		v.verified = unverified + "no right to " + right
		return v
	}
	switch {
	case apierrors.IsConflict(err):
		return verdict{action: plan.Skipped, reason: "it was replaced by another object of its name, and is not ours any more"}
	case cluster.NoDryRun(err):
		v.verified = unverified + err.Error()
	case err != nil:
		return verdict{action: plan.Failed, verified: byServer, err: fmt.Errorf("delete: %w", err)}
	}
	return v
}

// askDetach shows what an object looks like without our marks.
func (g *ground) askDetach(ctx context.Context, s *plan.Step) verdict {
	v := verdict{action: plan.Detached, reason: s.Reason, verified: byServer}
	marks := g.inv.ClearOwner(s.Live)
	if marks == nil || s.Shared {
		return v
	}
	body, err := json.Marshal(map[string]any{"metadata": marks})
	if err != nil {
		return v
	}
	resource, err := g.client.Any(s.ID.GroupKind)
	if err != nil {
		return v
	}
	stored, err := g.client.Patch(ctx, resource, s.ID, types.MergePatchType, body, cluster.Write{DryRun: true})
	if right, ok := cluster.MissingRight(err); ok {
		g.denied.Store(true)
		v.verified = unverified + "no right to " + right
		return v
	}
	switch {
	case err == nil:
		v.stored = stored
	case cluster.NoDryRun(err):
		v.verified = unverified + err.Error()
	case !apierrors.IsNotFound(err):
		return verdict{action: plan.Failed, verified: byServer, err: fmt.Errorf("detach: %w", err)}
	}
	return v
}
