package inspect

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/cluster/answers"
	"brine/bundle/plan"
	"brine/bundle/validate"
)

// StoredInOldVersions finds the objects of those CRDs of a bundle whose stored versions
// change.
func StoredInOldVersions(ctx context.Context, c *cluster.Client, options plan.Options, objects []*bundle.Object, live map[bundle.ID]*unstructured.Unstructured) map[bundle.ID]plan.Stored {
	all := map[bundle.ID]plan.Stored{}
	inBundle := bundle.IDs(objects)
	for _, o := range objects {
		crd := live[o.ID]
		if m := plan.StoredVersions(o.Content, crd); m != nil && (len(m.Gone) > 0 || options.Migrates(o.Content, crd)) {
			all[o.ID] = storedOf(ctx, c, o, crd, m, inBundle)
		}
	}
	return all
}

// storedOf lists the objects of one CRD, and what they would lose. Those of the bundle
// have in the new version what the bundle says. What a conversion webhook makes of
// the others is known only where the live CRD serves the new version already.
func storedOf(ctx context.Context, c *cluster.Client, o *bundle.Object, crd *unstructured.Unstructured, m *plan.Migration, inBundle sets.Set[bundle.ID]) (found plan.Stored) {
	resource, err := cluster.DefinedIn(crd, m.To)
	if err != nil {
		return plan.Stored{Err: err}
	}
	items, err := c.List(cluster.Briefly(ctx), resource, "", "", "")
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
		items[i].SetGroupVersionKind(resource.GVK)
		id := bundle.IDOf(&items[i])
		if inBundle.Has(id) {
			continue
		}
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
