package run

import (
	"context"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/bundle/apply"
	"brine/bundle/plan"
	"brine/inventory"
)

// nextNumber is the number of the run: that of the revision that it saves, or would save.
func (r *run) nextNumber() int {
	last := r.inv.Last()
	switch {
	case last.Number == 0:
		return r.inv.LastRun() + 1
	case r.chosen == nil && last.Digest == r.digest():
		return last.Number
	}
	return last.Number + 1
}

// originsBefore are the origins that the inventory records before the first write: then
// a run that is killed leaves no object that was there before, and of which that is not
// known.
func (r *run) originsBefore(p *plan.Plan) map[bundle.ID]inventory.Origin {
	origins := maps.Clone(r.inv.Origins)
	for id, o := range p.Origins {
		if origins[id] = r.numbered(o); o == (inventory.Origin{}) {
			delete(origins, id)
		}
	}
	return origins
}

// numbered is an origin that this run found.
func (r *run) numbered(o inventory.Origin) inventory.Origin {
	if o.Run == 0 && o.Before() {
		o.Run = r.number
	}
	return o
}

// originsAfter are the origins that the inventory is to hold after the run: of what it
// has created too, and of no object that left it.
func (r *run) originsAfter(p *plan.Plan, outcomes []apply.Outcome, gone []bundle.ID) map[bundle.ID]inventory.Origin {
	origins := maps.Clone(r.inv.Origins)
	if !r.began { // else they are recorded, and what was found since as well
		origins = r.originsBefore(p)
	}
	for i := range outcomes {
		o := &outcomes[i]
		if origin := origins[o.ID]; o.PutBack && origin.How != inventory.Unknown {
			origins[o.ID] = origin.Of(o.UID)
		}
		if o.Deletes() || o.ID.Name == "" || o.UID == "" && o.Result.Action != plan.Unchanged {
			continue
		}
		origin := origins[o.ID]
		origin.Came = ""
		switch o.Result.Action {
		case plan.Created:
			origin = inventory.Origin{How: inventory.Created, Run: r.number}.Of(o.UID)
		case plan.Recreated:
			origin = origin.Of(o.UID)
		}
		if delete(origins, o.ID); origin.How != inventory.Unknown {
			origins[o.ID] = origin
		}
	}
	for _, id := range gone {
		delete(origins, id)
	}
	return origins
}

// adopt records the origin of an object that another client created since the plan was
// made, before it is applied.
func (r *run) adopt(ctx context.Context, id bundle.ID, live *unstructured.Unstructured) error {
	select {
	case r.origins <- struct{}{}:
		defer func() { <-r.origins }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	r.keepBefore(map[bundle.ID]*unstructured.Unstructured{id: live})
	origins := maps.Clone(r.inv.Origins)
	origins[id] = r.numbered(plan.FoundOrigin(&r.inv.Inventory, id, live, r.Planning.TakeOverFrom))
	return r.inv.SaveOrigins(ctx, origins)
}
