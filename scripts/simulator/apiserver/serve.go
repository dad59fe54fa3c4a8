package apiserver

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// Target is what a path names.
type Target struct {
	GV                              schema.GroupVersion
	Resource, Namespace, Name, More string
}

// Parse reads a path; false: it names no resource.
func Parse(path string) (t Target, ok bool) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case len(parts) >= 3 && parts[0] == "api":
		t.GV, parts = schema.GroupVersion{Version: parts[1]}, parts[2:]
	case len(parts) >= 4 && parts[0] == "apis":
		t.GV, parts = schema.GroupVersion{Group: parts[1], Version: parts[2]}, parts[3:]
	default:
		return t, false
	}
	if parts[0] == "namespaces" && len(parts) >= 3 {
		t.Namespace, parts = parts[1], parts[2:]
	}
	t.Resource = parts[0]
	if len(parts) > 1 {
		t.Name = parts[1]
	}
	if len(parts) > 2 {
		t.More = parts[2]
	}
	return t, true
}

// Serve answers one request, and stores what it writes.
func (s *Server) Serve(r *http.Request, actor string) *http.Response {
	t, ok := Parse(r.URL.Path)
	if !ok {
		return s.discover(r)
	}
	k, ok := s.Find(func(k Kind) bool { return k.GroupVersion() == t.GV && k.Plural == t.Resource })
	if !ok || !s.serves(k) || t.More != "" && t.More != "status" {
		return notServed(r, t.GV.Group)
	}
	q := r.URL.Query()
	dry := q.Get("dryRun") == "All"
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
		_ = r.Body.Close()
	}
	switch r.Method {
	case http.MethodGet:
		return s.read(r, k, t)
	case http.MethodDelete:
		o := metav1.DeleteOptions{}
		_ = json.Unmarshal(body, &o)
		p := At(k, t.Namespace, t.Name)
		live := s.Objects[p]
		u, err := s.Delete(actor, k, p, o, dry || len(o.DryRun) > 0)
		switch {
		case err != nil:
			return AnswerError(r, err)
		case u == nil && slices.Contains([]string{"ServiceAccount", "PersistentVolumeClaim", "Pod"}, k.Kind):
			return answerText(r, http.StatusOK, s.encode(p, live))
		case u != nil:
			return answerText(r, http.StatusOK, s.encode(p, k.as(u)))
		}
		return answerJSON(r, http.StatusOK, metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Success",
			Details: &metav1.StatusDetails{Name: t.Name, Group: k.Group, Kind: k.Plural, UID: live.GetUID()},
		})
	}
	u, created, err := s.write(r, actor, k, t, body, dry)
	if err != nil {
		return AnswerError(r, err)
	}
	code := http.StatusOK
	if created {
		code = http.StatusCreated
	}
	return answerText(r, code, s.encode(At(k, t.Namespace, u.GetName()), u))
}

func (s *Server) write(r *http.Request, actor string, k Kind, t Target, body []byte, dry bool) (*unstructured.Unstructured, bool, error) {
	sent, contentType := &unstructured.Unstructured{}, r.Header.Get("Content-Type")
	if contentType == "application/json-patch+json" {
		sent.Object = map[string]any{}
	} else if err := utiljson.Unmarshal(body, &sent.Object); err != nil { // whole numbers stay whole
		return nil, false, badRequest(err.Error())
	}
	strict := r.URL.Query().Get("fieldValidation") == "Strict"
	if err := s.structureOf(k).strictly(sent, strict && r.Method != http.MethodPatch); err != nil {
		return nil, false, badRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: %v", k.Kind, k.Version, k.Kind, err))
	}
	manager := cmp.Or(r.URL.Query().Get("fieldManager"), actor)
	live := k.as(s.Objects[At(k, t.Namespace, t.Name)])
	if r.Method != http.MethodPatch {
		if err := k.fit(t, sent); err != nil {
			return nil, false, err
		}
	}
	switch {
	case r.Method == http.MethodPut && sent.GetUID() != "" && (live != nil || k.Kind == "Lease") && (live == nil || sent.GetUID() != live.GetUID()):
		is := types.UID("") // a Lease may be created by PUT, but not one that was another
		if live != nil {
			is = live.GetUID()
		}
		return nil, false, apierrors.NewConflict(k.resource(), t.Name, fmt.Errorf("StorageError: invalid object, Code: 4, Key: /%s/%s/%s, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: %v, UID in object meta: %v", k.Plural, t.Namespace, t.Name, sent.GetUID(), is))
	case r.Method == http.MethodPost || r.Method == http.MethodPut && live == nil && k.Kind == "Lease":
		if err := s.terminating(k); err != nil {
			return nil, false, err
		}
		if r.Method == http.MethodPost && sent.GetResourceVersion() != "" {
			return nil, false, badRequest("resourceVersion should not be set on objects to be created")
		}
		internalize(k, sent)
		s.structureOf(k).conform(sent)
		u, _ := s.manager(k).UpdateNoErrors(k.blank(), sent, manager).(*unstructured.Unstructured)
		u, err := s.Create(actor, k, u, dry)
		return u, true, err
	case contentType == "application/apply-patch+yaml":
		return s.apply(actor, manager, k, t, sent, r.URL.Query().Get("force") == "true", dry)
	case live == nil:
		return nil, false, notFound(k, t.Name)
	case r.Method == http.MethodPut:
		u, err := s.Put(actor, cmp.Or(t.More, "update"), manager, k, live, sent, dry)
		return u, false, err
	}
	u := live.DeepCopy()
	if contentType == "application/merge-patch+json" {
		u.Object, _ = merge(u.Object, sent.Object).(map[string]any)
	} else {
		var err error
		if u, err = patched(live, body); err != nil {
			return nil, false, apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", err.Error(), 0, false)
		}
	}
	if err := k.fit(t, u); err != nil {
		return nil, false, err
	}
	if err := s.structureOf(k).strictly(u, strict); err != nil {
		return nil, false, err
	}
	u, err := s.Put(actor, cmp.Or(t.More, "patch"), manager, k, live, u, dry)
	return u, false, err
}

// patched is an object after a JSON patch.
func patched(live *unstructured.Unstructured, patch []byte) (*unstructured.Unstructured, error) {
	operations, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		return nil, err
	}
	before, err := live.MarshalJSON()
	if err != nil {
		return nil, err
	}
	after, err := operations.Apply(before)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{}
	return u, u.UnmarshalJSON(after)
}

// merge is RFC 7386.
func merge(into, patch any) any {
	changes, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	merged, _ := into.(map[string]any)
	merged = maps.Clone(merged)
	if merged == nil {
		merged = map[string]any{}
	}
	for key, value := range changes {
		if value == nil {
			delete(merged, key)
		} else {
			merged[key] = merge(merged[key], value)
		}
	}
	return merged
}

func (s *Server) read(r *http.Request, k Kind, t Target) *http.Response {
	q := r.URL.Query()
	if t.Name != "" {
		p := At(k, t.Namespace, t.Name)
		u := s.Objects[p]
		if u == nil {
			return AnswerError(r, notFound(k, t.Name))
		}
		return answerText(r, http.StatusOK, s.encode(p, k.as(u)))
	}
	if since, ok := s.fresh[k.resource()]; ok && time.Since(since) < 30*time.Millisecond {
		response := AnswerError(r, apierrors.NewTooManyRequests("storage is (re)initializing", 1))
		response.Header.Set("Retry-After", "1")
		return response
	}
	selector, err := labels.Parse(q.Get("labelSelector"))
	if err != nil {
		return AnswerError(r, badRequest(err.Error()))
	}
	w := &watch{kind: k, namespace: t.Namespace, selector: selector, fields: q.Get("fieldSelector")}
	v := s.viewFor(k, q)
	var found []Place
	for _, p := range v.places {
		if p.Group == k.Group && p.Resource == k.Plural && w.matches(p, v.at(p)) {
			found = append(found, p)
		}
	}
	if q.Get("watch") == "true" || q.Get("watch") == "1" {
		return s.watch(r, w, v, found)
	}
	version := map[string]any{"resourceVersion": strconv.Itoa(v.version)}
	first, _ := strconv.Atoi(q.Get("continue"))
	found = found[min(first, len(found)):]
	if limit, _ := strconv.Atoi(q.Get("limit")); limit > 0 && limit < len(found) {
		version["continue"] = strconv.Itoa(first + limit)
		if selector.Empty() && w.fields == "" {
			version["remainingItemCount"] = len(found) - limit
		}
		found = found[:limit]
	}
	list := map[string]any{"apiVersion": k.GroupVersion().String(), "kind": k.Kind + "List", "metadata": version}
	metadata := strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadataList")
	if metadata {
		list["apiVersion"], list["kind"] = "meta.k8s.io/v1", "PartialObjectMetadataList"
	}
	items := make([][]byte, 0, len(found))
	for _, p := range found {
		items = append(items, s.encodeItem(k, p, v.at(p), metadata))
	}
	head, _ := json.Marshal(list)
	return answerText(r, http.StatusOK, slices.Concat(head[:len(head)-1], []byte(`,"items":[`), bytes.Join(items, []byte(",")), []byte("]}")))
}

// view is what the API server that is asked has of a kind. One that is behind says what was
// there, where a request takes any version, or any from one on: what it caches. All others are
// answered as of now.
type view struct {
	server  *Server
	version int
	places  []Place
	was     map[Place]*unstructured.Unstructured // what it does not know yet, as it was before
}

func (s *Server) viewFor(k Kind, q url.Values) *view {
	v := &view{server: s, version: s.version, places: s.Places()}
	since, err := strconv.Atoi(q.Get("resourceVersion"))
	isWatch := q.Has("watch") && q.Get("sendInitialEvents") != "true"
	if s.Lag == 0 || err != nil || isWatch || q.Has("continue") || q.Get("limit") != "" && since > 0 {
		return v
	}
	v.was = map[Place]*unstructured.Unstructured{}
	for i, w := range slices.Backward(s.Log) { // each write is one version
		if i < since || time.Since(w.Time) >= s.Lag {
			break
		}
		if v.version = i; w.Kind == k.GroupKind() {
			v.was[At(k, w.Namespace, w.Name)] = w.Before
		}
	}
	v.places = slices.Clone(v.places)
	for p := range v.was {
		if s.Objects[p] == nil {
			v.places = append(v.places, p)
		}
	}
	slices.SortFunc(v.places, comparePlaces)
	return v
}

func (v *view) at(p Place) *unstructured.Unstructured {
	if was, ok := v.was[p]; ok {
		return was
	}
	return v.server.Objects[p]
}
