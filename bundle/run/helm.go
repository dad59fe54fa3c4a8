package run

import (
	"context"
	"fmt"

	"brine/bundle"
	"brine/bundle/apply"
	"brine/bundle/remedy"
	"brine/bundle/report"
	"brine/bundle/takeover"
	"brine/bundle/takeover/helm"
)

func readReleases(ctx context.Context, s *session, o *Options, now situation) ([]helm.Release, error) {
	releases, wrong, err := helm.Read(ctx, s.client, o.Planning.TakeOverFrom, now.bundle, now.live.Live)
	if err != nil {
		return nil, err
	}
	for i := range releases {
		s.record.Warn(fmt.Sprintf("%s is taken over: when all of its objects are applied, Helm forgets it (label %s of what it stores)", releases[i], takeover.HelmOwner))
	}
	if len(releases) > 0 {
		wrong = append(wrong, releases[0].CheckOptions(len(o.Only) > 0, o.RollbackOnFailure)...)
	}
	if len(wrong) > 0 {
		return nil, &report.Stop{Code: report.ExitBadBundle, Errors: wrong}
	}
	return releases, nil
}

// forgetReleases makes Helm forget the releases, once all of their objects are applied.
func forgetReleases(ctx context.Context, s *session, o *Options, in intent, steps []apply.Outcome) {
	releases := in.releases
	for i := range releases {
		err := apply.AllApplied(steps)
		if left := in.bundle.Invalid; err == nil && len(left) > 0 {
			err = fmt.Errorf("%s of the bundle is invalid and was left out: %s", bundle.Count(len(left), "object"), left[0].Error())
		}
		if err == nil {
			err = releases[i].Forget(ctx, s.client, o.Inventory.Namespace+"/"+o.Inventory.Name)
		}
		if err != nil {
			s.record.Warn(fmt.Sprintf("%s is not forgotten by Helm, and \"helm uninstall\" would still delete its objects: %v. The next run with %s tries again", releases[i], err, remedy.TakeOverFrom))
		}
	}
}
