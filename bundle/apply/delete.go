package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/plan"
)

// guardTries is how often a deletion is decided anew because the object changed
// between the decision and the act. Controllers write status all the time.
const guardTries = 20

// errChanging ends a deletion whose object never holds still.
var errChanging = errors.New("it changes all the time")

// delete deletes a member. The guard that decided about the plan decides again
// about the very version of the object that the DELETE asks for, and about what
// a Namespace or CRD holds by then: a plan may be minutes old.
func (e *execution) delete(ctx context.Context, n *node) outcome {
	resource, there, err := e.resourceToDelete(ctx, n)
	if err != nil {
		return outcome{node: n, action: plan.Failed, err: fmt.Errorf("delete: %w", err)}
	}
	if !there {
		return outcome{node: n, action: plan.Pruned, gone: true} // its CRD went, and it went with it
	}
	n.resource = resource
	// The version that was planned with is as good as one that is read now: the
	// DELETE is for this version only.
	live := n.Live
	for range guardTries {
		verdict, err := e.decide(ctx, n.ID, live)
		switch {
		case err != nil:
			return outcome{node: n, action: plan.Failed, err: fmt.Errorf("delete: %w", err)}
		case verdict.Action == plan.Detached:
			n.Shared = verdict.Shared
			o := e.detachFrom(ctx, n, resource, live)
			o.reason = verdict.Reason
			return o
		case verdict.Action != plan.Pruned:
			return outcome{node: n, action: plan.Skipped, err: fmt.Errorf("not deleted: %s", verdict.Reason)}
		}
		isGone, err := e.deleteVersion(ctx, n, live)
		if err == nil {
			return outcome{node: n, action: plan.Pruned, gone: isGone}
		}
		if !apierrors.IsConflict(err) {
			return outcome{node: n, action: plan.Failed, err: fmt.Errorf("delete: %w", err)}
		}
		fresh, err := e.client.Get(ctx, resource, n.ID)
		switch {
		case err != nil:
			return outcome{node: n, action: plan.Failed, err: fmt.Errorf("read it again, to delete it: %w", err)}
		case fresh == nil:
			return outcome{node: n, action: plan.Pruned, gone: true}
		case fresh.GetUID() != n.Live.GetUID():
			return outcome{node: n, action: plan.Skipped, err: errors.New("not deleted: it was replaced by another object of its name while this run went on")}
		case fresh.GetDeletionTimestamp() != nil && n.Live.GetDeletionTimestamp() == nil:
			e.deleted.add(n.Live) // by a request of ours whose answer was lost, or by somebody else
			return outcome{node: n, action: plan.Pruned}
		}
		live = fresh
	}
	return outcome{node: n, action: plan.Failed, err: fmt.Errorf("delete: %w", errChanging)}
}

// resourceToDelete is how the kind of a member is served now; false if there are
// no objects of it any more.
func (e *execution) resourceToDelete(ctx context.Context, n *node) (cluster.Resource, bool, error) {
	resource, err := e.client.Any(n.ID.GroupKind)
	if err == nil {
		return resource, true, nil
	}
	served, err := e.client.ServedOrAbsent(ctx, n.ID.GroupKind)
	if err != nil || !served {
		return resource, false, err
	}
	resource, err = e.client.Any(n.ID.GroupKind)
	return resource, err == nil, err
}

// decide asks the guard about an object as it is now.
func (e *execution) decide(ctx context.Context, id bundle.ID, live *unstructured.Unstructured) (plan.Verdict, error) {
	var holds bundle.Contents
	if e.plan.Guard.Holds(id) {
		var err error
		if holds, err = e.contents(ctx, live); err != nil {
			return plan.Verdict{}, err
		}
	}
	return e.plan.Guard.Decide(id, live, holds), nil
}

// deleteVersion deletes an object if it is still the one that was decided about.
func (e *execution) deleteVersion(ctx context.Context, n *node, live *unstructured.Unstructured) (bool, error) {
	isNamespace := n.ID.GroupKind == bundle.NamespaceKind
	if isNamespace && n.ID.Name == e.Inventory.Namespace {
		e.lock.Stop() // the lock and the inventory go with their namespace, the last of all
	}
	isGone, err := e.client.Delete(ctx, n.resource, n.ID, cluster.Deletion{UID: live.GetUID(), Version: live.GetResourceVersion(), Propagation: e.Cascade})
	if err != nil {
		return false, err
	}
	e.deleted.add(live)
	if isNamespace && !isGone {
		e.deleteClaims(ctx, n.ID.Name)
	}
	return isGone, nil
}

// deleteClaims deletes the PersistentVolumeClaims that the controllers of
// deleted StatefulSets made in a deleted namespace. The namespace's controller
// would do so only five seconds later, and look five seconds after that whether
// they are gone (kube's namespace_controller.go, namespaceDeletionGracePeriod,
// and its queue's back-off). It still does where we may not, and for claims of
// others.
func (e *execution) deleteClaims(ctx context.Context, namespace string) {
	claims := bundle.PersistentVolumeClaimKind
	resource, err := e.client.Any(claims)
	if err != nil {
		return
	}
	items, err := e.client.ListMetadata(ctx, resource, namespace, "")
	if err != nil {
		return
	}
	for i := range items {
		if items[i].DeletionTimestamp == nil && e.deleted.claim(&items[i]) {
			id := bundle.ID{GroupKind: claims, Namespace: namespace, Name: items[i].Name}
			_, _ = e.client.Delete(ctx, resource, id, cluster.Deletion{UID: items[i].UID, Version: items[i].ResourceVersion})
		}
	}
}

// detach takes the ownership metadata off an object that stays.
func (e *execution) detach(ctx context.Context, n *node) outcome {
	if n.Shared {
		return outcome{node: n, action: plan.Detached, gone: true} // the metadata is the other's
	}
	resource, there, err := e.resourceToDelete(ctx, n)
	if err != nil {
		return outcome{node: n, action: plan.Failed, err: fmt.Errorf("detach: %w", err)}
	}
	if !there {
		return outcome{node: n, action: plan.Detached, gone: true}
	}
	return e.detachFrom(ctx, n, resource, n.Live)
}

// detachFrom detaches the version of the object that was decided about. One that
// changed meanwhile still stays, and may not carry our metadata either.
func (e *execution) detachFrom(ctx context.Context, n *node, resource cluster.Resource, live *unstructured.Unstructured) outcome {
	done := outcome{node: n, action: plan.Detached, gone: true}
	failed := func(err error) outcome {
		return outcome{node: n, action: plan.Failed, err: fmt.Errorf("detach: %w", err)}
	}
	for range guardTries {
		marks := e.inv.ClearOwner(live)
		if marks == nil || n.Shared {
			return done
		}
		marks["resourceVersion"] = live.GetResourceVersion()
		body, err := json.Marshal(map[string]any{"metadata": marks})
		if err != nil {
			return failed(err)
		}
		_, err = e.client.Patch(ctx, resource, n.ID, types.MergePatchType, body, cluster.Write{})
		if err == nil {
			return done
		}
		if !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			return failed(err)
		}
		if live, err = e.client.Get(ctx, resource, n.ID); err != nil {
			return failed(err)
		}
		if live == nil {
			return done
		}
	}
	return failed(errChanging)
}

// deletions are the objects that this run has deleted. Appliers share it.
type deletions struct {
	mu      sync.Mutex
	objects []*unstructured.Unstructured
}

func (d *deletions) add(u *unstructured.Unstructured) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.objects = append(d.objects, u)
}

// all are those until now.
func (d *deletions) all() []*unstructured.Unstructured {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clip(d.objects)
}

// claim says whether a PersistentVolumeClaim is of a deleted StatefulSet.
func (d *deletions) claim(claim *metav1.PartialObjectMetadata) bool {
	for _, u := range d.all() {
		if cluster.Claims(u, claim) {
			return true
		}
	}
	return false
}

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

// contents is what a Namespace or CRD holds now.
func (e *execution) contents(ctx context.Context, holder *unstructured.Unstructured) (bundle.Contents, error) {
	s := &searching{holder: holder, done: make(chan struct{})}
	e.searches.mu.Lock()
	e.searches.waiting = append(e.searches.waiting, s)
	if !e.searches.running {
		e.searches.running = true
		go e.search(ctx)
	}
	e.searches.mu.Unlock()
	<-s.done
	return s.found, s.err
}

// search serves who waits until nobody does.
func (e *execution) search(ctx context.Context) {
	for {
		e.searches.mu.Lock()
		batch := e.searches.waiting
		e.searches.waiting = nil
		if len(batch) == 0 {
			e.searches.running = false
			e.searches.mu.Unlock()
			return
		}
		e.searches.mu.Unlock()
		holders := make([]*unstructured.Unstructured, len(batch))
		for i, s := range batch {
			holders[i] = s.holder
		}
		// Kinds may have come since the plan was made.
		err := e.client.Discover(ctx)
		var found map[bundle.ID]bundle.Contents
		if err == nil {
			found, err = e.client.Contents(ctx, e.question(holders, e.deleted.all()))
		}
		for _, s := range batch {
			id := bundle.ID{GroupKind: s.holder.GroupVersionKind().GroupKind(), Name: s.holder.GetName()}
			s.found, s.err = found[id], err
			close(s.done)
		}
	}
}

// question asks what holders hold once others are deleted.
func (r *run) question(holders, deleted []*unstructured.Unstructured) cluster.Search {
	return cluster.Search{
		Holders: holders, Deleted: deleted, Orphan: r.Cascade == metav1.DeletePropagationOrphan,
		Auxiliary: r.ownSide,
		Keeps: func(annotations map[string]string) bool {
			return plan.KeptBy(annotations) != ""
		},
	}
}
