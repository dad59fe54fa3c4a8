package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/cluster/answers"
	"brine/bundle/report"
	"brine/bundle/shutdown"
	"brine/inventory"
	"brine/inventory/lock"
)

// session is what a run has on the cluster, and its voice: how to ask, the inventory's
// lock, and how much time is left once the run has ended.
type session struct {
	client *cluster.Client
	record *report.Recorder
	after  shutdown.Time
	lock   *lock.Lock // nil: not waited for, as in a dry run
	held   bool       // the lock is taken
	// namespace is the inventory's, if this run made it.
	namespace *unstructured.Unstructured
}

func newSession(ctx context.Context, c *cluster.Client, record *report.Recorder) *session {
	c.OnRetry(record.Retrying)
	c.OnSecret(record.Secrets.Read)
	return &session{client: c, record: record, after: shutdown.New(ctx)}
}

func (s *session) await(ctx context.Context, o *Options) (err error) {
	who := o.Who // for those that find the lock held
	if o.JobID != "" {
		who += ", Salt job " + o.JobID
	}
	s.lock, err = lock.Await(ctx, s.client, o.Inventory.Namespace, o.Inventory.Name, lock.Wait{
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
	if apierrors.IsNotFound(err) && !errors.Is(err, lock.ErrTaken) && o.Mode != Destroy {
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
	late, cancel := s.after.Release.Of(ctx)
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
	for _, object := range b.Objects {
		if object.ID == id {
			namespace = object.Content.DeepCopy()
			// There is no inventory where there is no namespace.
			inventory.Empty(o.Inventory.Namespace, o.Inventory.Name, o.Inventory.ID).SetOwner(namespace)
		}
	}
	// So it goes with the inventory, even if this run is killed before the inventory lists it.
	namespace.SetAnnotations(labels.Merge(namespace.GetAnnotations(), labels.Set{inventory.MadeAnnotation: o.Inventory.Name}))
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
