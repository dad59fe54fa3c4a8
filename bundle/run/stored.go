package run

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/cluster/answers"
	"brine/bundle/order"
	"brine/bundle/plan"
	"brine/bundle/validate"
)

// stored finds the objects of those CRDs of the bundle whose stored versions change.
func (r *run) stored(ctx context.Context, g *order.Graph, live *cluster.Snapshot) map[bundle.ID]plan.Stored {
	all := map[bundle.ID]plan.Stored{}
	inBundle := map[bundle.ID]bool{}
	for _, o := range g.Objects {
		inBundle[o.ID] = true
	}
	for _, o := range g.Objects {
		crd := live.Live[o.ID]
		if m := plan.StoredVersions(o.Content, crd); m != nil && (len(m.Gone) > 0 || r.Planning.Migrates(o.Content, crd)) {
			all[o.ID] = r.storedOf(ctx, o, crd, m, inBundle)
		}
	}
	return all
}

// storedOf lists the objects of one CRD, and what they would lose. Those of the bundle
// have in the new version what the bundle says. What a conversion webhook makes of
// the others is known only where the live CRD serves the new version already.
func (r *run) storedOf(ctx context.Context, o *bundle.Object, crd *unstructured.Unstructured, m *plan.Migration, inBundle map[bundle.ID]bool) (found plan.Stored) {
	resource, err := cluster.DefinedIn(crd, m.To)
	if err != nil {
		return plan.Stored{Err: err}
	}
	items, err := r.client.List(cluster.Briefly(ctx), resource, "", "", "")
	if err != nil {
		return plan.Stored{Err: err, Later: answers.WebhookFailed(err)}
	}
	found.Count = len(items)
	if !m.Relabels && resource.GVK.Version != m.To {
		return found
	}
	crds, problems := validate.Compile([]*bundle.Object{o})
	if len(problems) > 0 {
		return found // the server refuses the CRD, and nothing is rewritten
	}
	for i := range items {
		id := bundle.ID{GroupKind: resource.GVK.GroupKind(), Namespace: items[i].GetNamespace(), Name: items[i].GetName()}
		if inBundle[id] {
			continue
		}
		items[i].SetGroupVersionKind(resource.GVK)
		fields, err := crds.Dropped(&items[i], m.To)
		if err != nil {
			return plan.Stored{Count: len(items), Err: err}
		}
		for _, field := range fields {
			found.Lost = append(found.Lost, bundle.Name(id)+" "+field)
		}
	}
	return found
}
