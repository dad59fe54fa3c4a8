package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"brine/inventory/store"
)

// take takes the lock, unless this run has it. Where its namespace is not there
// yet, that is made first: from the bundle, if the bundle has it.
func (r *run) take(ctx context.Context) error {
	if r.held != nil {
		return nil
	}
	held, err := r.lock.Take(ctx)
	if apierrors.IsNotFound(err) && !errors.Is(err, store.ErrTaken) && !r.Planning.Destroy {
		if err := r.makeNamespace(ctx); err != nil {
			return err
		}
		held, err = r.lock.Take(ctx)
	}
	if err != nil {
		return err
	}
	r.held = held
	return nil
}

// holder is this run for those that find its lock held.
func (r *run) holder() string {
	if r.JobID == "" {
		return r.Who
	}
	return r.Who + ", Salt job " + r.JobID
}

// takeFor takes the lock for this run, and for its rollback.
func (r *run) takeFor(ctx context.Context) error {
	if r.back == nil || r.held != nil {
		return r.take(ctx)
	}
	if err := r.take(r.back.command); err != nil { //nolint:contextcheck // a rollback has more time
		return err
	}
	r.back.locked = r.held
	r.held, _ = r.back.limit(r.held) // its timer ends with the command's context
	return nil
}

// release gives the lock back.
func (r *run) release() {
	if paused := r.lock.Paused(); paused > 0 {
		r.record.Warn(fmt.Sprintf("the inventory's lock could not be renewed in time: no writes were sent for %s, until the server answered", paused.Round(time.Second)))
	}
	if err := r.lock.Release(r.after.release, r.inv != nil && !r.inv.Exists()); err != nil {
		r.record.Warn(err.Error())
	}
}
