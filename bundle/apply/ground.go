package apply

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/diff"
	"brine/bundle/plan"
	"brine/bundle/validate"
)

// ground is what a preview stands on: what is there already, and what is yet to
// be made by the very bundle.
type ground struct {
	*run
	steps map[bundle.ID]*plan.Step
	// fresh are the namespaces that this run would make.
	fresh map[string]bool
	// surrogates are namespaces that are there, the best first.
	surrogates []string
	// taken are the objects in the surrogate namespaces whose names clash.
	taken map[bundle.ID]bool
	crds  *validate.CRDs
	// unborn are kinds that nobody serves yet, moved those whose CRD changes.
	unborn, moved map[schema.GroupKind]bool
	types         sync.Map    // group version -> its schemas, read once
	denied        atomic.Bool // some request was forbidden
	homeless      bool        // the inventory's namespace is not there
}

// survey finds out which namespaces are new, and which surrogates their objects get.
func (r *run) survey(ctx context.Context) (*ground, error) {
	g := &ground{
		run: r, steps: map[bundle.ID]*plan.Step{}, fresh: map[string]bool{}, taken: map[bundle.ID]bool{},
		unborn: map[schema.GroupKind]bool{}, moved: map[schema.GroupKind]bool{},
	}
	g.crds = r.definitions()
	for _, s := range r.plan.Steps {
		g.steps[s.ID] = s
	}
	if err := g.home(ctx); err != nil {
		return nil, err
	}
	crowd := map[schema.GroupKind]bool{}
	for _, s := range r.plan.Steps {
		if s.Deletes() || s.Blocked != "" || s.Action == plan.Unchanged || s.ID.Namespace == "" {
			continue
		}
		if g.isFresh(s.ID.Namespace) {
			g.fresh[s.ID.Namespace] = true
			crowd[s.ID.GroupKind] = true
		}
	}
	if len(g.fresh) == 0 {
		return g, nil
	}
	if err := g.chooseSurrogates(ctx); err != nil {
		return nil, err
	}
	return g, g.clashes(ctx, slices.Collect(maps.Keys(crowd)))
}

// home looks whether apply would have to make the inventory's namespace.
func (g *ground) home(ctx context.Context) error {
	id := bundle.ID{GroupKind: bundle.NamespaceKind, Name: g.Inventory.Namespace}
	if _, ok := g.steps[id]; ok || g.inv.Exists() {
		return nil
	}
	live, err := g.client.Get(ctx, cluster.Namespaces, id)
	if err != nil && !apierrors.IsForbidden(err) {
		return fmt.Errorf("look for the inventory's namespace: %w", err)
	}
	if g.homeless = err == nil && live == nil; g.homeless {
		g.record.Warn(fmt.Sprintf("the inventory's namespace %s is not there and not in the bundle: apply makes it", id.Name))
	}
	return nil
}

// isFresh says whether a namespace is not there and comes with the bundle, or,
// as the inventory's does, with the run.
func (g *ground) isFresh(namespace string) bool {
	s, ok := g.steps[bundle.ID{GroupKind: bundle.NamespaceKind, Name: namespace}]
	if ok {
		return s.Live == nil && !s.Deletes()
	}
	return namespace == g.Inventory.Namespace && g.homeless
}

// chooseSurrogates takes the inventory's namespace, else one that every cluster
// has; where rights do not reach to see that one is there, it is taken on trust.
func (g *ground) chooseSurrogates(ctx context.Context) error {
	for _, name := range []string{g.Inventory.Namespace, "default", g.Namespace, "kube-public"} {
		if name == "" || g.fresh[name] || slices.Contains(g.surrogates, name) {
			continue
		}
		live, err := g.client.Get(ctx, cluster.Namespaces, bundle.ID{GroupKind: bundle.NamespaceKind, Name: name})
		switch {
		case err != nil && !apierrors.IsForbidden(err):
			return fmt.Errorf("look for a surrogate of the new namespaces: %w", err)
		case err == nil && (live == nil || live.GetDeletionTimestamp() != nil):
			continue
		}
		g.surrogates = append(g.surrogates, name)
	}
	return nil
}

// clashes lists what is in the surrogate namespaces already, of the kinds that go there.
func (g *ground) clashes(ctx context.Context, kinds []schema.GroupKind) error {
	found := make([][]bundle.ID, len(kinds)*len(g.surrogates))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(cluster.MaxConcurrency)
	for i, gk := range kinds {
		resource, err := g.client.Any(gk)
		if err != nil || !resource.Can("list") || g.crds.Has(gk) {
			continue
		}
		for j, namespace := range g.surrogates {
			group.Go(func() error {
				items, err := g.client.ListMetadata(ctx, resource, namespace, "")
				if err != nil && !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) {
					return fmt.Errorf("list %s in namespace %s, to stay clear of them: %w", resource.GVR.GroupResource(), namespace, err)
				}
				for _, item := range items {
					found[i*len(g.surrogates)+j] = append(found[i*len(g.surrogates)+j], bundle.ID{GroupKind: gk, Namespace: namespace, Name: item.Name})
				}
				return nil
			})
		}
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for _, id := range slices.Concat(found...) {
		g.taken[id] = true
	}
	return nil
}

// learn notes which kinds the server cannot judge, because their CRDs are new
// or change.
func (g *ground) learn(verdicts []verdict) {
	for i, s := range g.plan.Steps {
		if s.Deletes() || s.ID.GroupKind != bundle.CRDKind {
			continue
		}
		for _, resource := range cluster.Defined(s.Object.Content) {
			gk := resource.GVK.GroupKind()
			switch v := verdicts[i]; {
			case s.Live == nil:
				g.unborn[gk] = true
			case v.action == plan.Unchanged:
			case v.stored == nil:
				g.moved[gk] = true
			default:
				for _, c := range diff.Objects(s.Live, v.stored, diff.Options{}).Changes {
					if c.Path == "spec" || len(c.Path) > 5 && c.Path[:5] == "spec." {
						g.moved[gk] = true
					}
				}
			}
		}
	}
}

// servedBy is the APIService of this bundle that serves a step's kind, if one
// does.
func (g *ground) servedBy(s *plan.Step) (*plan.Step, bool) {
	for _, need := range s.Needs {
		if on := g.plan.Steps[need.Step]; on.ID.GroupKind == bundle.APIServiceKind && !on.Deletes() {
			group, _, _ := unstructured.NestedString(on.Object.Content.Object, "spec", "group")
			if group == s.ID.GroupKind.Group {
				return on, true
			}
		}
	}
	return nil, false
}

// newAccount says whether a ServiceAccount is yet to be made.
func (g *ground) newAccount(namespace, name string) bool {
	s, ok := g.steps[bundle.ID{GroupKind: bundle.ServiceAccountKind, Namespace: namespace, Name: name}]
	return ok && s.Live == nil || g.fresh[namespace]
}
