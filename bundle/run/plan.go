package run

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/order"
	"brine/bundle/plan"
	"brine/bundle/remedy"
	"brine/bundle/report"
	"brine/bundle/write"
	"brine/inventory"
)

// readLive reads the live objects of the inventory and of the bundle, and of those
// outside that it depends on.
func (r *run) readLive(ctx context.Context, t target) (*cluster.Snapshot, error) {
	var members, others []bundle.ID
	for id := range r.inv.Members {
		members = append(members, id)
	}
	for _, o := range r.bundle.Objects {
		if _, ok := r.inv.Members[o.ID]; !ok && o.ID.Name != "" { // generateName: there is none yet
			others = append(others, o.ID)
		}
	}
	var absent []bundle.ID
	for _, a := range r.bundle.Absent {
		absent = append(absent, a.ID)
	}
	outside := r.startReadingOutside(ctx, t)
	live, err := r.client.Snapshot(ctx, members, append(others, absent...), absent, r.inv.Selector())
	r.outside = outside()
	if err != nil {
		return nil, err
	}
	if err := r.readInOwnVersion(ctx, live); err != nil {
		return nil, err
	}
	if r.namespace != nil {
		delete(live.Live, bundle.ID{GroupKind: bundle.NamespaceKind, Name: r.namespace.GetName()}) // so that it is reported as created
	}
	return live, nil
}

// checkDerivedName stops a bundle that has little but its file's name in common with what
// the inventory was made from: /a/bundle.yaml must not prune what /b/bundle.yaml made.
func (r *run) checkDerivedName(ctx context.Context) error {
	shared := plan.Shared(r.inv.Members, r.bundle.Objects)
	if !r.Derived || len(r.bundle.Objects) == 0 || 2*shared >= len(r.inv.Members) {
		return nil
	}
	last := &inventory.Content{}
	if number := r.inv.Last().Number; number > 0 {
		var err error
		if last, err = r.inv.LoadRevision(ctx, number); err != nil {
			return fmt.Errorf("find out whether inventory %s/%s is of this bundle, as its name comes from the bundle's file name: %w", r.inv.Namespace, r.inv.Name, err)
		}
	}
	if shared > 0 && slices.Equal(last.Sources, r.Sources) {
		return nil
	}
	from := "another bundle"
	if len(last.Sources) > 0 {
		from = strings.Join(last.Sources, ", ")
	}
	return report.BadBundle(bundle.Problem{Message: fmt.Sprintf(
		"inventory %s/%s, named after the bundle's file, was made from %s: of its %s, %d are in this bundle, and the others would be pruned. If this is intended, give %s=%s. Otherwise choose another name",
		r.inv.Namespace, r.inv.Name, from, bundle.Count(len(r.inv.Members), "object"), shared, remedy.Name, r.inv.Name)})
}

// readInOwnVersion reads again, one by one, objects of a kind that the bundle
// writes in several versions: live is compared in the version that is sent.
func (r *run) readInOwnVersion(ctx context.Context, view *cluster.Snapshot) error {
	for _, o := range r.bundle.Objects {
		live := view.Live[o.ID]
		if live == nil || live.GroupVersionKind() == o.GVK {
			continue
		}
		resource, err := r.client.Resource(o.GVK)
		if err != nil {
			continue // a version that this run's CRD is to bring
		}
		if live, err = r.client.Get(ctx, resource, o.ID); err != nil {
			return fmt.Errorf("read %s: %w", bundle.Name(o.ID), err)
		}
		view.Live[o.ID] = live
	}
	return nil
}

// plan makes the plan. The target is another one where objects of the bundle
// turned out to be invalid, and were left out.
func (r *run) plan(ctx context.Context, t target, live *cluster.Snapshot) (target, *plan.Plan, error) {
	if err := r.checkDerivedName(ctx); err != nil {
		return t, nil, err
	}
	outside, problems, err := r.liveOutside(t, live)
	if err != nil {
		return t, nil, err
	}
	if len(problems) > 0 {
		if rest := r.skipInvalid(problems); !r.SkipInvalid || len(rest) > 0 {
			return t, nil, report.BadBundle(rest...)
		}
		if t, err = r.order(); err != nil {
			return t, nil, err
		}
		return r.plan(ctx, t, live)
	}
	if err := r.recallBefore(ctx); err != nil {
		return t, nil, err
	}
	in := plan.Input{
		Graph: t.graph, Chosen: t.chosen, Absent: r.bundle.Absent, Inventory: &r.inv.Inventory,
		Live: live.Live, Unknown: live.Unknown, Options: r.Planning, Invalid: map[bundle.ID]bool{}, Outside: outside,
	}
	for _, p := range r.bundle.Invalid {
		in.Invalid[p.ID] = true
	}
	contents, err := r.contents(ctx, t.graph, live)
	if err != nil {
		return t, nil, err
	}
	in.Contents, in.Stored = contents, r.stored(ctx, t.graph, live)
	p, problems := plan.Build(in)
	if len(problems) > 0 {
		return t, nil, report.BadBundle(problems...)
	}
	r.ruleOutside(t, p)
	skipped, err := r.conform(ctx, p)
	if err != nil {
		return t, nil, err
	}
	if skipped {
		if t, err = r.order(); err != nil {
			return t, nil, err
		}
		return r.plan(ctx, t, live)
	}
	if r.RollbackOnFailure {
		if err := r.planWayBack(ctx, p); err != nil {
			return t, nil, err
		}
	}
	if len(p.Refused) > 0 && r.DryRun == report.None {
		return t, nil, r.refuse(ctx, p)
	}
	if r.Wanted != "" {
		return t, p, nil // nothing of it is carried out
	}
	for _, w := range p.Warnings {
		r.record.Warn(w)
	}
	for _, id := range p.Forget {
		if r.inv.Fingerprints[id].Completed != "" {
			continue // its TTL removed it
		}
		r.record.Warn(bundle.Name(id) + " was in the inventory but does not exist: removed from the inventory")
	}
	return t, p, nil
}

// contents is what the Namespaces and CRDs hold that might be deleted.
func (r *run) contents(ctx context.Context, g *order.Graph, live *cluster.Snapshot) (map[bundle.ID]bundle.Contents, error) {
	if r.Planning.NoPrune || r.Planning.ForceNamespaces || r.chosen != nil {
		return nil, nil
	}
	var holders []*unstructured.Unstructured
	deleted := &cluster.Deleted{}
	for _, id := range plan.Candidates(r.inv.Members, g, r.bundle.Absent) {
		u := live.Live[id]
		if u == nil {
			continue
		}
		deleted.Add(u)
		if bundle.HoldsObjects(id.GroupKind) {
			holders = append(holders, u)
		}
	}
	if len(holders) == 0 {
		return nil, nil
	}
	return r.client.Contents(ctx, write.Search(&r.inv.Inventory, r.Cascade, holders, deleted))
}
