package run

import (
	"context"
	"errors"
	"slices"

	"brine/bundle"
	"brine/bundle/check"
	"brine/bundle/plan"
	"brine/bundle/remedy"
	"brine/bundle/report"
	"brine/inventory"
)

// Offline is Run without a server: what apply would do on a cluster that has
// nothing yet, as far as it can be known without asking one.
func Offline(ctx context.Context, b *bundle.Bundle, o Options, kubernetesVersion string, emit func(report.Event)) *report.Result {
	record := report.New(o.Header, emit)
	err := offline(ctx, record, b, &o, kubernetesVersion)
	return record.Finish(ctx, ExitCode(err), err, map[string]int{})
}

func offline(ctx context.Context, record *report.Recorder, b *bundle.Bundle, o *Options, kubernetesVersion string) error {
	if o.Mode == Destroy {
		return &report.Stop{Code: report.ExitBadBundle, Errors: []error{errors.New(remedy.DryRun + "=client cannot preview a destroy, because only the cluster knows the members of the inventory: use " + remedy.DryRun + "=server")}}
	}
	reportInvalid(record, b.Invalid)
	c, err := checkOffline(record, b, o, kubernetesVersion)
	record.Secrets.Bundle(b.Objects)
	if err != nil {
		return err
	}
	for _, w := range b.Warnings {
		record.Warn(w.Error())
	}
	for _, notice := range c.Graph.Notices {
		record.Warn(notice.Error())
	}
	if len(c.Problems) > 0 {
		return report.BadBundle(c.Problems...)
	}
	inv := inventory.Empty(o.Inventory.Namespace, o.Inventory.Name, o.Inventory.ID)
	record.Result.Inventory.ID = inv.ID
	if holdsSecrets(o, b) {
		inv.Key = inventory.NewKey(inv.Namespace, inv.Name)
	}
	keyDigests(record, o, b, inv.Key, nil)
	options := o.planning(b)
	options.Policy = plan.AdoptIfNoInventory
	p, problems := plan.Build(plan.Input{Graph: c.Graph, Absent: b.Absent, Inventory: inv, Options: options})
	if len(problems) > 0 {
		return report.BadBundle(problems...)
	}
	objects := c.Preview(ctx, record, p, kubernetesVersion)
	if err := o.Deny.Stop(record.Result, p, objects); err != nil {
		return err
	}
	if len(c.Faults) > 0 && !o.SkipInvalid {
		return &report.Stop{Code: report.ExitBadBundle}
	}
	return nil
}

// checkOffline checks the bundle, again without the invalid objects until there are none
// where SkipInvalid says so: who depends on them is next.
func checkOffline(record *report.Recorder, b *bundle.Bundle, o *Options, kubernetesVersion string) (*check.Findings, error) {
	for {
		c, err := check.Bundle(b, o.Namespace, kubernetesVersion, o.Readiness)
		if err != nil {
			return nil, &report.Stop{Code: report.ExitBadBundle, Errors: []error{err}}
		}
		c.Problems = append(c.Problems, inventory.Reserved(o.Inventory.Namespace, o.Inventory.Name, b)...)
		invalid := c.Problems
		if len(invalid) == 0 { // as apply does before it writes; other faults are for the server to find
			invalid = slices.DeleteFunc(slices.Clone(c.Faults), func(p bundle.Problem) bool { return !c.CRDs.Sound(p.ID.GroupKind) })
		}
		if !o.SkipInvalid || len(invalid) == 0 {
			return c, nil
		}
		if err := skipInvalid(record, o, b, invalid); err != nil {
			return nil, err
		}
	}
}
