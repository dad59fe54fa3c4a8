package report

import (
	"reflect"
	"sync"

	"brine/bundle"
)

// Every text of a Result or an Event can be rewritten, by the types alone.

// Text is one text of a Result or an Event, with what decides how it is rewritten.
type Text struct {
	Kind TextKind
	// About is the object that the text is about, zero where there is none, or several.
	About bundle.ID
	Value string
}

// TextKind is what a text is. A field's tag says it: `text:"name"`.
type TextKind string

// The kinds of texts.
const (
	// Message is a sentence of brine, a server or a controller. It may have several lines.
	Message TextKind = ""
	// Name is of an object, a file or a server, or a word of brine. It is no value of a Secret.
	Name TextKind = "name"
	// Field is the path of a field within an object.
	Field TextKind = "field"
	// Content is what an object holds.
	Content TextKind = "content"
)

// Rewrite is v (a Result, a Payload, or a part of one) with every text in it rewritten. The
// types alone say where texts are, so that a new field cannot be forgotten. v stays as it
// is; what does not change is shared with it.
func Rewrite[T any](v T, rewrite func(Text) string) T {
	return rewriteAbout(v, bundle.ID{}, rewrite)
}

func rewriteAbout[T any](v T, about bundle.ID, rewrite func(Text) string) T {
	out := reflect.ValueOf(&v).Elem()
	if changed, ok := rewriter(rewrite).value(out, Text{About: about}); ok {
		out.Set(changed)
	}
	return v
}

// rewriter's methods return the rewritten value, and whether it is another.
type rewriter func(Text) string

func (r rewriter) value(v reflect.Value, t Text) (reflect.Value, bool) {
	switch v.Kind() {
	case reflect.String:
		t.Value = v.String()
		if t.Value == "" || v.Type() != reflect.TypeFor[string]() {
			return v, false
		}
		text := r(t)
		if text == t.Value {
			return v, false
		}
		return reflect.ValueOf(text), true
	case reflect.Pointer:
		if v.IsNil() {
			return v, false
		}
		element, ok := r.value(v.Elem(), t)
		if ok {
			v = reflect.New(element.Type())
			v.Elem().Set(element)
		}
		return v, ok
	case reflect.Interface:
		if v.IsNil() {
			return v, false
		}
		return r.value(v.Elem(), t)
	case reflect.Slice:
		return r.slice(v, t)
	case reflect.Map:
		return r.keyed(v, t)
	case reflect.Struct:
		return r.fields(v, t)
	default:
		return v, false
	}
}

func (r rewriter) slice(v reflect.Value, t Text) (_ reflect.Value, copied bool) {
	if !holdsText(v.Type().Elem()) {
		return v, false
	}
	for i := range v.Len() {
		element, ok := r.value(v.Index(i), t)
		if ok && !copied {
			c := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
			reflect.Copy(c, v)
			v, copied = c, true
		}
		if ok {
			v.Index(i).Set(element)
		}
	}
	return v, copied
}

func (r rewriter) keyed(v reflect.Value, t Text) (reflect.Value, bool) {
	out, changed := reflect.MakeMapWithSize(v.Type(), v.Len()), false
	for key, element := range v.Seq2() {
		key, other := r.value(key, t)
		element, ok := r.value(element, t)
		out.SetMapIndex(key, element)
		changed = changed || other || ok
	}
	if !changed {
		return v, false
	}
	return out, true
}

func (r rewriter) fields(v reflect.Value, t Text) (_ reflect.Value, copied bool) {
	texts := textsOf(v.Type())
	if texts.identified {
		at := v
		if !v.CanAddr() {
			at = reflect.New(v.Type()).Elem()
			at.Set(v)
		}
		if object, ok := reflect.TypeAssert[identified](at.Addr()); ok {
			t.About = object.ID()
		}
	}
	for _, f := range texts.fields {
		within := t
		if f.kind != Message {
			within.Kind = f.kind
		}
		field, ok := r.value(v.Field(f.index), within)
		if ok && !copied {
			c := reflect.New(v.Type()).Elem()
			c.Set(v)
			v, copied = c, true
		}
		if ok {
			v.Field(f.index).Set(field)
		}
	}
	return v, copied
}

// identified is what is one object, or stands for one.
type identified interface{ ID() bundle.ID }

// texts are the fields of a type of structs that hold texts.
type texts struct {
	identified bool
	fields     []textField
}

type textField struct {
	index int
	kind  TextKind
}

var textsOfTypes sync.Map // of reflect.Type to texts

func textsOf(t reflect.Type) texts {
	if known, ok := textsOfTypes.Load(t); ok {
		found, _ := known.(texts)
		return found
	}
	found := texts{identified: reflect.PointerTo(t).Implements(reflect.TypeFor[identified]())}
	for i := range t.NumField() {
		if f := t.Field(i); f.IsExported() && holdsText(f.Type) {
			found.fields = append(found.fields, textField{i, TextKind(f.Tag.Get("text"))})
		}
	}
	textsOfTypes.Store(t, found)
	return found
}

// holdsText says whether values of a type may hold texts. Types of strings with a name have
// brine's own words.
func holdsText(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Interface, reflect.Struct, reflect.Pointer, reflect.Slice, reflect.Map:
		return true
	default:
		return t == reflect.TypeFor[string]()
	}
}
