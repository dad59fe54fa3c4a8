package preview

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/cluster/answers"
	"brine/bundle/cluster/transport"
	"brine/bundle/plan"
	"brine/bundle/report"
	"brine/bundle/review"
)

// What a review asks of the cluster is read.

var budgetKind = schema.GroupKind{Group: "policy", Kind: "PodDisruptionBudget"}

// Review says what the plan is about, and what is dangerous in it. Only what is
// dangerous is asked about. What cannot be read is unknown.
func Review(ctx context.Context, c *cluster.Client, p *plan.Plan, objects []*report.ObjectResult, results []Result) *review.Review {
	ctx = cluster.Briefly(ctx)
	changes := Changes(p, objects, results)
	asked := review.Ask(changes)
	answer := review.Cluster{Counts: map[bundle.ID]review.Count{}, Fits: map[bundle.ID]review.Fits{}, Removals: p.Removals}
	at := bundle.By(changes, func(change review.Change) bundle.ID { return change.ID })
	var mu sync.Mutex
	var group errgroup.Group
	group.SetLimit(transport.MaxConcurrency)
	ask := func(question func()) {
		group.Go(func() error {
			question()
			return nil
		})
	}
	if len(asked.Budgets) > 0 {
		ask(func() { answer.Budgets, answer.BudgetsUnknown = budgets(ctx, c, asked.Budgets) })
	}
	if asked.Nodes {
		ask(func() { answer.Nodes, answer.NodesUnknown = nodes(ctx, c) })
	}
	for _, id := range asked.Count {
		ask(func() {
			n := count(ctx, c, id, at[id].Before)
			mu.Lock()
			defer mu.Unlock()
			answer.Counts[id] = n
		})
	}
	for _, id := range asked.Fit {
		ask(func() {
			f := fits(ctx, c, at[id], at)
			mu.Lock()
			defer mu.Unlock()
			answer.Fits[id] = f
		})
	}
	ask(func() { answer.Found, answer.Unknown = find(ctx, c, asked) })
	_ = group.Wait() // none of them fails
	return review.Of(changes, answer)
}

// Changes are the steps of a plan as package review takes them.
func Changes(p *plan.Plan, objects []*report.ObjectResult, results []Result) []review.Change {
	changes := make([]review.Change, len(p.Steps))
	for i, s := range p.Steps {
		r, o := results[i], objects[i]
		c := review.Change{ID: s.ID, Action: o.Action, Object: s.Object, Before: s.Live, After: r.Stored, Fields: o.Changes, Taken: r.Taken, Unadmitted: r.Verified == ByCRD}
		if c.Before == nil {
			c.Before = s.Terminating
		}
		if o.Action == plan.Recreated {
			c.Reason, _, _ = strings.Cut(o.Reason, "\n") // the claims are on their own
			c.Orphans, c.Claims = s.Orphans(), r.Claims
		}
		if why, ok := strings.CutPrefix(o.Verified, Unverified); ok {
			c.Unverified = why
		}
		changes[i] = c
	}
	return changes
}

// budgets reads the PodDisruptionBudgets of namespaces with one LIST, or with one a
// namespace where that is forbidden.
func budgets(ctx context.Context, c *cluster.Client, namespaces []string) (found []unstructured.Unstructured, unknown string) {
	r, err := c.Any(budgetKind)
	if err != nil {
		return nil, err.Error()
	}
	where := ""
	if len(namespaces) == 1 {
		where = namespaces[0]
	}
	found, err = c.List(ctx, r, where, "", "")
	if !apierrors.IsForbidden(err) || where != "" {
		return found, reason(err)
	}
	for _, namespace := range namespaces {
		items, err := c.List(ctx, r, namespace, "", "")
		if err != nil {
			return nil, reason(err)
		}
		found = slices.Concat(found, items)
	}
	return found, ""
}

// nodes are the labels of all nodes.
func nodes(ctx context.Context, c *cluster.Client) (found []map[string]string, unknown string) {
	r, err := c.Any(schema.GroupKind{Kind: "Node"})
	if err != nil {
		return nil, err.Error()
	}
	items, err := c.ListMetadata(ctx, r, "", "")
	return bundle.Each(items, func(item metav1.PartialObjectMetadata) map[string]string { return item.Labels }), reason(err)
}

// fewNames is how many objects of a kind are read one by one. More are listed.
const fewNames = 3

// find looks for objects: with a GET each, or with one LIST a kind, or one a namespace
// where that is forbidden. Of others than roles a LIST has the names alone. An object
// whose keys are asked for is read by itself.
func find(ctx context.Context, c *cluster.Client, asked review.Questions) (found map[bundle.ID]*unstructured.Unstructured, unknown map[bundle.ID]string) {
	found, unknown = map[bundle.ID]*unstructured.Unstructured{}, map[bundle.ID]string{}
	var reads [][]bundle.ID
	kinds := map[schema.GroupKind][]bundle.ID{}
	for _, id := range asked.Find {
		if asked.Keys[id] {
			reads = append(reads, []bundle.ID{id})
		} else {
			kinds[id.GroupKind] = append(kinds[id.GroupKind], id)
		}
	}
	reads = slices.AppendSeq(reads, maps.Values(kinds))
	var mu sync.Mutex
	note := func(id bundle.ID, u *unstructured.Unstructured, err error) {
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			unknown[id] = reason(err)
		} else if u != nil {
			found[id] = u
		}
	}
	_ = bundle.AtOnce(ctx, transport.MaxConcurrency, reads, func(ctx context.Context, of []bundle.ID) error { // none of them fails
		switch r, err := c.Any(of[0].GroupKind); {
		case err != nil:
			for _, id := range of {
				note(id, nil, err)
			}
		case len(of) > fewNames:
			list(ctx, c, r, of, note)
		default:
			for _, id := range of {
				u, err := c.Get(ctx, r, id)
				note(id, u, err)
			}
		}
		return nil
	})
	return found, unknown
}

// list looks for objects of one kind with one LIST, or with one a namespace.
func list(ctx context.Context, c *cluster.Client, r cluster.Resource, ids []bundle.ID, note func(bundle.ID, *unstructured.Unstructured, error)) {
	in := bundle.GroupBy(ids, func(id bundle.ID) string { return id.Namespace })
	everywhere := ""
	if len(in.Keys) == 1 {
		everywhere = ids[0].Namespace
	}
	items, err := everything(ctx, c, r, everywhere)
	for namespace, of := range in.All() {
		items, err := items, err
		if apierrors.IsForbidden(err) && namespace != everywhere {
			items, err = everything(ctx, c, r, namespace)
		}
		for _, id := range of {
			note(id, items[id], err)
		}
	}
}

func everything(ctx context.Context, c *cluster.Client, r cluster.Resource, namespace string) (map[bundle.ID]*unstructured.Unstructured, error) {
	found := map[bundle.ID]*unstructured.Unstructured{}
	gk := r.GVK.GroupKind()
	if gk.Group == "rbac.authorization.k8s.io" {
		items, err := c.List(ctx, r, namespace, "", "")
		for i := range items {
			found[bundle.ID{GroupKind: gk, Namespace: items[i].GetNamespace(), Name: items[i].GetName()}] = &items[i]
		}
		return found, err
	}
	items, err := c.ListMetadata(ctx, r, namespace, "")
	for i := range items {
		id := bundle.ID{GroupKind: gk, Namespace: items[i].Namespace, Name: items[i].Name}
		found[id] = bundle.V1(id, map[string]any{})
	}
	return found, err
}

// reason is why something is unknown; "" where it is known.
func reason(err error) string {
	if right, ok := answers.MissingRight(err); ok {
		return "no right to " + right
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// count is how many resources of a CRD there are, or claims in a Namespace.
func count(ctx context.Context, c *cluster.Client, id bundle.ID, live *unstructured.Unstructured) review.Count {
	var r cluster.Resource
	namespace, err := "", error(nil)
	if id.GroupKind == bundle.NamespaceKind {
		namespace = id.Name
		r, err = c.Any(bundle.PersistentVolumeClaimKind)
	} else if served := cluster.Defined(live); len(served) > 0 {
		r = served[0]
	} else {
		err = errNoVersion
	}
	if err != nil {
		return review.Count{Unknown: err.Error()}
	}
	n, err := c.Count(ctx, r, namespace)
	return review.Count{N: n, Unknown: reason(err)}
}

var errNoVersion = errors.New("the CRD serves no version")
