package preview

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/cluster/answers"
	"brine/bundle/cluster/transport"
	"brine/bundle/plan"
	"brine/bundle/write"
)

// prepare finds out which namespaces are new, and in which surrogates their
// objects can be dry-run.
func prepare(ctx context.Context, in Input) (*previewer, error) {
	p := &previewer{
		Input: in, steps: bundle.By(in.Plan.Steps, func(s *plan.Step) bundle.ID { return s.ID }), fresh: map[string]bool{},
		newKinds: map[schema.GroupKind]bool{}, changedKinds: map[schema.GroupKind]bool{},
	}
	p.writer = &write.Writer{
		Mode: write.DryRun, Options: in.Options, Client: in.Client, Plan: in.Plan, Inventory: &in.Inventory.Inventory,
		Quotes: in.Record.Secrets.Quotes, NewAccount: p.newAccount, Retrying: func(*plan.Step, error) {},
	}
	if in.Drift {
		return p, nil // what is not there is asked of nobody
	}
	if err := p.findNamespace(ctx); err != nil {
		return nil, err
	}
	kinds := sets.New[schema.GroupKind]()
	for _, s := range in.Plan.Steps {
		if s.Deletes() || s.Blocked != "" || s.Action == plan.Unchanged || s.ID.Namespace == "" || in.Only != nil && !in.Only(s) {
			continue
		}
		if p.isFresh(s.ID.Namespace) {
			p.fresh[s.ID.Namespace] = true
			kinds.Insert(s.ID.GroupKind)
		}
	}
	if len(p.fresh) == 0 {
		return p, nil
	}
	if err := p.chooseSurrogates(ctx); err != nil {
		return nil, err
	}
	return p, p.clashes(ctx, kinds.UnsortedList())
}

// findNamespace finds out whether apply would have to create the inventory's namespace.
func (p *previewer) findNamespace(ctx context.Context) error {
	id := bundle.ID{GroupKind: bundle.NamespaceKind, Name: p.Inventory.Namespace}
	if _, ok := p.steps[id]; ok || p.Inventory.Exists() {
		return nil
	}
	live, err := p.Client.Get(ctx, cluster.Namespaces, id)
	if err != nil && !apierrors.IsForbidden(err) {
		return fmt.Errorf("look for the inventory's namespace: %w", err)
	}
	if p.noNamespace = err == nil && live == nil; p.noNamespace && p.Only == nil {
		p.Record.Warn(fmt.Sprintf("the inventory's namespace %s is not there and not in the bundle: apply makes it", id.Name))
	}
	return nil
}

// isFresh says whether a namespace is not there and comes with the bundle, or,
// as the inventory's does, with the run.
func (p *previewer) isFresh(namespace string) bool {
	s, ok := p.steps[bundle.ID{GroupKind: bundle.NamespaceKind, Name: namespace}]
	if ok {
		return s.Live == nil && !s.Deletes()
	}
	return namespace == p.Inventory.Namespace && p.noNamespace
}

// chooseSurrogates takes the inventory's namespace, else one that every cluster
// has; where rights do not reach to see that one is there, it is taken on trust.
func (p *previewer) chooseSurrogates(ctx context.Context) error {
	for _, name := range []string{p.Inventory.Namespace, "default", p.Namespace, "kube-public"} {
		if name == "" || p.fresh[name] || slices.Contains(p.surrogates, name) {
			continue
		}
		live, err := p.Client.Get(ctx, cluster.Namespaces, bundle.ID{GroupKind: bundle.NamespaceKind, Name: name})
		switch {
		case err != nil && !apierrors.IsForbidden(err):
			return fmt.Errorf("look for a surrogate of the new namespaces: %w", err)
		case err == nil && (live == nil || live.GetDeletionTimestamp() != nil):
			continue
		}
		p.surrogates = append(p.surrogates, name)
	}
	return nil
}

// clashes lists what is in the surrogate namespaces already, of the kinds that
// are dry-run there.
func (p *previewer) clashes(ctx context.Context, kinds []schema.GroupKind) error {
	found := make([][]bundle.ID, len(kinds)*len(p.surrogates))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(transport.MaxConcurrency)
	for i, gk := range kinds {
		resource, err := p.Client.Any(gk)
		if err != nil || !resource.Can("list") || p.CRDs().Has(gk) {
			continue
		}
		for j, namespace := range p.surrogates {
			group.Go(func() error {
				items, err := p.Client.ListMetadata(ctx, resource, namespace, "")
				if err != nil && !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) && !answers.NotServed(err) {
					return fmt.Errorf("list %s in namespace %s, to stay clear of them: %w", resource.GVR.GroupResource(), namespace, err)
				}
				for _, item := range items {
					found[i*len(p.surrogates)+j] = append(found[i*len(p.surrogates)+j], bundle.ID{GroupKind: gk, Namespace: namespace, Name: item.Name})
				}
				return nil
			})
		}
	}
	if err := group.Wait(); err != nil {
		return err
	}
	p.taken = sets.New(slices.Concat(found...)...)
	return nil
}

// newAccount says whether a ServiceAccount is yet to be made.
func (p *previewer) newAccount(namespace, name string) bool {
	s, ok := p.steps[bundle.ID{GroupKind: bundle.ServiceAccountKind, Namespace: namespace, Name: name}]
	return ok && s.Live == nil || p.fresh[namespace]
}
