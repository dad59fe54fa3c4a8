// Package lock keeps two runs from writing to one inventory at once.
package lock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/remedy"
	"brine/inventory"
)

// The lock of a run: awaited, taken, given back. renew.go keeps it.

const (
	// leaseDuration outlives an election of etcd, and an API server under load.
	leaseDuration = time.Minute
	microTime     = "2006-01-02T15:04:05.000000Z07:00"
)

// ErrLocked says that another run holds the inventory's lock.
var ErrLocked = errors.New("locked by another run")

// ErrLost says that the lock was taken from us.
var ErrLost = errors.New("the lock on the inventory was lost")

// ErrTaken says that another run had the lock since Await: what was read since
// then may be out of date.
var ErrTaken = errors.New("another run had the lock meanwhile")

// Wait says how long another run is waited for.
type Wait struct {
	// Until is how long a run that lives is waited for.
	Until time.Time
	// Report is called, once, when there is something to wait for.
	Report func(message string)
	// Who is this run in the messages of those that find the lock held: the user,
	// the Salt minion and job.
	Who string
}

// Lock is a Lease, brine-<inventory>, held while a run writes. It stays when
// it is given back, so that its resourceVersion shows whether another run held it since.
type Lock struct {
	client   *cluster.Client
	id       bundle.ID
	file     *runFile
	who      string
	duration time.Duration // of the lease; tests shorten it

	mu      sync.Mutex
	lease   *unstructured.Unstructured // as it was seen, then as we hold it; nil: not there
	sent    []string                   // renewTimes of renewals whose fate is unknown
	until   moment                     // writes may be sent
	changed chan struct{}              // closed, and made again, with until
	ended   bool                       // given back
	leaving bool                       // its namespace is deleted by us: it is no loss
	lost    error
	ends    []context.CancelCauseFunc // of the contexts that end when it is lost
	paused  time.Duration             // no writes were sent, in all

	stop context.CancelFunc
	done chan struct{}
}

// Await returns the lock of an inventory, not taken yet, when no living run
// holds it: one request. What is read after it, and before Take succeeds, no
// other run has changed.
//
// A holder that is proven dead is passed over at once. Of any other, Await
// watches whether it still renews its Lease: clocks are not compared, so they need
// not agree. One that does not for as long as its lease lasts is dead. One that
// does lives, and is waited for until wait.Until; then the error is ErrLocked.
// That is also the error for a lease that is made to last longer than ours do.
func Await(ctx context.Context, c *cluster.Client, namespace, name string, wait Wait) (*Lock, error) {
	l := newLock(c, namespace, name)
	l.who = wait.Who
	if err := l.await(ctx, wait); err != nil {
		return nil, fmt.Errorf("lock inventory %s/%s: %w", namespace, name, err)
	}
	return l, nil
}

func newLock(c *cluster.Client, namespace, name string) *Lock {
	return &Lock{client: c, id: idOf(namespace, name), duration: leaseDuration}
}

func idOf(namespace, name string) bundle.ID {
	return bundle.ID{Namespace: namespace, Name: inventory.LockName(name), GroupKind: bundle.LeaseKind}
}

func (l *Lock) await(ctx context.Context, wait Wait) error {
	var seen string
	var since time.Time
	for {
		live, err := l.client.Get(ctx, cluster.Leases, l.id)
		switch {
		case err != nil && ctx.Err() != nil && l.lease != nil: // held when it was read last
			return l.locked("", context.Cause(ctx))
		case err != nil:
			return err
		}
		l.lease = live
		if live == nil || holderOf(live) == "" || isDead(holderOf(live)) {
			return nil
		}
		if version := live.GetResourceVersion(); version != seen {
			renewed := seen != ""
			seen, since = version, time.Now()
			if renewed && time.Now().After(wait.Until) {
				return l.locked("it renewed its lock just now", nil)
			}
			if !renewed && wait.Report != nil {
				wait.Report(l.waiting(time.Now(), wait.Until))
			}
		}
		switch quiet, lasts := time.Since(since), durationOf(live); {
		case quiet > lasts:
			return nil
		case quiet > l.duration && time.Now().After(wait.Until):
			return l.locked(fmt.Sprintf("its lease of %s was not renewed for %s", lasts, quiet.Round(time.Second)), nil)
		}
		if !cluster.Sleep(ctx, time.Second) {
			return l.locked("", context.Cause(ctx))
		}
	}
}

func (l *Lock) waiting(now, until time.Time) string {
	until = slices.MaxFunc([]time.Time{until, now.Add(min(l.duration, durationOf(l.lease)))}, time.Time.Compare)
	return fmt.Sprintf("inventory lock %s is held by %s: waiting to see whether that run is still alive, until %s at the latest",
		bundle.Name(l.id), heldBy(l.lease), until.Format(time.TimeOnly))
}

func (l *Lock) locked(detail string, cause error) error {
	text := heldBy(l.lease)
	if detail != "" {
		text += "; " + detail
	}
	err := fmt.Errorf("%w: %s. Wait for it with %s. If you are sure that it has ended, break the lock: %s (see %s)",
		ErrLocked, text, remedy.LockTimeout, l.client.Commands().Delete(l.id.GroupKind, l.id.Namespace, l.id.Name), remedy.HelpLocked)
	if cause != nil {
		err = fmt.Errorf("%w: %w", cause, err)
	}
	return err
}

func heldBy(lease *unstructured.Unstructured) string {
	text := spoken(holderOf(lease))
	// It counts only for that holder, since an older brine leaves it as it is.
	if who, ok := strings.CutPrefix(lease.GetAnnotations()[inventory.HolderAnnotation], holderOf(lease)+" "); ok {
		text += " (" + who + ")"
	}
	if since, _, _ := unstructured.NestedString(lease.Object, "spec", "acquireTime"); since != "" {
		text += " since " + since
	}
	return text
}

// Take takes the lock, unless another run had it since Await: then the error is
// ErrTaken. The context that is returned ends when the lock is lost. Until it is
// released the client sends no write while the lease may have run out.
func (l *Lock) Take(ctx context.Context) (context.Context, error) {
	l.file = newRunFile()
	before := ""
	if l.lease != nil {
		before = holderOf(l.lease)
	}
	sent := l.now()
	if err := l.take(ctx); err != nil {
		l.file.remove()
		if apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) || l.lease != nil && apierrors.IsNotFound(err) {
			err = errors.Join(ErrTaken, err)
		}
		return nil, fmt.Errorf("take lock %s: %w", bundle.Name(l.id), err)
	}
	forget(before)
	renewing, stop := context.WithCancel(context.WithoutCancel(ctx))
	l.stop, l.done = stop, make(chan struct{})
	l.until, l.changed = sent.add(l.duration-l.margin()), make(chan struct{})
	l.client.Gate(l.writable)
	go l.renew(renewing)
	return l.While(ctx), nil
}

// While is ctx until the lock, which is taken, is lost: that is its cause then.
func (l *Lock) While(ctx context.Context) context.Context {
	held, end := context.WithCancelCause(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.loss(); err != nil {
		end(err)
	}
	l.ends = append(l.ends, end)
	return held
}

// Lost is why the lock is lost: an ErrLost, or nil.
func (l *Lock) Lost() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.loss()
}

func (l *Lock) loss() error {
	if l.leaving {
		return nil
	}
	return l.lost
}

func (l *Lock) take(ctx context.Context) error {
	var lease *unstructured.Unstructured
	var err error
	if l.lease == nil {
		u := bundle.V1(l.id, map[string]any{})
		l.fill(u)
		lease, err = l.client.Create(ctx, cluster.Leases, u, cluster.Write{})
	} else {
		u := l.lease.DeepCopy()
		l.fill(u)
		lease, err = l.client.Update(ctx, cluster.Leases, u)
	}
	if err != nil {
		return err
	}
	l.lease = lease
	return nil
}

// fill makes a Lease ours as of now, and returns its renewTime.
func (l *Lock) fill(u *unstructured.Unstructured) string {
	now := time.Now().UTC().Format(microTime)
	spec, _, _ := unstructured.NestedMap(u.Object, "spec")
	if spec == nil {
		spec = map[string]any{}
	}
	if holder := l.file.holder(); spec["holderIdentity"] != holder {
		spec["holderIdentity"], spec["acquireTime"] = holder, now
		annotations := u.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[inventory.HolderAnnotation] = holder + " " + l.who
		u.SetAnnotations(annotations)
	}
	spec["leaseDurationSeconds"] = int64(max(l.duration, time.Second) / time.Second)
	spec["renewTime"] = now
	u.Object["spec"] = spec
	return now
}

// Leave is for a run that is about to delete the lock's namespace: that the Lease goes with
// it ends nothing. It is renewed until then, and nothing is written after it.
func (l *Lock) Leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leaving = l.lost == nil
}

// Release gives the lock back, and with it the Lease where nothing is left to
// be locked. It works on a context that is still alive, also after the run's own
// was cancelled.
func (l *Lock) Release(ctx context.Context, remove bool) error {
	l.stop()
	<-l.done
	l.client.Gate(nil)
	defer l.file.remove()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lost == nil {
		l.ended = true
		close(l.changed)
	}
	err := l.giveBack(ctx, remove)
	if apierrors.IsConflict(err) {
		// A renewal that was cut short may have been written: then it is still ours.
		live, getErr := l.client.Get(ctx, cluster.Leases, l.id)
		if getErr != nil || live == nil || !l.isOurs(live) {
			return nil // it is another run's by now
		}
		l.lease = live
		err = l.giveBack(ctx, remove)
	}
	if err != nil && !apierrors.IsNotFound(err) { // it may go with its namespace
		return fmt.Errorf("release the lock: %w", err)
	}
	return nil
}

func (l *Lock) giveBack(ctx context.Context, remove bool) error {
	if remove {
		_, err := l.client.Delete(ctx, cluster.Leases, l.lease, cluster.Deletion{})
		return err
	}
	// As client-go's leader election does: no holder, and nothing to wait for.
	u := l.lease.DeepCopy()
	spec, _, _ := unstructured.NestedMap(u.Object, "spec")
	spec["holderIdentity"], spec["leaseDurationSeconds"] = "", int64(1)
	u.Object["spec"] = spec
	_, err := l.client.Update(ctx, cluster.Leases, u)
	return err
}

func holderOf(u *unstructured.Unstructured) string {
	s, _, _ := unstructured.NestedString(u.Object, "spec", "holderIdentity")
	return s
}

// durationOf is how long a Lease lasts; one that does not say lasts as ours do.
func durationOf(u *unstructured.Unstructured) time.Duration {
	s, _, _ := unstructured.NestedInt64(u.Object, "spec", "leaseDurationSeconds")
	if s <= 0 {
		return leaseDuration
	}
	return time.Duration(s) * time.Second
}
