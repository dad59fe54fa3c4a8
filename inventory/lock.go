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

// Lock is a Lease, brine-<inventory>, held while a run writes.
type Lock struct {
	client *cluster.Client
	id     bundle.ID
	holder string

	mu    sync.Mutex
	lease *unstructured.Unstructured
	stop  context.CancelFunc
	done  chan struct{}
}

// Acquire takes the lock of an inventory. If another run holds it, it watches
// whether that run still renews it: clocks are not compared, so they need not
// agree. A holder that does not, is dead, and its lock is taken. A live one is
// waited for as long as wait, then the error is ErrLocked. The context that is
// returned ends when the lock is lost.
func Acquire(ctx context.Context, c *cluster.Client, namespace, name string, wait time.Duration) (*Lock, context.Context, error) {
	l := &Lock{
		client: c,
		id:     bundle.ID{Namespace: namespace, Name: "brine-" + name, GroupKind: leases.GVK.GroupKind()},
		holder: holder(),
	}
	if err := l.acquire(ctx, wait); err != nil {
		return nil, nil, fmt.Errorf("lock inventory %s/%s: %w", namespace, name, err)
	}
	held, lost := context.WithCancelCause(ctx)
	renewing, stop := context.WithCancel(context.WithoutCancel(ctx))
	l.stop, l.done = stop, make(chan struct{})
	go l.renew(renewing, lost)
	return l, held, nil
}

func (l *Lock) acquire(ctx context.Context, wait time.Duration) error {
	giveUp := time.Now().Add(wait)
	var seen string
	var since time.Time
	for {
		err := l.create(ctx)
		if err == nil || !apierrors.IsAlreadyExists(err) {
			return err
		}
		live, err := l.client.Get(ctx, leases, l.id)
		if err != nil {
			return err
		}
		if live == nil {
			continue // released between the two requests
		}
		version := live.GetResourceVersion()
		if version != seen {
			renewed := seen != ""
			seen, since = version, time.Now()
			if renewed && time.Now().After(giveUp) {
				return fmt.Errorf("%w: %s, which renewed its lock just now; wait for it, or use --lock-timeout", ErrLocked, holderOf(live))
			}
		}
		if time.Since(since) > durationOf(live) || isDead(holderOf(live)) {
			if err := l.take(ctx, live); err == nil || !apierrors.IsConflict(err) {
				return err
			}
			continue
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(time.Second):
		}
	}
}

func (l *Lock) create(ctx context.Context) error {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(leases.GVK)
	u.SetNamespace(l.id.Namespace)
	u.SetName(l.id.Name)
	l.fill(u)
	lease, err := l.client.Create(ctx, leases, u, cluster.Write{})
	if err != nil {
		return err
	}
	l.lease = lease
	return nil
}

func (l *Lock) take(ctx context.Context, live *unstructured.Unstructured) error {
	l.fill(live)
	lease, err := l.client.Update(ctx, leases, live)
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

// Release gives the lock back. It works on a context that is still alive, also
// after the run's own was cancelled.
func (l *Lock) Release(ctx context.Context) error {
	l.Stop()
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err := l.client.Delete(ctx, leases, l.id, cluster.Deletion{UID: l.lease.GetUID(), Version: l.lease.GetResourceVersion()})
	if apierrors.IsConflict(err) {
		// A renewal that was cut short may have been written: then it is still ours.
		live, getErr := l.client.Get(ctx, leases, l.id)
		if getErr != nil || live == nil || holderOf(live) != l.holder {
			return nil // it is another run's by now
		}
		_, err = l.client.Delete(ctx, leases, l.id, cluster.Deletion{UID: live.GetUID(), Version: live.GetResourceVersion()})
	}
	if err != nil {
		return fmt.Errorf("release the lock: %w", err)
	}
	return nil
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
