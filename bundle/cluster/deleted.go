package cluster

import (
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"brine/bundle"
)

// Deleted are objects that are deleted before their holders, or were. Many goroutines
// may use it.
type Deleted struct {
	mu          sync.RWMutex
	uids        map[types.UID]bool
	apiServices map[string]bool                         // by name
	sets        map[string][]*unstructured.Unstructured // StatefulSets by namespace
}

// Add adds one.
func (d *Deleted) Add(u *unstructured.Unstructured) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.uids == nil {
		d.uids, d.apiServices, d.sets = map[types.UID]bool{}, map[string]bool{}, map[string][]*unstructured.Unstructured{}
	}
	if uid := u.GetUID(); uid != "" {
		d.uids[uid] = true
	}
	switch u.GroupVersionKind().GroupKind() {
	case bundle.APIServiceKind:
		d.apiServices[u.GetName()] = true
	case bundle.StatefulSetKind:
		d.sets[u.GetNamespace()] = append(d.sets[u.GetNamespace()], u)
	}
}

func (d *Deleted) has(uid types.UID) bool {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.uids[uid]
}

func (d *Deleted) apiService(name string) bool {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.apiServices[name]
}

// HasSets says whether there are StatefulSets of a namespace among them.
func (d *Deleted) HasSets(namespace string) bool {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return len(d.sets[namespace]) > 0
}

// Claim says whether the controller of a deleted StatefulSet made a
// PersistentVolumeClaim.
func (d *Deleted) Claim(claim *metav1.PartialObjectMetadata) bool {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return slices.ContainsFunc(d.sets[claim.Namespace], func(set *unstructured.Unstructured) bool { return Claims(set, claim) })
}
