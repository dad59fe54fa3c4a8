package apply

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/plan"
	"brine/bundle/report"
	"brine/inventory"
)

func (r *run) look(ctx context.Context) error {
	var members, others []bundle.ID
	for id := range r.inv.Members {
		members = append(members, id)
	}
	for _, o := range r.bundle.Objects {
		if _, ok := r.inv.Members[o.ID]; !ok {
			others = append(others, o.ID)
		}
	}
	var absent []bundle.ID
	for _, a := range r.bundle.Absent {
		absent = append(absent, a.ID)
	}
	view, err := r.client.Snapshot(ctx, members, append(others, absent...), absent, r.inv.Selector())
	if err != nil {
		return err
	}
	if err := r.lookInOwnVersion(ctx, view); err != nil {
		return err
	}
	delete(view.Live, r.made) // so that it is told as created
	r.view = view
	return nil
}

// sameBundle stops a bundle that shares nothing but its file's name with what
// the inventory holds: /a/bundle.yaml must not prune what /b/bundle.yaml made.
func (r *run) sameBundle() error {
	if !r.Derived || len(r.inv.Members) == 0 || len(r.bundle.Objects) == 0 || r.Plan.NoPrune {
		return nil
	}
	for _, o := range r.bundle.Objects {
		if _, ok := r.inv.Members[o.ID]; ok {
			return nil
		}
	}
	return report.BadBundle(bundle.Problem{Message: fmt.Sprintf(
		"inventory %s/%s, named after the bundle's file, holds %s, none of which this bundle has, so all would be pruned: if it is the same bundle say so with --name=%s, otherwise choose another name",
		r.inv.Namespace, r.inv.Name, bundle.Count(len(r.inv.Members), "object"), r.inv.Name)})
}

// lookInOwnVersion reads again, one by one, objects of a kind that the bundle
// writes in several versions: live is compared in the version that is sent.
func (r *run) lookInOwnVersion(ctx context.Context, view *cluster.Snapshot) error {
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

func (r *run) makePlan(ctx context.Context) error {
	if err := r.sameBundle(); err != nil {
		return err
	}
	in := plan.Input{
		Graph: r.graph, Absent: r.bundle.Absent, Inventory: &r.inv.Inventory,
		Live: r.view.Live, Unknown: r.view.Unknown, Options: r.Plan, Invalid: map[bundle.ID]bool{},
	}
	for _, p := range r.bundle.Invalid {
		in.Invalid[p.ID] = true
	}
	contents, err := r.holds(ctx)
	if err != nil {
		return err
	}
	in.Contents = contents
	p, problems := plan.Build(in)
	if len(problems) > 0 {
		return report.BadBundle(problems...)
	}
	skipped, err := r.conform(ctx, p)
	if err != nil {
		return err
	}
	if skipped {
		if err := r.order(); err != nil {
			return err
		}
		return r.makePlan(ctx)
	}
	if len(p.Refused) > 0 && r.DryRun == "none" {
		return report.BadBundle(p.Refused...)
	}
	for _, w := range p.Warnings {
		r.record.Warn(w)
	}
	for _, id := range p.Forget {
		r.record.Warn(bundle.Name(id) + " was in the inventory but is gone from the cluster: forgotten")
	}
	r.plan = p
	return nil
}

// holds is what the Namespaces and CRDs hold that might be deleted.
func (r *run) holds(ctx context.Context) (map[bundle.ID]bundle.Contents, error) {
	if r.Plan.NoPrune || r.Plan.ForceNamespaces {
		return nil, nil
	}
	var holders, deleted []*unstructured.Unstructured
	for _, id := range plan.Candidates(r.inv.Members, r.graph, r.bundle.Absent) {
		live := r.view.Live[id]
		if live == nil {
			continue
		}
		deleted = append(deleted, live)
		if bundle.HoldsObjects(id.GroupKind) {
			holders = append(holders, live)
		}
	}
	if len(holders) == 0 {
		return nil, nil
	}
	return r.client.Contents(ctx, r.question(holders, deleted))
}

// ownSide says whether labels are those of our own inventory's ConfigMaps and
// Secrets.
func (r *run) ownSide(labels map[string]string) bool {
	return labels[inventory.AuxiliaryLabel] == r.inv.ID || labels["cli-utils.sigs.k8s.io/inventory-id"] == r.inv.ID
}
