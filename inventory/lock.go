package inventory

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"brine/bundle"
	"brine/bundle/cluster"
)

// leases is known without discovery.
var leases = cluster.Resource{
	GVR:        schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"},
	GVK:        schema.GroupVersionKind{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"},
	Namespaced: true,
}

const (
	leaseDuration = 15 * time.Second
	leaseRenewal  = 5 * time.Second
	microTime     = "2006-01-02T15:04:05.000000Z07:00"
)

// ErrLocked says that another run holds the inventory's lock, and is alive.
var ErrLocked = errors.New("locked by another run")

// ErrLockLost says that the lock was taken from us, or could not be renewed in time.
var ErrLockLost = errors.New("the lock on the inventory was lost")

// ErrTaken says that another run had the lock since Await: what was read since
// then may be out of date.
var ErrTaken = errors.New("another run had the lock meanwhile")

// Lock is a Lease, brine-<inventory>, held while a run writes. It stays when
// it is given back, so that its resourceVersion tells whether anybody held it.
type Lock struct {
	client *cluster.Client
	id     bundle.ID
	holder string

	mu    sync.Mutex
	lease *unstructured.Unstructured // as it was seen, then as we hold it; nil: not there
	stop  context.CancelFunc
	done  chan struct{}
}

// Await returns the lock of an inventory, not taken yet, when no living run
// holds it: one request. What is read after it, and before Take succeeds, no
// other run has changed. If a run holds it, it watches whether that run still
// renews it: clocks are not compared, so they need not agree. A holder that
// does not, is dead. A living one is waited for until giveUp, then the error is
// ErrLocked.
func Await(ctx context.Context, c *cluster.Client, namespace, name string, giveUp time.Time) (*Lock, error) {
	l := &Lock{
		client: c,
		id:     bundle.ID{Namespace: namespace, Name: leaseName(name), GroupKind: leases.GVK.GroupKind()},
		holder: holder(),
	}
	if err := l.await(ctx, giveUp); err != nil {
		return nil, fmt.Errorf("lock inventory %s/%s: %w", namespace, name, err)
	}
	return l, nil
}

func (l *Lock) await(ctx context.Context, giveUp time.Time) error {
	var seen string
	var since time.Time
	for {
		live, err := l.client.Get(ctx, leases, l.id)
		if err != nil {
			return err
		}
		l.lease = live
		if live == nil || holderOf(live) == "" || isDead(holderOf(live)) {
			return nil
		}
		version := live.GetResourceVersion()
		if version != seen {
			renewed := seen != ""
			seen, since = version, time.Now()
			if renewed && time.Now().After(giveUp) {
				return fmt.Errorf("%w: %s, which renewed its lock just now; wait for it, or use --lock-timeout", ErrLocked, holderOf(live))
			}
		}
		if time.Since(since) > durationOf(live) {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(time.Second):
		}
	}
}

// Take takes the lock, unless another run had it since Await: then the error is
// ErrTaken. The context that is returned ends when the lock is lost.
func (l *Lock) Take(ctx context.Context) (context.Context, error) {
	if err := l.take(ctx); err != nil {
		if apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) || l.lease != nil && apierrors.IsNotFound(err) {
			err = errors.Join(ErrTaken, err)
		}
		return nil, fmt.Errorf("take lock %s: %w", bundle.Name(l.id), err)
	}
	held, lost := context.WithCancelCause(ctx)
	renewing, stop := context.WithCancel(context.WithoutCancel(ctx))
	l.stop, l.done = stop, make(chan struct{})
	go l.renew(renewing, lost)
	return held, nil
}

func (l *Lock) take(ctx context.Context) error {
	var lease *unstructured.Unstructured
	var err error
	if l.lease == nil {
		u := &unstructured.Unstructured{Object: map[string]any{}}
		u.SetGroupVersionKind(leases.GVK)
		u.SetNamespace(l.id.Namespace)
		u.SetName(l.id.Name)
		l.fill(u)
		lease, err = l.client.Create(ctx, leases, u, cluster.Write{})
	} else {
		u := l.lease.DeepCopy()
		l.fill(u)
		lease, err = l.client.Update(ctx, leases, u)
	}
	if err != nil {
		return err
	}
	l.lease = lease
	return nil
}

func (l *Lock) fill(u *unstructured.Unstructured) {
	now := time.Now().UTC().Format(microTime)
	spec, _, _ := unstructured.NestedMap(u.Object, "spec")
	if spec == nil {
		spec = map[string]any{}
	}
	if spec["holderIdentity"] != l.holder {
		spec["acquireTime"] = now
	}
	spec["holderIdentity"] = l.holder
	spec["leaseDurationSeconds"] = int64(leaseDuration / time.Second)
	spec["renewTime"] = now
	u.Object["spec"] = spec
}

// renew keeps the lock. When it cannot, the run has to stop writing before the
// lease can be taken by another: lost ends the run's context.
func (l *Lock) renew(ctx context.Context, lost context.CancelCauseFunc) {
	defer close(l.done)
	renewed := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(leaseRenewal):
		}
		attempt, cancel := context.WithTimeout(ctx, max(leaseDuration-leaseRenewal-time.Since(renewed), time.Second))
		l.mu.Lock()
		next := l.lease.DeepCopy()
		l.fill(next)
		lease, err := l.client.Update(attempt, leases, next)
		if err == nil {
			l.lease, renewed = lease, time.Now()
		}
		l.mu.Unlock()
		cancel()
		switch {
		case err == nil, ctx.Err() != nil:
		case apierrors.IsConflict(err) || apierrors.IsNotFound(err):
			lost(fmt.Errorf("%w: another run took it", ErrLockLost))
			return
		case time.Since(renewed) > leaseDuration-leaseRenewal:
			lost(fmt.Errorf("%w: it could not be renewed: %w", ErrLockLost, err))
			return
		}
	}
}

// Stop ends the renewal of the lock, for a run that is about to delete the
// lock's namespace.
func (l *Lock) Stop() {
	l.stop()
	<-l.done
}

// Release gives the lock back, and with it the Lease where nothing is left to
// be locked. It works on a context that is still alive, also after the run's own
// was cancelled.
func (l *Lock) Release(ctx context.Context, remove bool) error {
	l.Stop()
	l.mu.Lock()
	defer l.mu.Unlock()
	err := l.giveBack(ctx, remove)
	if apierrors.IsConflict(err) {
		// A renewal that was cut short may have been written: then it is still ours.
		live, getErr := l.client.Get(ctx, leases, l.id)
		if getErr != nil || live == nil || holderOf(live) != l.holder {
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
		_, err := l.client.Delete(ctx, leases, l.id, cluster.Deletion{UID: l.lease.GetUID(), Version: l.lease.GetResourceVersion()})
		return err
	}
	// As client-go's leader election does: nobody's, and nothing to wait for.
	u := l.lease.DeepCopy()
	spec, _, _ := unstructured.NestedMap(u.Object, "spec")
	spec["holderIdentity"], spec["leaseDurationSeconds"] = "", int64(1)
	u.Object["spec"] = spec
	_, err := l.client.Update(ctx, leases, u)
	return err
}

func holderOf(u *unstructured.Unstructured) string {
	s, _, _ := unstructured.NestedString(u.Object, "spec", "holderIdentity")
	return s
}

func durationOf(u *unstructured.Unstructured) time.Duration {
	s, _, _ := unstructured.NestedInt64(u.Object, "spec", "leaseDurationSeconds")
	if s <= 0 {
		return 0
	}
	return time.Duration(s) * time.Second
}

// holder names this process so that a later run on the same machine can tell
// that it is dead: host, boot, PID namespace, PID and the process's start.
func holder() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s/%d/%s", host, os.Getpid(), place(os.Getpid()))
}

// place is what, beside the PID, makes a process this one; "" where /proc
// does not tell.
func place(pid int) string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	namespace, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return ""
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return strings.TrimSpace(string(boot)) + "." + namespace + ".gone"
	}
	// The 22nd field is the start time; the second may hold spaces, in parentheses.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 20 {
		return ""
	}
	if fields[0] == "Z" { // killed, and its parent has not asked yet
		return strings.TrimSpace(string(boot)) + "." + namespace + ".gone"
	}
	return strings.TrimSpace(string(boot)) + "." + namespace + "." + fields[19]
}

// isDead says whether a holder was a process of this very machine and PID
// namespace that is no more. Of any other it cannot tell, and says false.
func isDead(holder string) bool {
	parts := strings.SplitN(holder, "/", 3)
	if len(parts) != 3 || parts[2] == "" {
		return false
	}
	var pid int
	if _, err := fmt.Sscan(parts[1], &pid); err != nil {
		return false
	}
	here, there := place(pid), parts[2]
	cut := strings.LastIndexByte(there, '.')
	if cut < 0 || here == "" || !strings.HasPrefix(here, there[:cut+1]) {
		return false
	}
	return here != there
}
