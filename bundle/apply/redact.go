package apply

import (
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/bundle/diff"
	"brine/bundle/redact"
)

// secrets are the values of all Secrets of a run: of the bundle, and of every
// live Secret that was read. The recorder takes them out of all that is said.
type secrets struct {
	redact.Redactor

	mu sync.Mutex
	// own are the objects whose values a message about one object may quote, by
	// that object's name. Of those, short and common values are masked, too.
	own map[string][]map[string]any
}

// bundle takes the Secrets of a bundle.
func (s *secrets) bundle(objects []*bundle.Object) {
	for _, o := range objects {
		s.Public(o.ID.Name, o.ID.Namespace)
		if redact.Holds(o.Content) {
			s.Add(o.Content.Object)
			s.quotes(o.ID, o.Content)
		}
	}
}

// quotes notes that messages about an object may quote values of a Secret: of
// itself, or of one that an apply-time mutation takes a value from.
func (s *secrets) quotes(id bundle.ID, secret *unstructured.Unstructured) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.own == nil {
		s.own = map[string][]map[string]any{}
	}
	s.own[bundle.Name(id)] = append(s.own[bundle.Name(id)], secret.Object)
}

// read takes what the client has read.
func (s *secrets) read(u *unstructured.Unstructured) {
	if kind, _ := u.Object["type"].(string); kind == "brine.dev/revision" {
		return // a whole bundle, compressed
	}
	if redact.Holds(u) {
		s.Add(u.Object)
	}
}

// message is a message without values; whom it is about, it says itself.
func (s *secrets) message(text string) string {
	if text == "" {
		return ""
	}
	s.mu.Lock()
	known := len(s.own) > 0
	s.mu.Unlock()
	kind := ""
	for word := range strings.FieldsSeq(text) {
		if !known {
			break
		}
		text = s.exact(text, kind+" "+strings.TrimRight(word, ":;,.)"))
		kind = strings.TrimLeft(word, "(")
	}
	return s.Text(text)
}

func (s *secrets) exact(text, name string) string {
	s.mu.Lock()
	own := s.own[name]
	s.mu.Unlock()
	for _, secret := range own {
		text = redact.Exact(text, secret)
	}
	return text
}

// object takes values out of all texts of a result.
func (s *secrets) object(o *ObjectResult) {
	name := bundle.Name(o.ID())
	for _, text := range []*string{&o.Reason, &o.Error, &o.Verified} {
		*text = s.about(name, *text)
	}
	for i := range o.Why {
		o.Why[i] = s.about(name, o.Why[i])
	}
	o.Diff = s.Text(o.Diff) // its objects are redacted; this is for values that YAML's lines show
}

func (s *secrets) about(name, text string) string {
	if text == "" {
		return ""
	}
	return s.Text(s.exact(text, name))
}

// event takes values out of all texts of an event.
func (s *secrets) event(e *Event) {
	name := ""
	if e.Object != nil {
		s.object(e.Object)
		name = bundle.Name(e.Object.ID())
	}
	e.Reason, e.Error, e.Message = s.about(name, e.Reason), s.about(name, e.Error), s.message(e.Message)
	for i, p := range e.Pending {
		e.Pending[i].Reason = s.about(bundle.Name(p.ID), p.Reason)
	}
	if e.Result == nil {
		return
	}
	for _, list := range [][]string{e.Result.Errors, e.Result.Warnings, e.Result.MissingRights} {
		for i := range list {
			list[i] = s.message(list[i])
		}
	}
	for _, o := range e.Result.Objects {
		s.object(o)
	}
}

// differ is what changes between two versions of an object.
func (s *secrets) differ(before, after *unstructured.Unstructured) diff.Diff {
	return diff.Objects(before, after, diff.Options{Redact: s.Text})
}
