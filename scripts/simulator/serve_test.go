package simulator

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// stream is the body of a watch.
type stream struct {
	mu     sync.Mutex
	text   []byte
	closed bool
	more   chan struct{}
	done   <-chan struct{} // of the request
}

func (s *stream) write(text []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.text = append(s.text, text...)
	select {
	case s.more <- struct{}{}:
	default:
	}
}

func (s *stream) cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.closed = true
		close(s.more)
	}
}

func (s *stream) Read(into []byte) (int, error) {
	for {
		s.mu.Lock()
		n, closed := copy(into, s.text), s.closed
		s.text = s.text[n:]
		s.mu.Unlock()
		switch {
		case n > 0:
			return n, nil
		case closed:
			return 0, io.EOF
		}
		select {
		case <-s.more:
		case <-s.done:
			return 0, io.ErrUnexpectedEOF
		}
	}
}

func (s *stream) Close() error {
	s.cut()
	return nil
}

// target is what a path names.
type target struct {
	gv                              schema.GroupVersion
	resource, namespace, name, more string
}

func parse(path string) (t target, ok bool) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case len(parts) >= 3 && parts[0] == "api":
		t.gv, parts = schema.GroupVersion{Version: parts[1]}, parts[2:]
	case len(parts) >= 4 && parts[0] == "apis":
		t.gv, parts = schema.GroupVersion{Group: parts[1], Version: parts[2]}, parts[3:]
	default:
		return t, false
	}
	if parts[0] == "namespaces" && len(parts) >= 3 {
		t.namespace, parts = parts[1], parts[2:]
	}
	t.resource = parts[0]
	if len(parts) > 1 {
		t.name = parts[1]
	}
	if len(parts) > 2 {
		t.more = parts[2]
	}
	return t, true
}

// notServed is how a server answers for what it does not serve.
func notServed(r *http.Request) *http.Response {
	return answer(r, http.StatusNotFound, "text/plain; charset=utf-8", io.NopCloser(strings.NewReader("404 page not found\n")))
}

// serve answers one request, and stores what it writes.
func (s *apiServer) serve(r *http.Request, actor string) *http.Response {
	t, ok := parse(r.URL.Path)
	if !ok {
		return s.discover(r)
	}
	k, ok := s.find(func(k kind) bool { return k.GroupVersion() == t.gv && k.plural == t.resource })
	if !ok || t.more != "" && t.more != "status" {
		return notServed(r)
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
		u, err := s.delete(actor, k, at(k, t.namespace, t.name), o, dry || len(o.DryRun) > 0)
		switch {
		case err != nil:
			return answerError(r, err)
		case u != nil:
			return answerJSON(r, http.StatusOK, u.Object)
		}
		return answerJSON(r, http.StatusOK, metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Success"})
	}
	u, created, err := s.write(r, actor, k, t, body, dry)
	if err != nil {
		return answerError(r, err)
	}
	code := http.StatusOK
	if created {
		code = http.StatusCreated
	}
	return answerJSON(r, code, u.Object)
}

func (s *apiServer) write(r *http.Request, actor string, k kind, t target, body []byte, dry bool) (*unstructured.Unstructured, bool, error) {
	sent, contentType := &unstructured.Unstructured{}, r.Header.Get("Content-Type")
	if contentType == "application/json-patch+json" {
		sent.Object = map[string]any{}
	} else if err := utiljson.Unmarshal(body, &sent.Object); err != nil { // whole numbers stay whole
		return nil, false, badRequest(err.Error())
	}
	manager := r.URL.Query().Get("fieldManager")
	if manager == "" {
		manager = actor
	}
	if k.namespaced && sent.GetNamespace() == "" && r.Method != http.MethodPatch {
		sent.SetNamespace(t.namespace)
	}
	live := s.objects[at(k, t.namespace, t.name)]
	switch {
	case r.Method == http.MethodPost || r.Method == http.MethodPut && live == nil && k.Kind == "Lease":
		if sent.GetUID() != "" && r.Method == http.MethodPut { // a Lease may be created by PUT, but not one that was another
			return nil, false, apierrors.NewConflict(k.resource(), t.name, fmt.Errorf("Precondition failed: UID in precondition: %v, UID in object meta: ", sent.GetUID()))
		}
		if crd := s.defining(k); crd != nil && crd.GetDeletionTimestamp() != nil {
			err := apierrors.NewMethodNotSupported(k.resource(), "create")
			err.ErrStatus.Message = "create not allowed while custom resource definition is terminating"
			return nil, false, err
		}
		base := object(k.GroupVersionKind, sent.GetNamespace(), sent.GetName())
		tracked, err := s.manager(k.GroupVersionKind).Update(base, sent, manager)
		if err != nil {
			return nil, false, err
		}
		u, err := s.create(actor, k, tracked.(*unstructured.Unstructured), dry)
		return u, true, err
	case contentType == "application/apply-patch+yaml":
		if k.namespaced && sent.GetNamespace() == "" {
			sent.SetNamespace(t.namespace)
		}
		return s.apply(actor, manager, k, sent, r.URL.Query().Get("force") == "true", dry)
	case live == nil:
		return nil, false, notFound(k, t.name)
	case r.Method == http.MethodPut:
		u, err := s.put(actor, cmp.Or(t.more, "update"), manager, k, live, sent, dry)
		return u, false, err
	case contentType == "application/merge-patch+json":
		u := live.DeepCopy()
		u.Object, _ = merge(u.Object, sent.Object).(map[string]any)
		u, err := s.put(actor, cmp.Or(t.more, "patch"), manager, k, live, u, dry)
		return u, false, err
	}
	u, err := patched(live, body)
	if err != nil {
		return nil, false, apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, r.Method, k.resource(), t.name, err.Error(), 0, false)
	}
	u, err = s.put(actor, cmp.Or(t.more, "patch"), manager, k, live, u, dry)
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

func (s *apiServer) read(r *http.Request, k kind, t target) *http.Response {
	q := r.URL.Query()
	if t.name != "" {
		u := s.objects[at(k, t.namespace, t.name)]
		if u == nil {
			return answerError(r, notFound(k, t.name))
		}
		return answerJSON(r, http.StatusOK, u.Object)
	}
	if since, ok := s.fresh[k.resource()]; ok && time.Since(since) < 30*time.Millisecond {
		response := answerError(r, apierrors.NewTooManyRequests("storage is (re)initializing", 1))
		response.Header.Set("Retry-After", "1")
		return response
	}
	selector, err := labels.Parse(q.Get("labelSelector"))
	if err != nil {
		return answerError(r, badRequest(err.Error()))
	}
	w := &watch{kind: k, namespace: t.namespace, selector: selector, fields: q.Get("fieldSelector")}
	var found []any
	for _, p := range s.places() {
		if u := s.objects[p]; p.group == k.Group && p.resource == k.plural && w.matches(p, u) {
			found = append(found, u.Object)
		}
	}
	if q.Get("watch") == "true" || q.Get("watch") == "1" {
		return s.watch(r, w, found)
	}
	version := map[string]any{"resourceVersion": strconv.Itoa(s.version)}
	if strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadataList") {
		items := make([]any, 0, len(found))
		for _, o := range found {
			items = append(items, map[string]any{"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": o.(map[string]any)["metadata"]})
		}
		return answerJSON(r, http.StatusOK, map[string]any{"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadataList", "metadata": version, "items": items})
	}
	if found == nil {
		found = []any{}
	}
	return answerJSON(r, http.StatusOK, map[string]any{"apiVersion": k.GroupVersion().String(), "kind": k.Kind + "List", "metadata": version, "items": found})
}

func (s *apiServer) watch(r *http.Request, w *watch, found []any) *http.Response {
	q := r.URL.Query()
	w.body = &stream{more: make(chan struct{}, 1), done: r.Context().Done()}
	if q.Get("sendInitialEvents") == "true" {
		for _, o := range found {
			w.send("ADDED", &unstructured.Unstructured{Object: o.(map[string]any)})
		}
		end := object(w.kind.GroupVersionKind, "", "")
		unstructured.RemoveNestedField(end.Object, "metadata", "name")
		end.SetResourceVersion(strconv.Itoa(s.version))
		end.SetAnnotations(map[string]string{"k8s.io/initial-events-end": "true"})
		w.send("BOOKMARK", end)
	} else if since, _ := strconv.Atoi(q.Get("resourceVersion")); since < s.version {
		s.catchUp(w, since)
	}
	s.watches = append(s.watches, w)
	return answer(r, http.StatusOK, "application/json", w.body)
}

// catchUp sends what was written since a version.
func (s *apiServer) catchUp(w *watch, since int) {
	for i, entry := range s.log {
		if version := i + 1; version > since { // each write is one version
			k, ok := s.find(func(k kind) bool { return k.GroupKind() == entry.Kind })
			if ok {
				w.tell(k, at(k, entry.Namespace, entry.Name), entry.Before, entry.After, version)
			}
		}
	}
}

// discover answers for what is served.
func (s *apiServer) discover(r *http.Request) *http.Response {
	path := strings.Trim(r.URL.Path, "/")
	aggregated := strings.Contains(r.Header.Get("Accept"), "as=APIGroupDiscoveryList")
	switch {
	case path == "version":
		return answerJSON(r, http.StatusOK, map[string]any{"major": "1", "minor": "37", "gitVersion": "v1.37.1"})
	case (path == "api" || path == "apis") && aggregated:
		groups := map[string]map[string][]any{} // by group and version
		for _, k := range s.kinds {
			if (k.Group == "") == (path == "api") {
				scope := "Cluster"
				if k.namespaced {
					scope = "Namespaced"
				}
				if groups[k.Group] == nil {
					groups[k.Group] = map[string][]any{}
				}
				groups[k.Group][k.Version] = append(groups[k.Group][k.Version], map[string]any{
					"resource": k.plural, "responseKind": map[string]any{"group": k.Group, "version": k.Version, "kind": k.Kind}, "scope": scope,
					"singularResource": strings.ToLower(k.Kind), "verbs": verbs,
				})
			}
		}
		var items []any
		for _, group := range slices.Sorted(maps.Keys(groups)) {
			var versions []any
			for _, version := range slices.Backward(slices.Sorted(maps.Keys(groups[group]))) {
				versions = append(versions, map[string]any{"version": version, "freshness": "Current", "resources": groups[group][version]})
			}
			items = append(items, map[string]any{"metadata": map[string]any{"name": group}, "versions": versions})
		}
		response := answerJSON(r, http.StatusOK, map[string]any{"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": map[string]any{}, "items": items})
		response.Header.Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
		return response
	}
	return s.groupVersion(r, path)
}

var verbs = []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}

func (s *apiServer) groupVersion(r *http.Request, path string) *http.Response {
	gv, ok := strings.CutPrefix(path, "apis/")
	if !ok {
		gv, _ = strings.CutPrefix(path, "api/")
	}
	list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: gv}
	for _, k := range s.kinds {
		if k.GroupVersion().String() == gv {
			list.APIResources = append(list.APIResources, metav1.APIResource{Name: k.plural, Kind: k.Kind, Namespaced: k.namespaced, Verbs: verbs})
		}
	}
	if len(list.APIResources) == 0 {
		return notServed(r)
	}
	return answerJSON(r, http.StatusOK, list)
}

func (s *stream) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}
