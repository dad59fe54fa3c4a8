package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/cluster/answers"
	"brine/bundle/plan"
	"brine/bundle/report"
	"brine/bundle/write"
	"brine/inventory"
	"brine/inventory/store"
)

// session is what a run has on the cluster, and its voice: how to ask, the inventory's
// lock, and how much time is left once the run has ended.
type session struct {
	client *cluster.Client
	record *report.Recorder
	after  shutdown
	lock   *store.Lock // nil: not waited for, as in a dry run
	held   bool        // the lock is taken
	// namespace is the inventory's, if this run made it.
	namespace *unstructured.Unstructured
}

func newSession(ctx context.Context, c *cluster.Client, record *report.Recorder) *session {
	c.OnRetry(record.Retrying)
	c.OnSecret(record.Secrets.Read)
	return &session{client: c, record: record, after: newShutdown(ctx)}
}

func (s *session) await(ctx context.Context, o *Options) (err error) {
	who := o.Who // for those that find the lock held
	if o.JobID != "" {
		who += ", Salt job " + o.JobID
	}
	s.lock, err = store.Await(ctx, s.client, o.Inventory.Namespace, o.Inventory.Name, store.Wait{
		Until:  s.record.Begin.Add(o.LockTimeout),
		Report: func(message string) { s.record.Emit(report.Warning{Message: message}) },
		Who:    who,
	})
	return err
}

// take takes the lock, unless the session has it. Where its namespace is not there
// yet, that is made first: from the bundle, if the bundle has it. The context that is
// returned ends when the lock is lost.
func (s *session) take(ctx context.Context, o *Options, b *bundle.Bundle) (context.Context, error) {
	if s.held {
		return ctx, nil
	}
	held, err := s.lock.Take(ctx)
	if apierrors.IsNotFound(err) && !errors.Is(err, store.ErrTaken) && o.Mode != Destroy {
		if s.namespace, err = makeNamespace(ctx, s.client, o, b); err != nil {
			return ctx, err
		}
		held, err = s.lock.Take(ctx)
	}
	if err != nil {
		return ctx, err
	}
	s.held = true
	return held, nil
}

// lost is why the session lost the lock that it took; nil if it has it, or never had.
func (s *session) lost() error {
	if !s.held {
		return nil
	}
	return s.lock.Lost()
}

// release gives the lock back; remove: there is nothing left to be locked.
func (s *session) release(ctx context.Context, remove bool) {
	if paused := s.lock.Paused(); paused > 0 {
		s.record.Warn(fmt.Sprintf("the inventory's lock could not be renewed in time: no writes were sent for %s, until the server answered", paused.Round(time.Second)))
	}
	late, cancel := s.after.release.of(ctx)
	defer cancel()
	if err := s.lock.Release(late, remove); err != nil {
		s.record.Warn(err.Error())
	}
}

// makeNamespace makes the inventory's namespace. It returns nil where another client was
// first: its owner is read with the rest.
func makeNamespace(ctx context.Context, c *cluster.Client, o *Options, b *bundle.Bundle) (*unstructured.Unstructured, error) {
	id := inventoryNamespace(o)
	namespace := bundle.V1(id, map[string]any{})
	namespace.SetAnnotations(map[string]string{inventory.MadeAnnotation: o.Inventory.Name}) // so that it goes with the inventory
	for _, object := range b.Objects {
		if object.ID == id {
			namespace = object.Content.DeepCopy()
			// There is no inventory where there is no namespace.
			inventory.Empty(o.Inventory.Namespace, o.Inventory.Name, o.Inventory.ID).SetOwner(namespace)
		}
	}
	body, err := namespace.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("encode namespace %s: %w", o.Inventory.Namespace, err)
	}
	made, _, err := c.Apply(ctx, cluster.Namespaces, id, body, cluster.Write{})
	switch {
	case answers.Overtaken(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("create the inventory's namespace %s: %w", o.Inventory.Namespace, err)
	}
	return made, nil
}

func inventoryNamespace(o *Options) bundle.ID {
	return bundle.ID{GroupKind: bundle.NamespaceKind, Name: o.Inventory.Namespace}
}

// WithTimeout bounds a whole run, the reading of its bundle included; 0 is no
// bound.
func WithTimeout(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	signalled := context.WithValue(ctx, signalledKey{}, ctx)
	if timeout <= 0 {
		return context.WithCancel(signalled)
	}
	return context.WithTimeoutCause(signalled, timeout, fmt.Errorf("%w after %s", report.ErrTimeout, timeout))
}

// signalledKey finds the context that only a signal ends.
type signalledKey struct{}

// shutdown is the time that a run has after its end, less than report.Grace, by what it
// is for. The requests under way, of package apply, have the first part of it.
type shutdown struct {
	diagnosis, records, release shutdownGrace
	stop                        func() // ends the watching for the run's end
}

// shutdownGrace is closed when its time is over.
type shutdownGrace chan struct{}

// of is ctx until the time is over, whatever ends ctx.
func (g shutdownGrace) of(ctx context.Context) (context.Context, context.CancelFunc) {
	late, cancel := context.WithCancel(context.WithoutCancel(ctx))
	go func() { // ends with late
		select {
		case <-g:
			cancel()
		case <-late.Done():
		}
	}()
	return late, cancel
}

// signalledOf is the context that signals end, of a run inside of another one; otherwise nil.
func signalledOf(ctx context.Context) context.Context {
	parent, _ := ctx.Value(signalledKey{}).(context.Context)
	return parent
}

func newShutdown(ctx context.Context) shutdown {
	var stops []func() bool
	outlasting := func(signalled, timedOut time.Duration) shutdownGrace {
		g := make(shutdownGrace)
		end := sync.OnceFunc(func() { close(g) })
		if parent := signalledOf(ctx); parent != nil {
			stops = append(stops, context.AfterFunc(parent, func() { time.AfterFunc(signalled, end) }))
		}
		stops = append(stops, context.AfterFunc(ctx, func() {
			if errors.Is(context.Cause(ctx), report.ErrTimeout) {
				time.AfterFunc(timedOut, end)
			} else {
				time.AfterFunc(signalled, end)
			}
		}))
		return g
	}
	s := shutdown{
		diagnosis: outlasting(0, report.Grace*6/10),
		records:   outlasting(report.Grace*8/10, report.Grace*8/10),
		release:   outlasting(report.Grace*9/10, report.Grace*9/10),
	}
	s.stop = func() {
		for _, stop := range stops {
			stop()
		}
	}
	return s
}

// errNothingToDestroy: there is neither an inventory nor a part of one.
var errNothingToDestroy = errors.New("nothing to destroy")

// hasAnything is errNothingToDestroy unless there is an inventory, or a part of one, as a
// run that was killed or another tool leaves it.
func hasAnything(ctx context.Context, inv *store.Inventory) error {
	if inv.Exists() || len(inv.Members) > 0 {
		return nil
	}
	if remains, err := inv.Remains(ctx); remains || err != nil {
		return err
	}
	return fmt.Errorf("there is no inventory %s/%s: %w", inv.Namespace, inv.Name, errNothingToDestroy)
}

// removeNamespace deletes the namespace that a run made for the inventory, once the
// inventory is destroyed, if nothing is left in it but what Kubernetes makes there. A
// preview says whether it would. deleted are the members that go before.
func removeNamespace(ctx context.Context, s *session, o *Options, inv *store.Inventory, deleted *cluster.Deleted) {
	id := inventoryNamespace(o)
	live, err := s.client.Get(ctx, cluster.Namespaces, id)
	if err != nil || live == nil || live.GetDeletionTimestamp() != nil || live.GetAnnotations()[inventory.MadeAnnotation] == "" {
		return // none that is known to be brine's
	}
	err = checkEmpty(ctx, s.client, o, inv, live, deleted)
	if err == nil {
		if s.held {
			s.lock.Stop() // it goes with the namespace
		}
		_, err = s.client.Delete(ctx, cluster.Namespaces, live, cluster.Deletion{DryRun: o.DryRun == report.Server})
	}
	if err != nil {
		s.record.Warn(fmt.Sprintf("namespace %s, which brine made for the inventory, stays: %v. If it is not needed: %s", id.Name, err, s.client.Commands().Delete(id.GroupKind, "", id.Name)))
		return
	}
	result := &report.ObjectResult{Version: "v1", Kind: id.GroupKind.Kind, Name: id.Name, Action: plan.Pruned, Reason: "brine made it for the inventory, and nothing else is in it", Needs: []report.Need{}}
	s.record.Result.Objects = append(s.record.Result.Objects, result)
	s.record.Emit(report.Acted{Object: result})
	for begin := time.Now(); o.DryRun == report.None && time.Since(begin) < namespaceTime; {
		if live, err := s.client.Get(ctx, cluster.Namespaces, id); err != nil || live == nil || !cluster.Sleep(ctx, 200*time.Millisecond) {
			return
		}
	}
}

// namespaceTime is how long a deleted namespace is waited for: the next apply could not
// use it.
const namespaceTime = 30 * time.Second

// checkEmpty is nil where complete LISTs show that a namespace holds nothing that would be lost.
func checkEmpty(ctx context.Context, c *cluster.Client, o *Options, inv *store.Inventory, live *unstructured.Unstructured, deleted *cluster.Deleted) error {
	if o.DryRun == report.None { // kinds may have come since the run began
		if err := c.Discover(ctx); err != nil {
			return err
		}
	}
	q := write.Search(&inv.Inventory, o.Cascade, []*unstructured.Unstructured{live}, deleted)
	q.Strict = true
	found, err := c.Contents(ctx, q)
	if err != nil {
		return err
	}
	lock := bundle.Name(bundle.ID{GroupKind: bundle.LeaseKind, Namespace: live.GetName(), Name: inventory.LockName(o.Inventory.Name)})
	holds := found[inventoryNamespace(o)]
	holds.Unmanaged = slices.DeleteFunc(holds.Unmanaged, func(name string) bool { return name == lock })
	switch {
	case len(holds.Unmanaged) > 0:
		return fmt.Errorf("it contains %s", bundle.Some(holds.Unmanaged, 5))
	case len(holds.Unknown) > 0:
		return fmt.Errorf("cannot read %s in it", bundle.Some(holds.Unknown, 3))
	}
	return nil
}
