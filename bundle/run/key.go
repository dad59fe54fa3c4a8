package run

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/plan"
	"brine/bundle/redact"
	"brine/bundle/report"
	"brine/inventory"
	"brine/inventory/store"
)

// holdsSecrets says whether hashes of what a Secret holds are to be made: a bundle
// without Secrets needs no key, and costs no request for one.
func (r *run) holdsSecrets() bool {
	return !r.Planning.Destroy && (r.bundle.HasSecretDigests() || slices.ContainsFunc(r.bundle.Objects, func(o *bundle.Object) bool { return redact.Holds(o.Content) }))
}

func (r *run) loadKey(ctx context.Context) error {
	key, err := store.LoadKey(ctx, r.client, r.Inventory.Namespace, r.Inventory.Name)
	r.key = key
	return err
}

// keyDigests keys the digests of Secrets in pod templates. Those that no key on
// the cluster stands behind yet are not shown: the next run would have others.
func (r *run) keyDigests(ctx context.Context, view *cluster.Snapshot) error {
	if r.key == nil && r.client != nil && r.holdsSecrets() { // a slot asks for a Secret that is not in the bundle
		if err := r.loadKey(ctx); err != nil {
			return err
		}
	}
	r.inv.Key = r.key
	if r.key == nil {
		return nil
	}
	there := func(id bundle.ID) *unstructured.Unstructured {
		if view == nil {
			return nil
		}
		return view.Live[id]
	}
	var restarted []string
	r.bundle.KeySecretDigests(r.key.Digest, there, func(o *bundle.Object, digest, live string) {
		keyed := strings.HasPrefix(digest, inventory.Keyed)
		if !keyed || r.key.Fresh() && (r.DryRun != report.None || r.SavedPlan != nil) {
			r.record.Secrets.AddValue(digest)
		}
		if keyed && r.key.Fresh() && strings.HasPrefix(live, inventory.Keyed) {
			restarted = append(restarted, bundle.Name(o.ID))
		}
	})
	if len(restarted) > 0 {
		r.record.Warn(fmt.Sprintf("the key of the inventory, %s, is gone, and a new one is made: the digests of Secrets in pod templates change, and pods restart even if their Secrets have not changed: %s",
			bundle.Name(r.key.ID()), strings.Join(restarted, ", ")))
	}
	return nil
}

// digest is the bundle's, keyed where it is one of Secrets, too. Before there is
// a key on the cluster, their values do not take part in it.
func (r *run) digest() string {
	switch {
	case r.key == nil:
		return r.bundle.Digest
	case r.key.Fresh():
		return r.bundle.DigestWithoutSecrets(redact.Holds)
	}
	return r.key.Digest(r.bundle.Digest)
}

// persistBeginning writes the inventory, and the key if there is none yet, before the first
// object.
func (r *run) persistBeginning(ctx context.Context, p *plan.Plan) error {
	both, ctx := errgroup.WithContext(ctx)
	both.Go(func() error {
		if err := r.inv.SaveOrigins(ctx, r.originsBefore(p)); err != nil {
			return err
		}
		return r.inv.Add(ctx, p.Add, r.number)
	})
	both.Go(func() error { return r.inv.SaveKey(ctx) })
	if left, found := p.Forgotten(r.inv.Fingerprints); found {
		both.Go(func() error { return r.inv.SaveFingerprints(ctx, left) })
	}
	return both.Wait()
}
