package write

import (
	"context"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/inventory"
)

// searches ask what Namespaces and CRDs hold: those who ask while one is under
// way share the next, as each is dozens of LISTs.
type searches struct {
	mu      sync.Mutex
	running bool
	waiting []*searching
}

type searching struct {
	holder *unstructured.Unstructured
	found  bundle.Contents
	err    error
	done   chan struct{}
}

func (w *Writer) contents(ctx context.Context, holder *unstructured.Unstructured) (bundle.Contents, error) {
	if holder.GroupVersionKind().GroupKind() == bundle.CRDKind { // one LIST, directly before the DELETE
		id := bundle.ID{GroupKind: bundle.CRDKind, Name: holder.GetName()}
		found, err := w.Client.Contents(ctx, Search(w.Inventory, w.Options.Cascade, []*unstructured.Unstructured{holder}, &w.deleted))
		return found[id], err
	}
	s := &searching{holder: holder, done: make(chan struct{})}
	w.searches.mu.Lock()
	w.searches.waiting = append(w.searches.waiting, s)
	if !w.searches.running {
		w.searches.running = true
		go w.search(ctx)
	}
	w.searches.mu.Unlock()
	<-s.done
	return s.found, s.err
}

// search serves the waiting callers until there are none.
func (w *Writer) search(ctx context.Context) {
	for {
		w.searches.mu.Lock()
		batch := w.searches.waiting
		w.searches.waiting = nil
		if len(batch) == 0 {
			w.searches.running = false
			w.searches.mu.Unlock()
			return
		}
		w.searches.mu.Unlock()
		holders := bundle.Each(batch, func(s *searching) *unstructured.Unstructured { return s.holder })
		// Kinds may have come since the plan was made.
		err := w.Client.Discover(ctx)
		var found map[bundle.ID]bundle.Contents
		if err == nil {
			found, err = w.Client.Contents(ctx, Search(w.Inventory, w.Options.Cascade, holders, &w.deleted))
		}
		for _, s := range batch {
			id := bundle.ID{GroupKind: s.holder.GroupVersionKind().GroupKind(), Name: s.holder.GetName()}
			s.found, s.err = found[id], err
			close(s.done)
		}
	}
}

// Search asks what holders hold once others are deleted.
func Search(inv *inventory.Inventory, cascade metav1.DeletionPropagation, holders []*unstructured.Unstructured, deleted *cluster.Deleted) cluster.Search {
	return cluster.Search{
		Holders: holders, Deleted: deleted, Orphan: cascade == metav1.DeletePropagationOrphan,
		Auxiliary: func(id bundle.ID, labels map[string]string) bool { // not copies elsewhere, nor another inventory with the same ID
			return inventory.Auxiliary(inv.Namespace, inv.Name, id) != "" && (labels[inventory.AuxiliaryLabel] == inv.ID || labels[inventory.Label] == inv.ID)
		},
		Keeps: func(o metav1.Object) bool { // controllers copy annotations to what they make
			owner := o.GetAnnotations()[inventory.OwningInventory]
			return (bundle.KeptBy(o) != "" || owner != "" && owner != inv.ID) && metav1.GetControllerOf(o) == nil
		},
	}
}
