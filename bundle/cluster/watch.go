package cluster

import (
	"context"
	"sync"

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
		if again, _ := w.client.JudgeRefusal(err); again {
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
