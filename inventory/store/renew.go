package store

import (
	"cmp"
	"context"
	"errors"
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
	for _, end := range l.ends {
		end(l.lost)
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
		l.lost = fmt.Errorf("%w: Lease %s was deleted", ErrLockLost, bundle.Name(l.id))
	case !l.isOurs(live) && holderOf(live) == "":
		l.lost = fmt.Errorf("%w: another run took it and has finished", ErrLockLost)
	case !l.isOurs(live):
		l.lost = fmt.Errorf("%w: it was taken by %s", ErrLockLost, heldBy(live))
	default:
		l.lease = live
		return fmt.Errorf("lock %s: written by somebody else", bundle.Name(l.id)) // the next renewal comes soon
	}
	close(l.changed)
	l.ended = true
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
		case ended, !over:
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

// Locks are the locks of several inventories, in one order for every command: of
// two that need the same, one gets the first and with it the others.
type Locks []*Lock

// AwaitAll is Await for several inventories, as NAMESPACE and NAME.
func AwaitAll(ctx context.Context, c *cluster.Client, inventories [][2]string, wait Wait) (Locks, error) {
	inventories = slices.Clone(inventories)
	slices.SortFunc(inventories, func(a, b [2]string) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) })
	var all Locks
	for _, i := range slices.Compact(inventories) {
		l, err := Await(ctx, c, i[0], i[1], wait)
		if err != nil {
			return nil, err
		}
		all = append(all, l)
	}
	return all, nil
}

// Take is Lock.Take for all of them: the context that is returned ends when one of
// them is lost, and no write is sent while one of their leases may have run out.
func (all Locks) Take(ctx context.Context) (context.Context, error) {
	held := ctx
	for i, l := range all {
		next, err := l.Take(held)
		if err != nil {
			return nil, errors.Join(err, all[:i].Release(context.WithoutCancel(ctx), func(*Lock) bool { return false }))
		}
		held = next //nolint:fatcontext // each lock adds its own end
	}
	if len(all) > 0 {
		all[0].client.Gate(func(ctx context.Context) error {
			for _, l := range all {
				if err := l.writable(ctx); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return held, nil
}

// Release gives all of them back; remove says which of the Leases go.
func (all Locks) Release(ctx context.Context, remove func(*Lock) bool) error {
	all = slices.Clone(all)
	slices.Reverse(all)
	return errors.Join(bundle.Each(all, func(l *Lock) error { return l.Release(ctx, remove(l)) })...)
}

// Of says whether it is the lock of the inventory.
func (l *Lock) Of(inv *Inventory) bool {
	return l.id == newLock(l.client, inv.Namespace, inv.Name).id
}
