package simulator

import (
	"bytes"
	"cmp"
	"encoding/json"
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
	"k8s.io/apimachinery/pkg/util/managedfields/managedfieldstest"
)

// kind is one that the server serves.
type kind struct {
	schema.GroupVersionKind
	plural     string
	namespaced bool
}

// counts says whether objects of a kind have a generation.
func (k kind) counts() bool {
	return !slices.Contains([]string{"Namespace", "ConfigMap", "Secret", "ServiceAccount", "PersistentVolumeClaim", "Event", "Lease", "APIService"}, k.Kind)
}

func (k kind) resource() schema.GroupResource {
	return schema.GroupResource{Group: k.Group, Resource: k.plural}
}

var builtIn = []kind{
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

// place is where an object is stored.
type place struct{ group, resource, namespace, name string }

// Write is one write that the server stored.
type Write struct {
	Seq           int
	Time          time.Time
	Actor, Verb   string
	Kind          schema.GroupKind
	Namespace     string
	Name          string
	Before, After *unstructured.Unstructured // nil: not there

	holders map[string]string
}

func (w *Write) String() string {
	return fmt.Sprintf("%4d %s %-9s %-7s %s %s/%s", w.Seq, w.Time.Format("15:04:05.000"), w.Actor, w.Verb, w.Kind.Kind, w.Namespace, w.Name)
}

// apiServer is a small API server in memory. Nothing of it runs by itself: a request is
// served when serve is called, controllers act when step is called.
type apiServer struct {
	kinds    []kind
	objects  map[place]*unstructured.Unstructured
	version  int
	uids     int
	log      []*Write
	watches  []*watch
	holders  map[string]string // of locks: the actor that wrote the Lease last
	unready  map[string]bool   // Deployments that stay unready, by their image
	managers map[schema.GroupVersionKind]*managedfields.FieldManager
	fresh    map[schema.GroupResource]time.Time // since when a CRD is served
	settled  int                                // the version at which no controller had anything to do
}

func newAPIServer() *apiServer {
	s := &apiServer{
		kinds: slices.Clone(builtIn), objects: map[place]*unstructured.Unstructured{}, holders: map[string]string{},
		unready: map[string]bool{"broken": true}, managers: map[schema.GroupVersionKind]*managedfields.FieldManager{},
		fresh: map[schema.GroupResource]time.Time{},
	}
	for _, name := range []string{"default", "kube-system"} {
		_, err := s.create("system", s.kinds[0], object(s.kinds[0].GroupVersionKind, "", name), false)
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

func (s *apiServer) manager(gvk schema.GroupVersionKind) *managedfields.FieldManager {
	m := s.managers[gvk]
	if m == nil {
		m = managedfieldstest.NewFakeFieldManager(managedfields.NewDeducedTypeConverter(), gvk)
		s.managers[gvk] = m
	}
	return m
}

func (s *apiServer) find(match func(kind) bool) (kind, bool) {
	i := slices.IndexFunc(s.kinds, match)
	if i < 0 {
		return kind{}, false
	}
	return s.kinds[i], true
}

func at(k kind, namespace, name string) place {
	if !k.namespaced {
		namespace = ""
	}
	return place{k.Group, k.plural, namespace, name}
}

// get is the oracle's eye: what is stored.
func (s *apiServer) get(gk schema.GroupKind, namespace, name string) *unstructured.Unstructured {
	k, ok := s.find(func(k kind) bool { return k.GroupKind() == gk })
	if !ok {
		return nil
	}
	return s.objects[at(k, namespace, name)]
}

// store writes one object, nil deletes it.
func (s *apiServer) store(actor, verb string, k kind, p place, u *unstructured.Unstructured) {
	s.version++
	before := s.objects[p]
	w := &Write{Seq: len(s.log) + 1, Time: time.Now(), Actor: actor, Verb: verb, Kind: k.GroupKind(), Namespace: p.namespace, Name: p.name, Before: before}
	if u != nil {
		u.SetResourceVersion(strconv.Itoa(s.version))
		s.objects[p] = u
		w.After = u
	} else {
		delete(s.objects, p)
	}
	if k.Kind == "Lease" {
		s.holders[p.namespace+"/"+strings.TrimPrefix(p.name, "brine-")] = actor
		if u == nil {
			delete(s.holders, p.namespace+"/"+strings.TrimPrefix(p.name, "brine-"))
		}
	}
	w.holders = map[string]string{}
	maps.Copy(w.holders, s.holders)
	s.log = append(s.log, w)
	s.watches = slices.DeleteFunc(s.watches, func(w *watch) bool { return w.body.isClosed() })
	for _, watch := range s.watches {
		watch.tell(k, p, before, u, s.version)
	}
	if k.Kind == "CustomResourceDefinition" && u == nil {
		s.undefine(before)
	}
}

// undefine drops a kind, of which there are no objects any more.
func (s *apiServer) undefine(crd *unstructured.Unstructured) {
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	plural, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "plural")
	s.kinds = slices.DeleteFunc(s.kinds, func(k kind) bool { return k.Group == group && k.plural == plural })
}

func (s *apiServer) create(actor string, k kind, u *unstructured.Unstructured, dry bool) (*unstructured.Unstructured, error) {
	if u.GetName() == "" && u.GetGenerateName() != "" {
		u.SetName(fmt.Sprintf("%s%05d", u.GetGenerateName(), s.uids))
	}
	p := at(k, u.GetNamespace(), u.GetName())
	if s.objects[p] != nil {
		return nil, apierrors.NewAlreadyExists(k.resource(), p.name)
	}
	if k.namespaced {
		namespace := s.objects[place{resource: "namespaces", name: p.namespace}]
		if namespace == nil {
			return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, p.namespace)
		}
		if namespace.GetDeletionTimestamp() != nil {
			err := apierrors.NewForbidden(k.resource(), p.name, fmt.Errorf("unable to create new content in namespace %s because it is being terminated", p.namespace))
			err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{Type: "NamespaceTerminating", Message: "namespace " + p.namespace + " is being terminated", Field: "metadata.namespace"})
			return nil, err
		}
	}
	s.uids++
	u.SetUID(types.UID(fmt.Sprintf("uid-%d", s.uids)))
	u.SetCreationTimestamp(metav1.NewTime(time.Now().Truncate(time.Second)))
	u.SetGeneration(0)
	if k.counts() {
		u.SetGeneration(1)
	}
	u.SetResourceVersion("")
	unstructured.RemoveNestedField(u.Object, "status")
	switch k.Kind {
	case "Namespace":
		u.Object["status"] = map[string]any{"phase": "Active"}
	case "PersistentVolumeClaim":
		u.Object["status"] = map[string]any{"phase": "Bound"}
	case "Secret":
		if u.Object["type"] == nil {
			u.Object["type"] = "Opaque"
		}
	}
	if !dry {
		s.store(actor, "create", k, p, u)
	}
	return u, nil
}

// update replaces an object; its generation follows its spec.
func (s *apiServer) update(actor, verb string, k kind, live, u *unstructured.Unstructured, dry bool) *unstructured.Unstructured {
	if verb == "status" { // of what is sent, only the status
		status := u.Object["status"]
		u = live.DeepCopy()
		u.Object["status"] = status
	} else if live.Object["status"] != nil {
		u.Object["status"] = live.Object["status"]
	}
	u.SetUID(live.GetUID())
	u.SetCreationTimestamp(live.GetCreationTimestamp())
	u.SetDeletionTimestamp(live.GetDeletionTimestamp())
	u.SetGeneration(live.GetGeneration())
	u.SetResourceVersion(live.GetResourceVersion())
	if k.counts() && !same(live.Object["spec"], u.Object["spec"]) {
		u.SetGeneration(live.GetGeneration() + 1)
	}
	if sameBut(live.Object, u.Object, "metadata") && sameBut(live.Object["metadata"], u.Object["metadata"], "managedFields") && sameOwners(live, u) {
		return live // the server writes nothing then
	}
	if !dry {
		p := at(k, u.GetNamespace(), u.GetName())
		if u.GetDeletionTimestamp() != nil && len(u.GetFinalizers()) == 0 && k.Kind != "Namespace" {
			s.store(actor, verb, k, p, nil)
			return u
		}
		s.store(actor, verb, k, p, u)
	}
	return u
}

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
	return same(x, y)
}

func same(a, b any) bool {
	if reflect.DeepEqual(a, b) {
		return true
	}
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return bytes.Equal(x, y)
}

func (s *apiServer) checkVersion(k kind, live, u *unstructured.Unstructured) error {
	switch {
	case u.GetUID() != "" && u.GetUID() != live.GetUID():
		return apierrors.NewConflict(k.resource(), live.GetName(), fmt.Errorf("Precondition failed: UID in precondition: %v, UID in object meta: %v", u.GetUID(), live.GetUID()))
	case u.GetResourceVersion() != "" && u.GetResourceVersion() != live.GetResourceVersion():
		return apierrors.NewConflict(k.resource(), live.GetName(), fmt.Errorf("the object has been modified; please apply your changes to the latest version and try again"))
	}
	return nil
}

func (s *apiServer) apply(actor, manager string, k kind, sent *unstructured.Unstructured, force, dry bool) (*unstructured.Unstructured, bool, error) {
	p := at(k, sent.GetNamespace(), sent.GetName())
	live := s.objects[p]
	base := object(k.GroupVersionKind, p.namespace, p.name)
	if live != nil {
		if err := s.checkVersion(k, live, sent); err != nil {
			return nil, false, err
		}
		base = live.DeepCopy()
	} else if sent.GetUID() != "" {
		return nil, false, apierrors.NewConflict(k.resource(), p.name, fmt.Errorf("uid mismatch: the provided object specified uid %s, and no existing object was found", sent.GetUID()))
	}
	sent.SetResourceVersion("")
	sent.SetUID("")
	merged, err := s.manager(k.GroupVersionKind).Apply(base, sent, manager, force)
	if err != nil {
		return nil, false, err
	}
	u, _ := merged.(*unstructured.Unstructured)
	if live == nil {
		u, err = s.create(actor, k, u, dry)
		return u, true, err
	}
	return s.update(actor, "patch", k, live, u, dry), false, nil
}

func (s *apiServer) put(actor, verb, manager string, k kind, live, u *unstructured.Unstructured, dry bool) (*unstructured.Unstructured, error) {
	if err := s.checkVersion(k, live, u); err != nil {
		return nil, err
	}
	if u.GetManagedFields() == nil {
		u.SetManagedFields(live.GetManagedFields())
	}
	tracked, err := s.manager(k.GroupVersionKind).Update(live.DeepCopy(), u, manager)
	if err != nil {
		return nil, err
	}
	u, _ = tracked.(*unstructured.Unstructured)
	return s.update(actor, verb, k, live, u, dry), nil
}

func (s *apiServer) delete(actor string, k kind, p place, o metav1.DeleteOptions, dry bool) (*unstructured.Unstructured, error) {
	live := s.objects[p]
	if live == nil {
		return nil, apierrors.NewNotFound(k.resource(), p.name)
	}
	if pre := o.Preconditions; pre != nil {
		if pre.UID != nil && *pre.UID != live.GetUID() {
			return nil, apierrors.NewConflict(k.resource(), p.name, fmt.Errorf("the UID in the precondition (%s) does not match the UID in record (%s). The object might have been deleted and then recreated", *pre.UID, live.GetUID()))
		}
		if pre.ResourceVersion != nil && *pre.ResourceVersion != live.GetResourceVersion() {
			return nil, apierrors.NewConflict(k.resource(), p.name, fmt.Errorf("the ResourceVersion in the precondition (%s) does not match the ResourceVersion in record (%s). The object might have been modified", *pre.ResourceVersion, live.GetResourceVersion()))
		}
	}
	if k.Kind == "Namespace" && (p.name == "default" || p.name == "kube-system") {
		return nil, apierrors.NewForbidden(k.resource(), p.name, fmt.Errorf("this namespace may not be deleted"))
	}
	if dry {
		return nil, nil //nolint:nilnil // a Status answers
	}
	if o.PropagationPolicy != nil && *o.PropagationPolicy == metav1.DeletePropagationOrphan {
		s.orphan(live.GetUID())
	}
	if k.Kind == "Namespace" || k.Kind == "CustomResourceDefinition" || len(live.GetFinalizers()) > 0 {
		if live.GetDeletionTimestamp() == nil {
			u := live.DeepCopy()
			now := metav1.NewTime(time.Now().Truncate(time.Second))
			u.SetDeletionTimestamp(&now)
			if k.Kind == "Namespace" {
				u.Object["status"] = map[string]any{"phase": "Terminating"}
			}
			s.store(actor, "delete", k, p, u)
			return u, nil
		}
		return live, nil
	}
	s.store(actor, "delete", k, p, nil)
	return nil, nil //nolint:nilnil // a Status answers
}

// orphan takes an owner off what it owns.
func (s *apiServer) orphan(uid types.UID) {
	isIt := func(o metav1.OwnerReference) bool { return o.UID == uid }
	for _, p := range s.places() {
		if u := s.objects[p]; slices.ContainsFunc(u.GetOwnerReferences(), isIt) {
			u = u.DeepCopy()
			u.SetOwnerReferences(slices.DeleteFunc(u.GetOwnerReferences(), isIt))
			s.store("system", "orphan", s.kindAt(p), p, u)
		}
	}
}

// places are where objects are stored, in one order.
func (s *apiServer) places() []place {
	return slices.SortedFunc(maps.Keys(s.objects), func(a, b place) int {
		return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(a.resource, b.resource), cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
	})
}

func (s *apiServer) kindAt(p place) kind {
	k, _ := s.find(func(k kind) bool { return k.Group == p.group && k.plural == p.resource })
	return k
}

// step lets the controllers act once, each on what it finds; whether anything changed.
func (s *apiServer) step() bool {
	before := s.version
	if s.settled == before {
		return false
	}
	places := s.places()
	uids := map[types.UID]bool{}
	for _, u := range s.objects {
		uids[u.GetUID()] = true
	}
	for _, p := range places {
		u := s.objects[p]
		if u == nil {
			continue
		}
		k, owners := s.kindAt(p), u.GetOwnerReferences()
		var next *unstructured.Unstructured
		if k.Kind == "Deployment" || k.Kind == "CustomResourceDefinition" {
			next = u.DeepCopy()
		}
		switch {
		case len(owners) > 0 && !slices.ContainsFunc(owners, func(o metav1.OwnerReference) bool { return uids[o.UID] }):
			s.store("system", "collect", k, p, nil)
			continue
		case k.Kind == "Deployment":
			s.settle(next)
		case k.Kind == "CustomResourceDefinition" && u.GetDeletionTimestamp() != nil, k.Kind == "Namespace" && u.GetDeletionTimestamp() != nil:
			s.end(k, p, u)
			continue
		case k.Kind == "CustomResourceDefinition":
			s.establish(next)
		case k.Kind == "Namespace":
			s.furnish(p.name)
		}
		if next != nil && !same(next.Object, u.Object) {
			s.store("system", "status", k, p, next)
		}
	}
	if s.version == before {
		s.settled = before
	}
	return s.version != before
}

// furnish makes what every namespace has.
func (s *apiServer) furnish(namespace string) {
	for _, one := range []struct {
		k    kind
		name string
	}{{builtIn[1], "kube-root-ca.crt"}, {builtIn[3], "default"}} {
		if s.objects[at(one.k, namespace, one.name)] == nil {
			_, _ = s.create("system", one.k, object(one.k.GroupVersionKind, namespace, one.name), false)
		}
	}
}

// settle makes a Deployment ready.
func (s *apiServer) settle(u *unstructured.Unstructured) {
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
	condition := "True"
	if ready < replicas {
		condition = "False"
	}
	u.Object["status"] = map[string]any{
		"observedGeneration": u.GetGeneration(), "replicas": replicas, "updatedReplicas": replicas, "readyReplicas": ready, "availableReplicas": ready,
		"conditions": []any{map[string]any{"type": "Available", "status": condition}, map[string]any{"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable"}},
	}
}

// establish serves what a CRD defines. Its stored versions are kept: only a client takes one out.
func (s *apiServer) establish(u *unstructured.Unstructured) {
	group, _, _ := unstructured.NestedString(u.Object, "spec", "group")
	plural, _, _ := unstructured.NestedString(u.Object, "spec", "names", "plural")
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
		k := kind{schema.GroupVersionKind{Group: group, Version: version, Kind: name}, plural, scope == "Namespaced"}
		if v["served"] == true && !slices.Contains(s.kinds, k) {
			s.kinds = append(s.kinds, k)
			s.fresh[k.resource()] = time.Now()
		}
	}
}

// defining returns the CRD of a kind; nil: it is built in.
func (s *apiServer) defining(k kind) *unstructured.Unstructured {
	return s.objects[place{"apiextensions.k8s.io", "customresourcedefinitions", "", k.plural + "." + k.Group}]
}

// end deletes what a Namespace or CRD holds; where nothing is left, itself.
func (s *apiServer) end(k kind, p place, u *unstructured.Unstructured) {
	group, _, _ := unstructured.NestedString(u.Object, "spec", "group")
	plural, _, _ := unstructured.NestedString(u.Object, "spec", "names", "plural")
	left := false
	for _, q := range s.places() {
		held := k.Kind == "Namespace" && q.namespace == p.name || k.Kind != "Namespace" && q.group == group && q.resource == plural
		if held {
			left = true
			if len(s.objects[q].GetFinalizers()) == 0 {
				s.store("system", "cascade", s.kindAt(q), q, nil)
			}
		}
	}
	if !left {
		s.store("system", "cascade", k, p, nil)
	}
}

// watch is one watch that is under way.
type watch struct {
	kind      kind
	namespace string
	selector  labels.Selector
	fields    string
	body      *stream
}

func (w *watch) matches(p place, u *unstructured.Unstructured) bool {
	return u != nil && (w.namespace == "" || p.namespace == w.namespace) && w.selector.Matches(labels.Set(u.GetLabels())) &&
		(w.fields == "" || w.fields == "metadata.name="+p.name)
}

func (w *watch) tell(k kind, p place, before, after *unstructured.Unstructured, version int) {
	if k.resource() != w.kind.resource() {
		return
	}
	was, is := w.matches(p, before), w.matches(p, after)
	switch {
	case is && was:
		w.send("MODIFIED", after)
	case is:
		w.send("ADDED", after)
	case was:
		last := before.DeepCopy()
		last.SetResourceVersion(strconv.Itoa(version))
		w.send("DELETED", last)
	}
}

func (w *watch) send(event string, u *unstructured.Unstructured) {
	text, _ := json.Marshal(map[string]any{"type": event, "object": u.Object})
	w.body.write(append(text, '\n'))
}

func answer(r *http.Request, code int, contentType string, body io.ReadCloser) *http.Response {
	return &http.Response{
		StatusCode: code, Status: fmt.Sprintf("%d %s", code, http.StatusText(code)), Proto: "HTTP/2.0", ProtoMajor: 2,
		Header: http.Header{"Content-Type": []string{contentType}}, Body: body, Request: r, ContentLength: -1,
	}
}

func answerJSON(r *http.Request, code int, v any) *http.Response {
	text, _ := json.Marshal(v)
	return answer(r, code, "application/json", io.NopCloser(strings.NewReader(string(text))))
}

func answerError(r *http.Request, err error) *http.Response {
	status := apierrors.NewInternalError(err).Status()
	if known, ok := err.(apierrors.APIStatus); ok {
		status = known.Status()
	}
	status.APIVersion, status.Kind = "v1", "Status"
	return answerJSON(r, int(status.Code), status)
}

func notFound(k kind, name string) error { return apierrors.NewNotFound(k.resource(), name) }

func badRequest(message string) error { return apierrors.NewBadRequest(message) }
