package apiserver

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// The controllers, which act when Step is called: they make workloads ready or late, collect
// garbage, empty namespaces, and establish CRDs.

// rollout is since when a Deployment makes no progress with a generation.
type rollout struct {
	generation int64
	since      time.Time
}

// inUse is the finalizer that keeps a claim while a pod uses it; here none does.
const inUse = "kubernetes.io/pvc-protection"

// finalizerOf is the finalizer that a propagation puts on what is deleted.
func finalizerOf(o metav1.DeleteOptions) string {
	switch {
	case o.PropagationPolicy == nil:
	case *o.PropagationPolicy == metav1.DeletePropagationOrphan:
		return metav1.FinalizerOrphanDependents
	case *o.PropagationPolicy == metav1.DeletePropagationForeground:
		return metav1.FinalizerDeleteDependents
	}
	return ""
}

// orphan takes an owner off what it owns.
func (s *Server) orphan(uid types.UID) {
	isIt := func(o metav1.OwnerReference) bool { return o.UID == uid }
	for _, p := range s.Places() {
		if u := s.Objects[p]; slices.ContainsFunc(u.GetOwnerReferences(), isIt) {
			u = u.DeepCopy()
			u.SetOwnerReferences(slices.DeleteFunc(u.GetOwnerReferences(), isIt))
			s.store("system", "orphan", s.KindAt(p), p, u)
		}
	}
}

// Step lets the controllers act once, each on what it finds; whether anything changed.
func (s *Server) Step() bool {
	before := s.version
	if s.settled == before {
		return false
	}
	s.Waits = false
	var uids map[types.UID]bool
	gone := func(o metav1.OwnerReference) bool {
		if uids == nil {
			uids = map[types.UID]bool{}
			for _, u := range s.Objects {
				uids[u.GetUID()] = true
			}
		}
		return !uids[o.UID]
	}
	for _, p := range s.Places() {
		u := s.Objects[p]
		if u == nil || s.done[p] == u {
			continue
		}
		k, owners, leaving := s.KindAt(p), u.GetOwnerReferences(), u.GetDeletionTimestamp() != nil
		if len(owners) == 0 && !leaving && k.Kind != "Job" && k.Kind != "Deployment" && k.Kind != "PersistentVolumeClaim" && k.Kind != "CustomResourceDefinition" && k.Kind != "Namespace" {
			s.done[p] = u
			continue
		}
		var next *unstructured.Unstructured
		waits := false
		switch {
		case len(owners) > 0 && !slices.ContainsFunc(owners, func(o metav1.OwnerReference) bool { return !gone(o) }):
			s.store("system", "collect", k, p, nil)
			continue
		case leaving && s.propagate(k, p, u):
			continue
		case k.Kind == "PersistentVolumeClaim" && leaving && slices.Contains(u.GetFinalizers(), inUse):
			s.unblock(k, p, u, inUse)
			continue
		case leaving && slices.Contains(u.GetFinalizers(), Slow):
			if s.Waits = true; time.Since(u.GetDeletionTimestamp().Time) >= slowly {
				s.unblock(k, p, u, Slow)
			}
			continue
		case k.Kind == "PersistentVolumeClaim":
			next = u.DeepCopy()
			_ = unstructured.SetNestedField(next.Object, "Bound", "status", "phase")
		case k.Kind == "Job" && !leaving:
			var expires bool
			next = u.DeepCopy()
			if waits, expires = s.work(next); expires {
				s.store("system", "expire", k, p, nil)
				continue
			}
			s.Waits = s.Waits || waits
		case k.Kind == "Deployment":
			next = u.DeepCopy()
			waits = s.settle(next)
			s.Waits = s.Waits || waits
		case leaving && (k.Kind == "CustomResourceDefinition" || k.Kind == "Namespace"):
			s.end(k, p, u)
			continue
		case k.Kind == "CustomResourceDefinition":
			next = u.DeepCopy()
			s.establish(next)
		case k.Kind == "Namespace":
			s.furnish(p.Name)
		}
		switch {
		case next == nil:
		case !Same(next.Object, u.Object):
			s.store("system", "status", k, p, next)
		case len(owners) == 0 && !leaving && !waits:
			s.done[p] = u
		}
	}
	if s.version == before && !s.Waits {
		s.settled = before
	}
	return s.version != before
}

// unblock takes a finalizer off what is deleted, which goes with the last one.
func (s *Server) unblock(k Kind, p Place, u *unstructured.Unstructured, finalizer string) {
	left := slices.DeleteFunc(u.GetFinalizers(), func(f string) bool { return f == finalizer })
	next := u.DeepCopy()
	if next.SetFinalizers(left); len(left) == 0 {
		next = nil
	}
	s.store("system", "unblock", k, p, next)
}

// propagate is the garbage collector at what waits for it; whether it did anything.
func (s *Server) propagate(k Kind, p Place, u *unstructured.Unstructured) bool {
	finalizers := u.GetFinalizers()
	orphans, cascades := slices.Contains(finalizers, metav1.FinalizerOrphanDependents), slices.Contains(finalizers, metav1.FinalizerDeleteDependents)
	if !orphans && !cascades {
		return false
	}
	if orphans {
		s.orphan(u.GetUID())
	}
	isIt := func(o metav1.OwnerReference) bool { return o.UID == u.GetUID() }
	for _, q := range s.Places() {
		if one := s.Objects[q]; cascades && slices.ContainsFunc(one.GetOwnerReferences(), isIt) {
			_, _ = s.Delete("system", s.KindAt(q), q, metav1.DeleteOptions{}, false)
		}
	}
	u = u.DeepCopy()
	u.SetFinalizers(slices.DeleteFunc(finalizers, func(f string) bool {
		return f == metav1.FinalizerOrphanDependents || f == metav1.FinalizerDeleteDependents
	}))
	if len(u.GetFinalizers()) == 0 && k.Kind != "Namespace" && k.Kind != "CustomResourceDefinition" {
		u = nil
	}
	s.store("system", "collect", k, p, u)
	return true
}

// furnish makes what every namespace has.
func (s *Server) furnish(namespace string) {
	for _, one := range []struct {
		k    Kind
		name string
	}{{builtIn[1], "kube-root-ca.crt"}, {builtIn[3], "default"}} {
		if s.Objects[At(one.k, namespace, one.name)] == nil {
			_, _ = s.Create("system", one.k, object(one.k.GroupVersionKind, namespace, one.name), false)
		}
	}
}

// settle makes a Deployment ready, or says, when its time is over, that it makes no progress;
// whether that is still to come.
func (s *Server) settle(u *unstructured.Unstructured) (waits bool) {
	replicas, found, _ := unstructured.NestedInt64(u.Object, "spec", "replicas")
	if !found {
		replicas = 1
	}
	ready := replicas
	if s.hasUnready(u) {
		ready = 0
	}
	available, progressing := "True", map[string]any{"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"}
	if ready < replicas {
		r := s.rollouts[u.GetUID()]
		if r.generation != u.GetGeneration() {
			r = rollout{u.GetGeneration(), time.Now()}
			s.rollouts[u.GetUID()] = r
		}
		deadline, _, _ := unstructured.NestedInt64(u.Object, "spec", "progressDeadlineSeconds")
		available, progressing["reason"] = "False", "ReplicaSetUpdated"
		if waits = time.Since(r.since) < time.Duration(deadline)*time.Second; !waits {
			progressing["status"], progressing["reason"] = "False", "ProgressDeadlineExceeded"
		}
	}
	u.Object["status"] = map[string]any{
		"observedGeneration": u.GetGeneration(), "replicas": replicas, "updatedReplicas": replicas, "readyReplicas": ready, "availableReplicas": ready,
		"conditions": []any{map[string]any{"type": "Available", "status": available}, progressing},
	}
	return waits
}

// cleanup is the finalizer of a CRD that is deleted: its resources go first.
const cleanup = "customresourcecleanup.apiextensions.k8s.io"

// establish serves what a CRD defines. Its stored versions are kept: only a client takes one out.
func (s *Server) establish(u *unstructured.Unstructured) {
	group, _, _ := unstructured.NestedString(u.Object, "spec", "group")
	Plural, _, _ := unstructured.NestedString(u.Object, "spec", "names", "plural")
	name, _, _ := unstructured.NestedString(u.Object, "spec", "names", "kind")
	scope, _, _ := unstructured.NestedString(u.Object, "spec", "scope")
	versions, _, _ := unstructured.NestedSlice(u.Object, "spec", "versions")
	note(u)
	_ = unstructured.SetNestedSlice(u.Object, []any{map[string]any{"type": "NamesAccepted", "status": "True"}, map[string]any{"type": "Established", "status": "True"}}, "status", "conditions")
	var served []Kind
	for _, one := range versions {
		v, _ := one.(map[string]any)
		version, _ := v["name"].(string)
		k := Kind{schema.GroupVersionKind{Group: group, Version: version, Kind: name}, Plural, scope == "Namespaced"}
		if v["served"] == true {
			served = append(served, k)
		}
		if v["served"] == true && !slices.Contains(s.kinds, k) {
			s.kinds, s.found = append(s.kinds, k), nil
			s.fresh[k.resource()] = time.Now()
			s.since[k] = time.Now()
		}
		s.reread(k)
	}
	left := func(k Kind) bool { return k.Group == group && k.Plural == Plural && !slices.Contains(served, k) }
	if slices.ContainsFunc(s.kinds, left) {
		s.kinds, s.found = slices.DeleteFunc(s.kinds, left), nil
		for _, w := range s.watches {
			if left(w.kind) {
				w.body.cut()
			}
		}
	}
}

// defining returns the CRD of a kind; nil: it is built in.
func (s *Server) defining(k Kind) *unstructured.Unstructured {
	return s.Objects[Place{"apiextensions.k8s.io", "customresourcedefinitions", "", k.Plural + "." + k.Group}]
}

// end deletes what a Namespace or CRD holds; where nothing is left, itself.
func (s *Server) end(k Kind, p Place, u *unstructured.Unstructured) {
	group, _, _ := unstructured.NestedString(u.Object, "spec", "group")
	Plural, _, _ := unstructured.NestedString(u.Object, "spec", "names", "plural")
	left := false
	for _, q := range s.Places() {
		held := k.Kind == "Namespace" && q.Namespace == p.Name || k.Kind != "Namespace" && q.Group == group && q.Resource == Plural
		if held {
			left = true
			switch one := s.Objects[q]; {
			case len(one.GetFinalizers()) == 0:
				s.store("system", "cascade", s.KindAt(q), q, nil)
			case one.GetDeletionTimestamp() == nil:
				_, _ = s.Delete("system", s.KindAt(q), q, metav1.DeleteOptions{}, false)
			}
		}
	}
	if !left {
		s.store("system", "cascade", k, p, nil)
	}
}
