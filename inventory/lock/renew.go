package lock

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/bundle/cluster"
)

// The lock is renewed, and writes are held back while it may have run out.

// margin is how long before the end of the lease no more writes are sent: they
// take their time to arrive. It is also how often the lease is renewed.
func (l *Lock) margin() time.Duration { return l.duration / 6 }

// renew keeps the lock. A server that does not answer is asked again and
// again, on a connection of its own; meanwhile, once the lease may have run out,
// writable holds the run's writes back. Only a lock that another took ends the
// run's context.
func (l *Lock) renew(ctx context.Context) {
	defer close(l.done)
	var client *cluster.Client
	defer func() {
		if client != nil {
			client.Close()
		}
	}()
	for pause := l.margin(); ; {
		if !cluster.Sleep(ctx, pause) {
			return
		}
		if client == nil {
			client = l.client.Separate()
		}
		switch err := l.renewOnce(ctx, client); {
		case ctx.Err() != nil:
			return
		case err == nil:
			pause = l.margin()
		case l.lost != nil: // nobody else writes it
			l.endAll()
			return
		default:
			pause = l.margin() / 10
		}
	}
}

func (l *Lock) endAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	err := l.loss()
	if err == nil {
		return
	}
	for _, end := range l.ends {
		end(err)
	}
}

// renewOnce sends one renewal, and waits for the answer for a short time.
func (l *Lock) renewOnce(ctx context.Context, client *cluster.Client) error {
	ctx, cancel := context.WithTimeout(ctx, l.margin()/2)
	defer cancel()
	l.mu.Lock()
	next := l.lease.DeepCopy()
	began := l.now()
	l.sent = append(l.sent, l.fill(next))
	l.mu.Unlock()
	lease, err := client.Update(ctx, cluster.Leases, next)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return l.reread(ctx, client)
	}
	if err != nil {
		return err
	}
	l.renewed(lease, began)
	return nil
}

// reread finds out who wrote the Lease since we did. A renewal of ours whose
// answer was lost, or somebody's annotation, leaves the lock ours.
func (l *Lock) reread(ctx context.Context, client *cluster.Client) error {
	live, err := client.Get(ctx, cluster.Leases, l.id)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case live == nil:
		l.lost = fmt.Errorf("%w: Lease %s was deleted", ErrLost, bundle.Name(l.id))
	case !l.isOurs(live) && holderOf(live) == "":
		l.lost = fmt.Errorf("%w: another run took it and has finished", ErrLost)
	case !l.isOurs(live):
		l.lost = fmt.Errorf("%w: it was taken by %s", ErrLost, heldBy(live))
	default:
		l.lease = live
		return fmt.Errorf("lock %s: written by somebody else", bundle.Name(l.id)) // the next renewal comes soon
	}
	close(l.changed)
	return l.lost
}

// isOurs says whether what a Lease says was written by this very run. The
// holder alone does not: a clone of this machine, process and all, has the same.
func (l *Lock) isOurs(live *unstructured.Unstructured) bool {
	renewed, _, _ := unstructured.NestedString(live.Object, "spec", "renewTime")
	last, _, _ := unstructured.NestedString(l.lease.Object, "spec", "renewTime")
	return holderOf(live) == l.file.holder() && (renewed == last || slices.Contains(l.sent, renewed))
}

func (l *Lock) renewed(lease *unstructured.Unstructured, began moment) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.paused += max(0, l.now().sinceByBoth(l.until))
	l.lease, l.sent = lease, nil
	l.until = began.add(l.duration - l.margin())
	close(l.changed)
	l.changed = make(chan struct{})
}

// writable waits while the lease may have run out. Its error is that the lock is
// lost, or the context's.
func (l *Lock) writable(ctx context.Context) error {
	for {
		l.mu.Lock()
		over, changed, lost, ended := l.now().since(l.until) >= 0, l.changed, l.lost, l.ended
		l.mu.Unlock()
		switch {
		case lost != nil:
			return lost
		case ended:
			return fmt.Errorf("%w: it was given back", ErrLost)
		case !over:
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}

// moment is a time by the monotonic clock, which may stand still while the machine is
// suspended, and by the wall clock, which may be set.
type moment struct{ monotonic, wall time.Time }

func (l *Lock) now() moment { return moment{time.Now(), l.client.Wall()} }

func (m moment) add(d time.Duration) moment { return moment{m.monotonic.Add(d), m.wall.Add(d)} }

// since is the time since an earlier moment by the clock that says more.
func (m moment) since(earlier moment) time.Duration {
	return max(m.monotonic.Sub(earlier.monotonic), m.wall.Sub(earlier.wall))
}

// sinceByBoth is the time since an earlier moment by the clock that says less: a wall clock
// that is set is no pause.
func (m moment) sinceByBoth(earlier moment) time.Duration {
	return min(m.monotonic.Sub(earlier.monotonic), m.wall.Sub(earlier.wall))
}

// Paused is for how long the client sent no writes, because the Lease could
// not be renewed.
func (l *Lock) Paused() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.paused
}
