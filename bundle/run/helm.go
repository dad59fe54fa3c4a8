package run

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/bundle/apply"
	"brine/bundle/plan"
	"brine/bundle/remedy"
	"brine/bundle/report"
	"brine/bundle/takeover"
	"brine/bundle/takeover/helm"
)

// readReleases finds the Helm releases to take over from, or stops the run.
func (r *run) readReleases(ctx context.Context, live map[bundle.ID]*unstructured.Unstructured) error {
	releases, wrong, err := helm.Read(ctx, r.client, r.Planning.TakeOverFrom, r.bundle, live)
	if err != nil {
		return err
	}
	r.releases = releases
	for i := range releases {
		r.record.Warn(fmt.Sprintf("%s is taken over: when all of its objects are applied, Helm forgets it (label %s of what it stores)", releases[i], takeover.HelmOwner))
	}
	if len(releases) > 0 {
		wrong = append(wrong, releases[0].CheckOptions(len(r.Only) > 0, r.RollbackOnFailure)...)
	}
	if len(wrong) > 0 {
		return &report.Stop{Code: report.ExitBadBundle, Errors: wrong}
	}
	return nil
}

// forgetReleases makes Helm forget the releases, once all of their objects are applied.
func (r *run) forgetReleases(ctx context.Context, outcomes []apply.Outcome) {
	for i := range r.releases {
		err := allApplied(outcomes)
		if err == nil {
			err = r.releases[i].Forget(ctx, r.client, r.Inventory.Namespace+"/"+r.Inventory.Name)
		}
		if err != nil {
			r.record.Warn(fmt.Sprintf("%s is not forgotten by Helm, and \"helm uninstall\" would still delete its objects: %v. The next run with %s tries again", r.releases[i], err, remedy.TakeOverFrom))
		}
	}
}

func allApplied(outcomes []apply.Outcome) error {
	for i := range outcomes {
		if a := outcomes[i].Result.Action; a == plan.Failed || a == plan.Skipped && !outcomes[i].Deletes() {
			return fmt.Errorf("%s was %s", bundle.Name(outcomes[i].ID), a)
		}
	}
	return nil
}
