package report

import (
	"maps"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/bundle/diff"
	"brine/bundle/redact"
	"brine/inventory"
)

// Values of Secrets are masked in every text that a run shows.

// Secrets are the values of all Secrets of a run: of the bundle, and of every
// live Secret that was read. The Recorder masks them in every text.
type Secrets struct {
	redact.Redactor

	mu sync.Mutex
	// own are the objects whose values a message about one object may quote, by
	// that object's name. Of those, short and common values are masked, too.
	own map[string][]map[string]any
}

// Bundle adds the Secrets of a bundle.
func (s *Secrets) Bundle(objects []*bundle.Object) {
	for _, o := range objects {
		s.Public(o.ID.Name, o.ID.Namespace)
		if redact.Holds(o.Content) {
			s.Add(o.Content.Object)
			s.Quotes(o.ID, o.Content)
		}
	}
}

// Quotes notes that messages about an object may quote values of a Secret: of
// itself, or of one that an apply-time mutation takes a value from.
func (s *Secrets) Quotes(id bundle.ID, secret *unstructured.Unstructured) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.own == nil {
		s.own = map[string][]map[string]any{}
	}
	s.own[bundle.Name(id)] = append(s.own[bundle.Name(id)], secret.Object)
}

// Read adds an object that the client has read.
func (s *Secrets) Read(u *unstructured.Unstructured) {
	if kind, _ := u.Object["type"].(string); kind == "brine.dev/revision" {
		return // a whole bundle, compressed
	}
	if redact.Holds(u) {
		s.Add(u.Object)
	}
}

// message masks values in a message that names its object itself.
func (s *Secrets) message(text string) string {
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

func (s *Secrets) exact(text, name string) string {
	s.mu.Lock()
	own := s.own[name]
	s.mu.Unlock()
	for _, secret := range own {
		text = redact.Exact(text, secret)
	}
	return text
}

// About masks values in a text about the object of a name.
func (s *Secrets) About(name, text string) string {
	if text == "" {
		return ""
	}
	return s.Text(s.exact(text, name))
}

// payload is an event without values of Secrets.
func (s *Secrets) payload(p Payload) Payload {
	about := bundle.ID{}
	if o := (Event{Payload: p}).Object(); o != nil {
		about = o.ID()
	}
	return rewriteAbout(p, about, s.mask)
}

// Result is a result without values of Secrets.
func (s *Secrets) Result(r *Result) *Result { return Rewrite(r, s.mask) }

func (s *Secrets) mask(t Text) string {
	switch {
	case t.Kind == Name:
		return t.Value
	case t.Kind != Message: // its objects are redacted; this is for values that YAML's lines show
		return s.Text(t.Value)
	case t.About == (bundle.ID{}):
		return s.message(t.Value)
	}
	return s.About(bundle.Name(t.About), t.Value)
}

// Diff is what changes between two versions of an object, but for ownership
// metadata.
func (s *Secrets) Diff(before, after *unstructured.Unstructured) diff.Diff {
	return diff.Objects(withoutOwner(before), withoutOwner(after), s.Text)
}

// generation is an annotation that a controller keeps for itself.
const generation = "deprecated.daemonset.template.generation"

// withoutOwner is an object without what says whose it is, and without what the
// server alone writes. It shares everything else.
func withoutOwner(u *unstructured.Unstructured) *unstructured.Unstructured {
	if u == nil {
		return nil
	}
	meta, _ := u.Object["metadata"].(map[string]any)
	meta = maps.Clone(meta)
	for field, names := range map[string][]string{"annotations": {inventory.OwningInventory, generation}, "labels": {inventory.PartOf}} {
		all, ok := meta[field].(map[string]any)
		if !ok {
			continue
		}
		all = maps.Clone(all)
		for _, name := range names {
			delete(all, name)
		}
		if meta[field] = all; len(all) == 0 {
			delete(meta, field)
		}
	}
	shown := &unstructured.Unstructured{Object: maps.Clone(u.Object)}
	if meta != nil {
		shown.Object["metadata"] = meta
	}
	return shown
}
