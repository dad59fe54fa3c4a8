package write

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/plan"
	"brine/bundle/ready"
	"brine/bundle/remedy"
)

// migrate applies a CRD, of which objects are to be rewritten in another version:
// first with the versions that go, then the objects are rewritten, then the versions
// leave status.storedVersions, then the CRD is applied without them. After each of
// these requests the run may end: the next one starts from the beginning,
// and finds less to do.
func (w *Writer) migrate(ctx context.Context, t *target, live *unstructured.Unstructured) (written, error) {
	m := t.step.Migration
	live, err := w.awaitMigration(ctx, t, live)
	if err != nil {
		return written{}, err
	}
	body, err := m.Interim(t.body)
	if err != nil {
		return written{live: live}, err
	}
	interim := *t
	interim.body = body
	put, err := w.put(ctx, &interim, live)
	if err != nil {
		return put, err
	}
	if w.Mode == DryRun {
		if put.Stored != nil {
			m.Final(put.Stored, t.step.Object.Content)
		}
		put.Reason = t.step.Reason
		return put, nil
	}
	resource, err := cluster.DefinedIn(put.Stored, m.To)
	if err != nil {
		return put, err
	}
	if w.Waiting != nil {
		w.Waiting(t.step, "waits until every API server stores its objects in "+m.To)
	}
	count := 0
	if err = w.Client.AwaitStorage(ctx, resource); err == nil {
		count, err = w.rewrite(ctx, m, resource)
	}
	if err != nil {
		return put, fmt.Errorf("%w. The CRD has all its versions still, and nothing is lost", err)
	}
	now, err := w.Client.Unstore(ctx, t.step.ID.Name, m.From, m.To)
	if err != nil {
		return put, fmt.Errorf("remove the versions that no object is stored in from status.storedVersions: %w", err)
	}
	final, err := w.put(ctx, t, now)
	if err != nil {
		final.Stored = put.Stored
	}
	final.live = put.live
	final.Reason = m.Done(count)
	return final, err
}

// awaitMigration waits while Kubernetes itself rewrites the objects of a CRD, and returns the
// CRD as it is then: of one that changes meanwhile it leaves the stored versions as they are.
func (w *Writer) awaitMigration(ctx context.Context, t *target, crd *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	for w.Mode == Persist && ready.Migrating(crd) {
		if w.Waiting != nil {
			w.Waiting(t.step, "waits while Kubernetes migrates its stored objects (StorageMigrating)")
		}
		if !cluster.Sleep(ctx, time.Second) {
			return nil, fmt.Errorf("wait while Kubernetes migrates its stored objects (StorageMigrating): %w", cluster.WhyEnded(ctx))
		}
		now, err := w.Client.Get(ctx, t.resource, t.step.ID)
		switch {
		case err != nil:
			return nil, fmt.Errorf("read it while Kubernetes migrates its stored objects (StorageMigrating): %w", err)
		case now == nil:
			return nil, errors.New("it was deleted while Kubernetes migrated its stored objects")
		}
		crd = now
	}
	return crd, nil
}

// rewrite rewrites the objects. Where there were none, there are still none: those that
// came since may be stored in a version that goes.
func (w *Writer) rewrite(ctx context.Context, m *plan.Migration, r cluster.Resource) (int, error) {
	if !m.Empty {
		return w.Client.Rewrite(ctx, r, m.Moves)
	}
	count, err := w.Client.Count(ctx, r, "")
	if err != nil {
		return 0, fmt.Errorf("count %s again: %w", r.GVR.GroupResource(), err)
	}
	if count > 0 {
		return 0, fmt.Errorf("%s of %s came during this run, and may be stored in %s: %s rewrites them", bundle.Count(count, "object"), r.GVR.GroupResource(), strings.Join(m.From, ", "), remedy.MigrateStored)
	}
	return 0, nil
}
