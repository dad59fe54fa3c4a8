// Package apiserver is a small API server in memory, for the simulator: it answers as a real
// one does, which a test of this package compares. It is no part of the product.
package apiserver

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Kind is one that the server serves.
type Kind struct {
	schema.GroupVersionKind
	Plural     string
	Namespaced bool
}

// counts says whether objects of a kind have a generation.
func (k Kind) counts() bool {
	return !slices.Contains([]string{"Namespace", "ConfigMap", "Secret", "ServiceAccount", "PersistentVolumeClaim", "Event", "Lease", "APIService"}, k.Kind)
}

func (k Kind) resource() schema.GroupResource {
	return schema.GroupResource{Group: k.Group, Resource: k.Plural}
}

var builtIn = []Kind{
	{schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, "namespaces", false},
	{schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, "configmaps", true},
	{schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, "secrets", true},
	{schema.GroupVersionKind{Version: "v1", Kind: "ServiceAccount"}, "serviceaccounts", true},
	{schema.GroupVersionKind{Version: "v1", Kind: "PersistentVolumeClaim"}, "persistentvolumeclaims", true},
	{schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, "pods", true},
	{schema.GroupVersionKind{Version: "v1", Kind: "Event"}, "events", true},
	{schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, "deployments", true},
	{schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "ReplicaSet"}, "replicasets", true},
	{schema.GroupVersionKind{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"}, "leases", true},
	{schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}, "customresourcedefinitions", false},
	{schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"}, "apiservices", false},
}

// Place is where an object is stored.
type Place struct{ Group, Resource, Namespace, Name string }

// Write is one write that the server stored.
type Write struct {
	Seq           int
	Time          time.Time
	Actor, Verb   string
	Kind          schema.GroupKind
	Namespace     string
	Name          string
	Before, After *unstructured.Unstructured // nil: not there

	Holders map[string]string
}

func (w *Write) String() string {
	return fmt.Sprintf("%4d %s %-9s %-7s %s %s/%s", w.Seq, w.Time.Format("15:04:05.000"), w.Actor, w.Verb, w.Kind.Kind, w.Namespace, w.Name)
}

// Server is a small API server in memory. Nothing of it runs by itself: a request is
// served when serve is called, controllers act when step is called.
type Server struct {
	kinds      []Kind
	Objects    map[Place]*unstructured.Unstructured
	version    int
	uids       int
	Log        []*Write
	watches    []*watch
	Holders    map[string]string // of locks: the actor that wrote the Lease last
	Away       string            // the resource that is not served for a while
	Lag        time.Duration     // how far the API server that is asked next is behind: with CRDs, and with what its watches say
	Twice      bool              // its watches say everything twice
	Old        bool              // no watch begins with what is there: clients list before, and take what is cached
	since      map[Kind]time.Time
	Waits      bool            // a controller acts when some time is over
	unready    map[string]bool // Deployments that stay unready, by their image
	rollouts   map[types.UID]rollout
	managers   map[managed]*managedfields.FieldManager
	structures map[Kind]defined
	fresh      map[schema.GroupResource]time.Time // since when a CRD is served
	settled    int                                // the version at which no controller had anything to do

	// What is stored does not change, but is replaced: what was made of it holds while it is there.
	texts map[Place]*text
	done  map[Place]*unstructured.Unstructured // controllers had nothing to do with it
	order []Place                              // nil: to be sorted
	found map[string][]byte                    // answers of discovery; nil: the kinds have changed
}

// rollout is since when a Deployment makes no progress with a generation.
type rollout struct {
	generation int64
	since      time.Time
}

// text is the JSON of an object: alone, in a list, and of its metadata.
type text struct {
	of               *unstructured.Unstructured
	json, item, meta []byte
}

// New is a server with what a new cluster has.
func New() *Server {
	s := &Server{
		kinds: slices.Clone(builtIn), Objects: map[Place]*unstructured.Unstructured{}, Holders: map[string]string{},
		unready: map[string]bool{"broken": true}, managers: map[managed]*managedfields.FieldManager{}, structures: map[Kind]defined{},
		fresh: map[schema.GroupResource]time.Time{}, since: map[Kind]time.Time{}, texts: map[Place]*text{}, done: map[Place]*unstructured.Unstructured{}, rollouts: map[types.UID]rollout{},
	}
	for _, name := range []string{"default", "kube-system"} {
		_, err := s.Create("system", s.kinds[0], object(s.kinds[0].GroupVersionKind, "", name), false)
		if err != nil {
			panic(err)
		}
	}
	return s
}

func object(gvk schema.GroupVersionKind, namespace, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(gvk)
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

// Find returns the first kind that is served and matches.
func (s *Server) Find(match func(Kind) bool) (Kind, bool) {
	i := slices.IndexFunc(s.kinds, match)
	if i < 0 {
		return Kind{}, false
	}
	return s.kinds[i], true
}

// At is where an object of a kind is stored.
func At(k Kind, namespace, name string) Place {
	if !k.Namespaced {
		namespace = ""
	}
	return Place{k.Group, k.Plural, namespace, name}
}

// Get is the oracle's eye: what is stored.
func (s *Server) Get(gk schema.GroupKind, namespace, name string) *unstructured.Unstructured {
	k, ok := s.Find(func(k Kind) bool { return k.GroupKind() == gk })
	if !ok {
		return nil
	}
	return s.Objects[At(k, namespace, name)]
}

// store writes one object, nil deletes it.
func (s *Server) store(actor, verb string, k Kind, p Place, u *unstructured.Unstructured) {
	s.version++
	before := s.Objects[p]
	if before == nil || u == nil {
		s.order = nil
	}
	w := &Write{Seq: len(s.Log) + 1, Time: time.Now(), Actor: actor, Verb: verb, Kind: k.GroupKind(), Namespace: p.Namespace, Name: p.Name, Before: before}
	if u != nil {
		u.SetResourceVersion(strconv.Itoa(s.version))
		s.Objects[p] = u
		w.After = u
	} else {
		delete(s.Objects, p)
	}
	if k.Kind == "Lease" {
		s.Holders[p.Namespace+"/"+strings.TrimPrefix(p.Name, "brine-")] = actor
		if u == nil {
			delete(s.Holders, p.Namespace+"/"+strings.TrimPrefix(p.Name, "brine-"))
		}
	}
	w.Holders = map[string]string{}
	maps.Copy(w.Holders, s.Holders)
	s.Log = append(s.Log, w)
	s.watches = slices.DeleteFunc(s.watches, func(w *watch) bool { return w.body.isClosed() })
	for _, watch := range s.watches {
		s.tell(watch, k, p, before, u, s.version)
	}
	if k.Kind == "CustomResourceDefinition" && u == nil {
		s.undefine(before)
	}
}

// inUse is the finalizer that keeps a claim while a pod uses it; here none does.
const inUse = "kubernetes.io/pvc-protection"

// Slow is a finalizer that its controller takes off after slowly.
const (
	Slow   = "example.com/slow"
	slowly = 20 * time.Second
)

// undefine drops a kind, of which there are no objects any more.
func (s *Server) undefine(crd *unstructured.Unstructured) {
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	Plural, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "plural")
	s.kinds = slices.DeleteFunc(s.kinds, func(k Kind) bool { return k.Group == group && k.Plural == Plural })
	s.found = nil
}

// Create stores a new object.
func (s *Server) Create(actor string, k Kind, u *unstructured.Unstructured, dry bool) (*unstructured.Unstructured, error) {
	if k.Namespaced {
		namespace := s.Objects[Place{Resource: "namespaces", Name: u.GetNamespace()}]
		if namespace == nil {
			return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, u.GetNamespace())
		}
		if namespace.GetDeletionTimestamp() != nil {
			err := apierrors.NewForbidden(k.resource(), u.GetName(), fmt.Errorf("unable to create new content in namespace %s because it is being terminated", u.GetNamespace()))
			err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{Type: "NamespaceTerminating", Message: "namespace " + u.GetNamespace() + " is being terminated", Field: "metadata.namespace"})
			return nil, err
		}
	}
	if u.GetName() == "" && u.GetGenerateName() != "" {
		u.SetName(fmt.Sprintf("%s%05d", u.GetGenerateName(), s.uids))
	}
	if err := s.validate(k, u, nil); err != nil {
		return nil, err
	}
	p := At(k, u.GetNamespace(), u.GetName())
	if live := s.Objects[p]; live != nil {
		err := apierrors.NewAlreadyExists(k.resource(), p.Name)
		if live.GetDeletionTimestamp() != nil {
			err.ErrStatus.Message = "object is being deleted: " + err.ErrStatus.Message
		}
		return nil, err
	}
	internalize(k, u)
	s.uids++
	u.SetUID(types.UID(fmt.Sprintf("uid-%d", s.uids)))
	u.SetCreationTimestamp(metav1.NewTime(time.Now().Truncate(time.Second)))
	u.SetGeneration(0)
	if k.counts() {
		u.SetGeneration(1)
	}
	switch k.Kind {
	case "Namespace": // after managers were noted
		setDefault(u.Object, []any{"kubernetes"}, "spec", "finalizers")
		u.Object["status"] = map[string]any{"phase": "Active"}
	case "PersistentVolumeClaim":
		u.Object["status"] = map[string]any{"phase": "Pending"}
		if finalizers := u.GetFinalizers(); !slices.Contains(finalizers, inUse) { // by admission, for no manager
			u.SetFinalizers(append(finalizers, inUse))
		}
	case "Deployment":
		u.Object["status"] = map[string]any{}
	default:
		if !k.isCustom() || s.hasStatus(k) {
			unstructured.RemoveNestedField(u.Object, "status")
		}
	}
	if !dry {
		s.store(actor, "create", k, p, u)
	}
	return u, nil
}

// hasStatus says whether a custom resource has the subresource status.
func (s *Server) hasStatus(k Kind) bool {
	crd := s.defining(k)
	if crd == nil {
		return true
	}
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	return slices.ContainsFunc(versions, func(v any) bool {
		version, _ := v.(map[string]any)
		_, has, _ := unstructured.NestedFieldNoCopy(version, "subresources", "status")
		return version["name"] == k.Version && has
	})
}

// update replaces an object; its generation follows its spec, that of a custom resource all
// but its metadata and status.
func (s *Server) update(actor, verb string, k Kind, live, u *unstructured.Unstructured, dry bool) (*unstructured.Unstructured, error) {
	internalize(k, u)
	if verb == "status" { // of what is sent, only the status
		status := u.Object["status"]
		u = live.DeepCopy()
		u.Object["status"] = status
	} else if live.Object["status"] != nil && s.hasStatus(k) {
		u.Object["status"] = live.Object["status"]
	}
	if finalizers, has, _ := unstructured.NestedFieldCopy(live.Object, "spec", "finalizers"); has && k.Kind == "Namespace" {
		_ = unstructured.SetNestedField(u.Object, finalizers, "spec", "finalizers")
	}
	switch {
	case u.GetResourceVersion() == "" && !slices.Contains(unconditional, k.Kind):
		return nil, apierrors.NewInvalid(schema.GroupKind{Group: k.Group, Kind: k.Plural}, u.GetName(), field.ErrorList{field.Invalid(field.NewPath("metadata", "resourceVersion"), uint64(0), "must be specified for an update")})
	case u.GetResourceVersion() != "" && u.GetResourceVersion() != live.GetResourceVersion():
		return nil, apierrors.NewConflict(k.resource(), u.GetName(), errors.New(optimisticLock))
	}
	if u.GetUID() == "" {
		u.SetUID(live.GetUID())
	}
	u.SetCreationTimestamp(live.GetCreationTimestamp())
	u.SetDeletionTimestamp(live.GetDeletionTimestamp())
	u.SetDeletionGracePeriodSeconds(live.GetDeletionGracePeriodSeconds())
	u.SetGeneration(live.GetGeneration())
	u.SetResourceVersion(live.GetResourceVersion())
	changed := !Same(live.Object["spec"], u.Object["spec"])
	if k.isCustom() {
		a, b := maps.Clone(live.Object), maps.Clone(u.Object)
		if s.hasStatus(k) {
			delete(a, "status")
			delete(b, "status")
		}
		changed = !sameBut(a, b, "metadata")
	}
	if k.counts() && changed {
		u.SetGeneration(live.GetGeneration() + 1)
	}
	if err := s.validate(k, u, live); err != nil {
		return nil, err
	}
	gone := u.GetDeletionTimestamp() != nil && len(u.GetFinalizers()) == 0 && k.Kind != "Namespace"
	if !gone && sameBut(live.Object, u.Object, "metadata") && sameBut(live.Object["metadata"], u.Object["metadata"], "managedFields") && sameOwners(live, u) {
		return live, nil // the server writes nothing then
	}
	if dry {
		return u, nil
	}
	p := At(k, u.GetNamespace(), u.GetName())
	if gone {
		s.store(actor, verb, k, p, nil)
		return u, nil
	}
	s.store(actor, verb, k, p, u)
	return u, nil
}

const optimisticLock = "the object has been modified; please apply your changes to the latest version and try again"

// sameOwners says whether the managers of fields stay: their times do not count.
func sameOwners(a, b *unstructured.Unstructured) bool {
	strip := func(u *unstructured.Unstructured) string {
		fields := u.GetManagedFields()
		for i := range fields {
			fields[i].Time = nil
		}
		text, _ := json.Marshal(fields)
		return string(text)
	}
	return strip(a) == strip(b)
}

// sameBut compares two objects without one of their fields.
func sameBut(a, b any, field string) bool {
	x, _ := a.(map[string]any)
	y, _ := b.(map[string]any)
	x, y = maps.Clone(x), maps.Clone(y)
	delete(x, field)
	delete(y, field)
	return Same(x, y)
}

// Same says whether two values are the same as JSON.
func Same(a, b any) bool {
	if same(a, b) {
		return true
	}
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return bytes.Equal(x, y)
}

// same says whether two values as JSON decodes them are the same; unknown is false.
func same(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for key, value := range a {
			if other, ok := b[key]; !ok || !same(value, other) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, same)
	case string, bool, int64, float64, nil:
		return a == b
	}
	return reflect.DeepEqual(a, b)
}

// apply is server-side apply.
func (s *Server) apply(actor, manager string, k Kind, t Target, sent *unstructured.Unstructured, force, dry bool) (*unstructured.Unstructured, bool, error) {
	live := s.Objects[At(k, t.Namespace, t.Name)]
	base := &unstructured.Unstructured{Object: map[string]any{}}
	base.SetGroupVersionKind(k.GroupVersionKind)
	if live != nil {
		base = live.DeepCopy()
	}
	merged, err := s.manager(k).Apply(base, sent, manager, force)
	if err != nil {
		return nil, false, err
	}
	u, _ := merged.(*unstructured.Unstructured)
	s.structureOf(k).fill(u)
	switch {
	case live == nil && u.GetUID() != "":
		return nil, false, apierrors.NewConflict(k.resource(), t.Name, fmt.Errorf("uid mismatch: the provided object specified uid %s, and no existing object was found", u.GetUID()))
	case live == nil && s.terminating(k) != nil:
		return nil, false, s.terminating(k)
	}
	if err := k.fit(t, u); err != nil {
		return nil, false, err
	}
	if live == nil {
		u, err = s.Create(actor, k, u, dry)
		return u, true, err
	}
	u, err = s.update(actor, "patch", k, live, u, dry)
	return u, false, err
}

// fit says whether an object is one that the path names.
func (k Kind) fit(t Target, u *unstructured.Unstructured) error {
	switch {
	case !k.Namespaced: // what is said is dropped
		u.SetNamespace("")
	case u.GetNamespace() == "":
		u.SetNamespace(t.Namespace)
	}
	if u.GetNamespace() != t.Namespace && k.Namespaced {
		return badRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
	if t.Name != "" && u.GetName() != t.Name {
		return badRequest(fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", u.GetName(), t.Name))
	}
	return nil
}

// terminating is the error of a kind whose CRD is about to go; nil: it is not.
func (s *Server) terminating(k Kind) error {
	crd := s.defining(k)
	if crd == nil || crd.GetDeletionTimestamp() == nil {
		return nil
	}
	err := apierrors.NewMethodNotSupported(k.resource(), "create")
	err.ErrStatus.Message = "create not allowed while custom resource definition is terminating"
	return err
}

// Put replaces an object, as a PUT does, and a PATCH with what it makes of the object.
func (s *Server) Put(actor, verb, manager string, k Kind, live, u *unstructured.Unstructured, dry bool) (*unstructured.Unstructured, error) {
	internalize(k, u)
	s.structureOf(k).conform(u)
	u, _ = s.manager(k).UpdateNoErrors(live.DeepCopy(), u, manager).(*unstructured.Unstructured)
	return s.update(actor, verb, k, live, u, dry)
}

// Delete deletes an object. What it returns is nil where a Status is the answer.
func (s *Server) Delete(actor string, k Kind, p Place, o metav1.DeleteOptions, dry bool) (*unstructured.Unstructured, error) {
	live := s.Objects[p]
	if live == nil {
		return nil, apierrors.NewNotFound(k.resource(), p.Name)
	}
	if pre := o.Preconditions; pre != nil {
		of := schema.GroupResource{Group: k.Group, Resource: k.Kind}
		if k.Kind == "Namespace" || k.Kind == definition { // in words of their own
			failed := "precondition failed"
			if k.Kind == "Namespace" {
				failed = "Precondition failed"
			}
			switch {
			case pre.UID != nil && *pre.UID != live.GetUID():
				return nil, apierrors.NewConflict(k.resource(), p.Name, fmt.Errorf("%s: UID in precondition: %v, UID in object meta: %v", failed, *pre.UID, live.GetUID()))
			case pre.ResourceVersion != nil && *pre.ResourceVersion != live.GetResourceVersion():
				return nil, apierrors.NewConflict(k.resource(), p.Name, fmt.Errorf("%s: ResourceVersion in precondition: %v, ResourceVersion in object meta: %v", failed, *pre.ResourceVersion, live.GetResourceVersion()))
			}
		}
		if pre.UID != nil && *pre.UID != live.GetUID() {
			return nil, apierrors.NewConflict(of, p.Name, fmt.Errorf("the UID in the precondition (%s) does not match the UID in record (%s). The object might have been deleted and then recreated", *pre.UID, live.GetUID()))
		}
		if pre.ResourceVersion != nil && *pre.ResourceVersion != live.GetResourceVersion() {
			return nil, apierrors.NewConflict(of, p.Name, fmt.Errorf("the ResourceVersion in the precondition (%s) does not match the ResourceVersion in record (%s). The object might have been modified", *pre.ResourceVersion, live.GetResourceVersion()))
		}
	}
	if k.Kind == "Namespace" && (p.Name == "default" || p.Name == "kube-system") {
		return nil, apierrors.NewForbidden(k.resource(), p.Name, errors.New("this namespace may not be deleted"))
	}
	u := live.DeepCopy()
	if waits := finalizerOf(o); o.PropagationPolicy != nil && k.Kind != "CustomResourceDefinition" {
		keep := slices.DeleteFunc(u.GetFinalizers(), func(f string) bool {
			return f == metav1.FinalizerOrphanDependents || f == metav1.FinalizerDeleteDependents
		})
		if waits != "" {
			keep = append(keep, waits)
		}
		u.SetFinalizers(keep)
	}
	if k.Kind == "Namespace" || k.Kind == "CustomResourceDefinition" || len(u.GetFinalizers()) > 0 {
		if live.GetDeletionTimestamp() != nil {
			if !Same(live.GetFinalizers(), u.GetFinalizers()) && !dry {
				s.store(actor, "delete", k, p, u)
			}
			return u, nil
		}
		now, zero := metav1.NewTime(time.Now().Truncate(time.Second)), int64(0)
		u.SetDeletionTimestamp(&now)
		switch k.Kind {
		case "Namespace":
			u.Object["status"] = map[string]any{"phase": "Terminating"}
		case "CustomResourceDefinition":
			if finalizers := u.GetFinalizers(); !slices.Contains(finalizers, cleanup) {
				u.SetFinalizers(append(finalizers, cleanup))
			}
		default:
			u.SetDeletionGracePeriodSeconds(&zero)
		}
		if k.counts() && k.Kind != "CustomResourceDefinition" {
			u.SetGeneration(u.GetGeneration() + 1)
		}
		if !dry {
			s.store(actor, "delete", k, p, u)
		}
		return u, nil
	}
	if !dry {
		s.store(actor, "delete", k, p, nil)
	}
	return nil, nil //nolint:nilnil // a Status answers
}

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

// Places are where objects are stored, in one order.
func (s *Server) Places() []Place {
	if s.order == nil {
		s.order = slices.SortedFunc(maps.Keys(s.Objects), comparePlaces)
	}
	return s.order
}

func comparePlaces(a, b Place) int {
	return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// encode is the JSON of an object that is at a place, or was, or would be.
func (s *Server) encode(p Place, u *unstructured.Unstructured) []byte {
	known := s.texts[p]
	if known == nil || known.of != u {
		encoded, _ := json.Marshal(u.Object)
		if known = (&text{of: u, json: encoded}); s.Objects[p] == u {
			s.texts[p] = known
		}
	}
	return known.json
}

// encodeItem is the JSON of an object in a list, or of its metadata alone.
func (s *Server) encodeItem(k Kind, p Place, u *unstructured.Unstructured, metadata bool) []byte {
	alone := s.encode(p, u)
	known := s.texts[p]
	if known == nil || known.of != u { // it is not stored any more
		known = &text{of: u, json: alone}
	}
	switch {
	case metadata:
		if known.meta == nil {
			known.meta, _ = json.Marshal(map[string]any{"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": u.Object["metadata"]})
		}
		return known.meta
	case k.isCustom():
		return alone
	}
	if known.item == nil { // of them the list says it
		item := maps.Clone(u.Object)
		delete(item, "apiVersion")
		delete(item, "kind")
		known.item, _ = json.Marshal(item)
	}
	return known.item
}

// KindAt is the kind of what is stored there.
func (s *Server) KindAt(p Place) Kind {
	k, _ := s.Find(func(k Kind) bool { return k.Group == p.Group && k.Plural == p.Resource })
	return k
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
		if len(owners) == 0 && !leaving && k.Kind != "Deployment" && k.Kind != "PersistentVolumeClaim" && k.Kind != "CustomResourceDefinition" && k.Kind != "Namespace" {
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
	containers, _, _ := unstructured.NestedSlice(u.Object, "spec", "template", "spec", "containers")
	for _, c := range containers {
		if image, _ := c.(map[string]any)["image"].(string); s.unready[image] {
			ready = 0
		}
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
	stored, _, _ := unstructured.NestedStringSlice(u.Object, "status", "storedVersions")
	for _, one := range versions {
		v, _ := one.(map[string]any)
		if version, _ := v["name"].(string); v["storage"] == true && !slices.Contains(stored, version) {
			stored = append(stored, version)
		}
	}
	_ = unstructured.SetNestedStringSlice(u.Object, stored, "status", "storedVersions")
	_ = unstructured.SetNestedSlice(u.Object, []any{map[string]any{"type": "NamesAccepted", "status": "True"}, map[string]any{"type": "Established", "status": "True"}}, "status", "conditions")
	for _, one := range versions {
		v, _ := one.(map[string]any)
		version, _ := v["name"].(string)
		k := Kind{schema.GroupVersionKind{Group: group, Version: version, Kind: name}, Plural, scope == "Namespaced"}
		if v["served"] == true && !slices.Contains(s.kinds, k) {
			s.kinds, s.found = append(s.kinds, k), nil
			s.fresh[k.resource()] = time.Now()
			s.since[k] = time.Now()
		}
		s.reread(k)
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

// watch is one watch that is under way.
type watch struct {
	kind      Kind
	namespace string
	selector  labels.Selector
	fields    string
	body      *stream
	lag       time.Duration
	twice     bool
	held      []heldEvent
}

func (w *watch) matches(p Place, u *unstructured.Unstructured) bool {
	return u != nil && (w.namespace == "" || p.Namespace == w.namespace) && w.selector.Matches(labels.Set(u.GetLabels())) &&
		(w.fields == "" || w.fields == "metadata.name="+p.Name)
}

func (s *Server) tell(w *watch, k Kind, p Place, before, after *unstructured.Unstructured, version int) {
	if k.resource() != w.kind.resource() {
		return
	}
	was, is := w.matches(p, before), w.matches(p, after)
	switch {
	case is && was:
		w.send("MODIFIED", s.encode(p, after))
	case is:
		w.send("ADDED", s.encode(p, after))
	case was:
		last := before.DeepCopy()
		last.SetResourceVersion(strconv.Itoa(version))
		w.send("DELETED", s.encode(p, last))
	}
}

func (w *watch) send(event string, object []byte) {
	text := slices.Concat([]byte(`{"type":"`+event+`","object":`), object, []byte("}\n"))
	if w.twice && event == "MODIFIED" {
		text = slices.Concat(text, text)
	}
	if w.lag > 0 {
		w.held = append(w.held, heldEvent{time.Now().Add(w.lag), text})
		return
	}
	w.body.write(text)
}

// heldEvent is one that an API server that is behind does not know yet.
type heldEvent struct {
	due  time.Time
	text []byte
}

// Release lets watches say what is due, and returns how many events are not.
func (s *Server) Release() (held int) {
	for _, w := range s.watches {
		for len(w.held) > 0 && !w.held[0].due.After(time.Now()) {
			w.body.write(w.held[0].text)
			w.held = w.held[1:]
		}
		held += len(w.held)
	}
	return held
}

// serves says whether the API server that is asked serves a kind yet.
func (s *Server) serves(k Kind) bool {
	return k.Plural != s.Away && (s.Lag == 0 || !k.isCustom() || time.Since(s.since[k]) >= s.Lag)
}

// Answer makes a response.
func Answer(r *http.Request, code int, contentType string, body io.ReadCloser) *http.Response {
	return &http.Response{
		StatusCode: code, Status: fmt.Sprintf("%d %s", code, http.StatusText(code)), Proto: "HTTP/2.0", ProtoMajor: 2,
		Header: http.Header{"Content-Type": []string{contentType}}, Body: body, Request: r, ContentLength: -1,
	}
}

func answerJSON(r *http.Request, code int, v any) *http.Response {
	text, _ := json.Marshal(v)
	return answerText(r, code, text)
}

func answerText(r *http.Request, code int, text []byte) *http.Response {
	return Answer(r, code, "application/json", io.NopCloser(bytes.NewReader(text)))
}

// AnswerError makes the response that says an error.
func AnswerError(r *http.Request, err error) *http.Response {
	status := metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: err.Error()}
	if known, ok := err.(apierrors.APIStatus); ok {
		status = known.Status()
	}
	if status.Details != nil { // conflicts come in the order of a map
		slices.SortFunc(status.Details.Causes, func(a, b metav1.StatusCause) int {
			return cmp.Or(cmp.Compare(a.Field, b.Field), cmp.Compare(a.Message, b.Message))
		})
	}
	status.APIVersion, status.Kind = "v1", "Status"
	return answerJSON(r, int(status.Code), status)
}

func notFound(k Kind, name string) error { return apierrors.NewNotFound(k.resource(), name) }

func badRequest(message string) error { return apierrors.NewBadRequest(message) }
