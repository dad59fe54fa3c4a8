// Package apiserver is a small API server in memory, for the simulator: it answers as a real
// one does, which a test of this package compares. It is no part of the product.
package apiserver

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
	{schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}, "jobs", true},
	{schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "CronJob"}, "cronjobs", true},
	{schema.GroupVersionKind{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"}, "leases", true},
	{schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}, "customresourcedefinitions", false},
	{schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"}, "apiservices", false},
}

// admission is a kind that only some servers serve: it was not there when the fixed histories began.
var admission = Kind{schema.GroupVersionKind{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingWebhookConfiguration"}, "validatingwebhookconfigurations", false}

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
	kinds   []Kind
	Objects map[Place]*unstructured.Unstructured
	version int
	uids    int
	Log     []*Write
	watches []*watch
	Holders map[string]string // of locks: the actor that wrote the Lease last
	Away    string            // the resource that is not served for a while
	Lag     time.Duration     // how far the API server that is asked next is behind: with CRDs, and with what its watches say
	Began   int               // how much was written when API servers began to be behind
	Twice   bool              // its watches say everything twice
	Older   bool              // than Kubernetes 1.27: discovery is asked version by version
	// Admit are webhooks, which may change what is written, before it is validated; live is nil
	// where it is new, u where it goes.
	Admit      func(actor string, k Kind, u, live *unstructured.Unstructured) error
	Old        bool // no watch begins with what is there: clients list before, and take what is cached
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

// ServeAdmission has the server serve a kind that says which webhooks there are.
func (s *Server) ServeAdmission() { s.kinds = append(s.kinds, admission) }

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
		u = s.stored(k, u)
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
	if err := s.admit(actor, k, u, nil); err != nil {
		return nil, err
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
	case "Job":
		selectPods(u)
	case "CronJob":
		u.Object["status"] = map[string]any{}
	default:
		if !k.isCustom() || s.hasStatus(k) {
			unstructured.RemoveNestedField(u.Object, "status")
		}
		if k.Kind == definition {
			note(u)
		}
	}
	if !dry {
		s.store(actor, "create", k, p, u)
	}
	return u, nil
}

// admit asks the webhooks.
func (s *Server) admit(actor string, k Kind, u, live *unstructured.Unstructured) error {
	if s.Admit == nil {
		return nil
	}
	return s.Admit(actor, k, u, live)
}

// Namespaced says whether what a path names is in a namespace.
func (s *Server) Namespaced(t Target) bool {
	k, _ := s.Find(func(k Kind) bool { return k.GroupVersion() == t.GV && k.Plural == t.Resource })
	return k.Namespaced
}

// Lacks says whether what a path names is not there.
func (s *Server) Lacks(t Target) bool {
	k, ok := s.Find(func(k Kind) bool { return k.GroupVersion() == t.GV && k.Plural == t.Resource })
	return ok && s.Objects[At(k, t.Namespace, t.Name)] == nil
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
	was := live
	live, u = k.as(live), k.as(u)
	if verb == "status" { // of what is sent, only the status
		status := u.Object["status"]
		u = live.DeepCopy()
		u.Object["status"] = status
	} else if live.Object["status"] != nil && s.hasStatus(k) {
		u.Object["status"] = live.Object["status"]
	}
	if k.Kind == definition && verb != "status" {
		u.Object["status"], _, _ = unstructured.NestedFieldCopy(live.Object, "status")
		note(u)
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
	if verb != "status" {
		if err := s.admit(actor, k, u, live); err != nil {
			return nil, err
		}
	}
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
	if !gone && s.stored(k, live).GetAPIVersion() == was.GetAPIVersion() && sameBut(live.Object, u.Object, "metadata") && sameBut(live.Object["metadata"], u.Object["metadata"], "managedFields") && sameOwners(live, u) {
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
		base = k.as(live).DeepCopy()
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
	live, u = k.as(live), k.as(u)
	internalize(k, u)
	s.structureOf(k).conform(u)
	u, _ = s.manager(k).UpdateNoErrors(live.DeepCopy(), u, manager).(*unstructured.Unstructured)
	return s.update(actor, verb, k, s.Objects[At(k, live.GetNamespace(), live.GetName())], u, dry)
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
	if err := s.admit(actor, k, nil, live); err != nil {
		return nil, err
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

// KindAt is the kind of what is stored there.
func (s *Server) KindAt(p Place) Kind {
	k, _ := s.Find(func(k Kind) bool { return k.Group == p.Group && k.Plural == p.Resource })
	return k
}
