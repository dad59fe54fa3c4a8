package cluster

import (
	"context"
	"maps"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"brine/bundle"
)

// Seen is one observation of an object: as it is now, or Gone.
type Seen struct {
	ID   bundle.ID
	Live *unstructured.Unstructured
	Gone bool
}

// Synced says that all objects of a resource (in Namespace, unless it is
// empty) that were there when the watch began have been Seen.
type Synced struct {
	Resource  Resource
	Namespace string
}

// Broken says that a watch is not possible: the right to it is missing, or the
// kind is no longer served. It is reported once a watch.
type Broken struct {
	Resource  Resource
	Namespace string
	Err       error
}

// Watches are the watches of one run: one a resource and scope, begun when the
// first object of the kind has something to wait for. What they see is reported to
// one function, which must be quick.
type Watches struct {
	client   *Client
	selector string
	report   func(any) // Seen, Synced or Broken

	mu      sync.Mutex
	running map[watchKey]context.CancelFunc
	done    sync.WaitGroup
}

type watchKey struct {
	gvr       string
	namespace string
}

// Watches makes the watches of a run over objects that match the label
// selector.
func (c *Client) Watches(labelSelector string, report func(any)) *Watches {
	return &Watches{client: c, selector: labelSelector, report: report, running: map[watchKey]context.CancelFunc{}}
}

// Start watches a resource, in one namespace or, with "", in all. It returns
// false if that was being watched already.
func (w *Watches) Start(ctx context.Context, r Resource, namespace string) bool {
	if !r.Namespaced {
		namespace = ""
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	key := watchKey{r.GVR.String(), namespace}
	if _, ok := w.running[key]; ok {
		return false
	}
	ctx, cancel := context.WithCancel(ctx)
	w.running[key] = cancel

	// As dynamicinformer makes it, which would bring an informer of every kind
	// that Kubernetes has.
	objects := w.client.dynamic.Resource(r.GVR).Namespace(namespace)
	informer := cache.NewSharedIndexInformerWithOptions(cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.LabelSelector = w.selector
			return objects.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.LabelSelector = w.selector
			return objects.Watch(ctx, o)
		},
	}, w.client.dynamic), &unstructured.Unstructured{}, cache.SharedIndexInformerOptions{ObjectDescription: r.GVR.String()})
	var broken sync.Once
	_ = informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		// Other errors are transient: the informer tries again by itself.
		if again, _ := w.client.wire.JudgeRefusal(err); again {
			return
		}
		if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) || apierrors.IsUnauthorized(err) {
			broken.Do(func() {
				w.report(Broken{Resource: r, Namespace: namespace, Err: err})
				cancel()
			})
		}
	})
	// Readiness does not need managedFields: they are not kept in memory.
	_ = informer.SetTransform(func(o any) (any, error) {
		if u, ok := o.(*unstructured.Unstructured); ok {
			u.SetManagedFields(nil)
		}
		return o, nil
	})
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { w.seen(o, false) },
		UpdateFunc: func(_, o any) { w.seen(o, false) },
		DeleteFunc: func(o any) { w.seen(o, true) },
	})
	if err != nil {
		w.report(Broken{Resource: r, Namespace: namespace, Err: err})
		return true
	}
	w.done.Go(func() { informer.RunWithContext(ctx) })
	w.done.Go(func() {
		if cache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
			w.report(Synced{Resource: r, Namespace: namespace})
		}
	})
	return true
}

func (w *Watches) seen(o any, isGone bool) {
	if missed, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = missed.Obj
	}
	u, ok := o.(*unstructured.Unstructured)
	if !ok {
		return
	}
	w.client.secret(u)
	id := bundle.IDOf(u)
	w.report(Seen{ID: id, Live: u, Gone: isGone})
}

// Stop ends all watches and waits until nothing more is reported.
func (w *Watches) Stop() {
	w.mu.Lock()
	for _, cancel := range w.running {
		cancel()
	}
	w.mu.Unlock()
	w.done.Wait()
}

// Polls bound the reads of objects that cannot be watched, of all kinds together.
const (
	pollers   = 4 // at once
	pollQPS   = 50
	pollBurst = 10
)

// Poll reads objects of one resource, for want of a watch: where a namespace has
// more than a few, by one LIST through the selector of their label. What that does
// not find, or may not ask, is read by single GETs. live is nil where an object
// is not there; of what could not be read nothing, or the error, is reported.
func (c *Client) Poll(ctx context.Context, r Resource, ids []bundle.ID, selector string, report func(id bundle.ID, live *unstructured.Unstructured, err error)) {
	byNamespace := map[string][]bundle.ID{}
	for _, id := range ids {
		byNamespace[id.Namespace] = append(byNamespace[id.Namespace], id)
	}
	var single []bundle.ID
	for _, namespace := range slices.Sorted(maps.Keys(byNamespace)) {
		wanted := byNamespace[namespace]
		found := map[string]*unstructured.Unstructured{}
		if len(wanted) > fewGets && r.Can("list") && c.polls.Wait(ctx) == nil {
			items, err := c.List(ctx, r, namespace, selector, "")
			if err != nil && !apierrors.IsForbidden(err) {
				continue // the next round may find more
			}
			for i := range items {
				found[items[i].GetName()] = &items[i]
			}
		}
		for _, id := range wanted {
			if live := found[id.Name]; live != nil {
				report(id, live, nil)
			} else {
				single = append(single, id)
			}
		}
	}
	var group errgroup.Group
	group.SetLimit(pollers)
	for _, id := range single {
		group.Go(func() error {
			if err := c.polls.Wait(ctx); err != nil {
				report(id, nil, err)
				return nil
			}
			live, err := c.Get(ctx, r, id)
			report(id, live, err)
			return nil
		})
	}
	_ = group.Wait() // every error was reported
}
