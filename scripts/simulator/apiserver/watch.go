package apiserver

import (
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Watches: what they say, late and twice, and their ends.

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
	before, after = w.kind.as(before), w.kind.as(after)
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

func (s *Server) watch(r *http.Request, w *watch, v *view, found []Place) *http.Response {
	q := r.URL.Query()
	if s.Old && q.Has("sendInitialEvents") {
		wrong := field.ErrorList{field.Forbidden(field.NewPath("sendInitialEvents"), "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled")}
		return AnswerError(r, apierrors.NewInvalid(schema.GroupKind{Group: "meta.k8s.io", Kind: "ListOptions"}, "", wrong))
	}
	w.body = &stream{more: make(chan struct{}, 1), done: r.Context().Done()}
	if q.Get("sendInitialEvents") == "true" {
		for _, p := range found {
			w.send("ADDED", s.encode(p, w.kind.as(v.at(p))))
		}
		end := object(w.kind.GroupVersionKind, "", "")
		unstructured.RemoveNestedField(end.Object, "metadata", "name")
		end.SetResourceVersion(strconv.Itoa(v.version))
		end.SetAnnotations(map[string]string{"k8s.io/initial-events-end": "true"})
		text, _ := json.Marshal(end.Object)
		w.send("BOOKMARK", text)
		w.lag, w.twice = s.Lag, s.Twice
		s.catchUp(w, v.version)
	} else if since, _ := strconv.Atoi(q.Get("resourceVersion")); since < s.version {
		w.lag, w.twice = s.Lag, s.Twice
		s.catchUp(w, since)
	}
	w.lag, w.twice = s.Lag, s.Twice
	s.watches = append(s.watches, w)
	return Answer(r, http.StatusOK, "application/json", w.body)
}

// catchUp sends what was written since a version.
func (s *Server) catchUp(w *watch, since int) {
	since = min(since, len(s.Log))
	for i, entry := range s.Log[since:] { // each write is one version
		k, ok := s.Find(func(k Kind) bool { return k.GroupKind() == entry.Kind })
		if ok {
			s.tell(w, k, At(k, entry.Namespace, entry.Name), entry.Before, entry.After, since+i+1)
		}
	}
}

func (s *stream) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// CutWatches ends all watches, with an error that they are too old, or without one.
func (s *Server) CutWatches(tooOld bool) {
	for _, w := range s.watches {
		if tooOld {
			status := apierrors.NewResourceExpired("too old resource version").ErrStatus
			status.APIVersion, status.Kind = "v1", "Status"
			text, _ := json.Marshal(map[string]any{"type": "ERROR", "object": status})
			w.body.write(append(text, '\n'))
		}
		w.body.cut()
	}
	s.watches = nil
}
