package report

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/bundle/diff"
	"brine/bundle/redact"
	"brine/inventory"
)

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

// object masks values in all texts of an object's result.
func (s *Secrets) object(o *ObjectResult) {
	name := bundle.Name(o.ID())
	for _, text := range []*string{&o.Reason, &o.Error, &o.Verified} {
		*text = s.About(name, *text)
	}
	for i := range o.Why {
		o.Why[i] = s.About(name, o.Why[i])
	}
	for i := range o.Waits {
		o.Waits[i].Reason = s.About(name, o.Waits[i].Reason)
	}
	o.Diff = s.Text(o.Diff) // its objects are redacted; this is for values that YAML's lines show
}

// About masks values in a text about the object of a name.
func (s *Secrets) About(name, text string) string {
	if text == "" {
		return ""
	}
	return s.Text(s.exact(text, name))
}

// payload masks values in all texts of an event.
func (s *Secrets) payload(p Payload) Payload {
	name := ""
	if o := (Event{Payload: p}).Object(); o != nil {
		s.object(o)
		name = bundle.Name(o.ID())
	}
	switch p := p.(type) {
	case Retrying:
		p.Error = s.About(name, p.Error)
		return p
	case Waiting:
		p.Reason = s.About(name, p.Reason)
		return p
	case NotReady:
		p.Reason = s.About(name, p.Reason)
		return p
	case Warning:
		p.Message = s.message(p.Message)
		return p
	case Heartbeat:
		for i, pending := range p.Pending {
			p.Pending[i].Reason = s.About(bundle.Name(pending.ID), pending.Reason)
		}
	case Started:
		s.Result(p.Result)
	case Finished:
		s.Result(p.Result)
	}
	return p
}

// Result masks values in all texts of a result.
func (s *Secrets) Result(r *Result) {
	if r == nil {
		return
	}
	for _, list := range [][]string{r.Errors, r.Warnings, r.MissingRights} {
		for i := range list {
			list[i] = s.message(list[i])
		}
	}
	for _, o := range slices.Concat(r.Objects, r.Outside) {
		s.object(o)
	}
	if p := r.CriticalPath; p != nil {
		for i := range p.Steps {
			p.Steps[i].Reason = s.About(bundle.Name(p.Steps[i].ID()), p.Steps[i].Reason)
		}
	}
	r.Review = r.Review.Rewrite(s.Text)
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
