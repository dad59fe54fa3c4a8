// Package fields leaves single fields of objects to others. The bundle's objects,
// the user's rules and a live object come in; what is sent of an object, what its
// fingerprint covers, and which fields the bundle itself leaves to a controller go
// out. It does no I/O.
package fields

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"brine/bundle"
	"brine/inventory"
)

// Pointer is a JSON pointer (RFC 6901) to a field, by its unescaped tokens. The
// token "*" stands for every key of a map, or every element of a list. A number
// is an element of the bundle's list.
type Pointer []string

// Pointers are the fields of one object that are left to others.
type Pointers []Pointer

const anyToken = "*"

var (
	escape   = strings.NewReplacer("~", "~0", "/", "~1")
	unescape = strings.NewReplacer("~1", "/", "~0", "~")
)

func (p Pointer) String() string {
	var text strings.Builder
	for _, token := range p {
		text.WriteByte('/')
		text.WriteString(escape.Replace(token))
	}
	return text.String()
}

// MarshalText makes it a string in JSON.
func (p Pointer) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText is Parse.
func (p *Pointer) UnmarshalText(text []byte) (err error) {
	*p, err = Parse(string(text))
	return err
}

// path is the field as messages name it: spec.replicas, webhooks[*].clientConfig.
func (p Pointer) path() string {
	var path bundle.Path
	for _, token := range p {
		path = path.Field(token)
	}
	return strings.ReplaceAll(path.String(), ".*", "[*]")
}

// reserved are fields that brine has to send: without them the server would not
// know the object, or nobody whose it is.
var reserved = []struct {
	field Pointer
	why   string
}{
	{Pointer{"apiVersion"}, "identifies the object"},
	{Pointer{"kind"}, "identifies the object"},
	{Pointer{"metadata", "name"}, "identifies the object"},
	{Pointer{"metadata", "namespace"}, "identifies the object"},
	{Pointer{"metadata", "annotations", inventory.OwningInventory}, "marks the object as a member of its inventory"},
	{Pointer{"metadata", "labels", inventory.PartOf}, "marks the object as a member of its inventory"},
	{Pointer{"metadata", "annotations", bundle.IgnoreFields}, "is this very annotation"},
}

// Parse reads a pointer, and refuses those to fields that brine has to send.
func Parse(text string) (Pointer, error) {
	if text == "" {
		return nil, errors.New("the pointer is empty: it would mean the whole object")
	}
	if text[0] != '/' {
		return nil, fmt.Errorf("%q is not a JSON pointer: it must begin with /, like /spec/replicas", text)
	}
	var p Pointer
	for token := range strings.SplitSeq(text[1:], "/") {
		switch {
		case token == "":
			return nil, fmt.Errorf("%q is not a JSON pointer to a field: a part of it is empty", text)
		case strings.Contains(token, anyToken) && token != anyToken:
			return nil, fmt.Errorf("%q: * stands for a whole key or element, and not for a part of one", text)
		case strings.Contains(unescape.Replace(strings.NewReplacer("~0", "", "~1", "").Replace(token)), "~"):
			return nil, fmt.Errorf("%q is not a JSON pointer: ~ is written ~0, and / in a key ~1", text)
		}
		p = append(p, unescape.Replace(token))
	}
	for _, r := range reserved {
		if p.contains(r.field) {
			what := text + " cannot be ignored: it"
			if len(p) < len(r.field) || slices.Contains(p, anyToken) {
				what = fmt.Sprintf("%s cannot be ignored: it contains %s, which", text, r.field)
			}
			return nil, fmt.Errorf("%s %s", what, r.why)
		}
	}
	return p, nil
}

// contains says whether a pointer is to a field, or to what the field is in.
func (p Pointer) contains(field Pointer) bool {
	if len(p) > len(field) {
		return false
	}
	for i, token := range p {
		if token != anyToken && token != field[i] {
			return false
		}
	}
	return true
}

// List reads pointers that are separated by commas, as in an annotation.
func List(text string) (Pointers, error) {
	var all Pointers
	for one := range strings.SplitSeq(text, ",") {
		p, err := Parse(strings.TrimSpace(one))
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// Check finds what is wrong with the annotation of an object.
func Check(o *bundle.Object) []bundle.Problem {
	text, ok := o.Content.GetAnnotations()[bundle.IgnoreFields]
	if !ok {
		return nil
	}
	if _, err := List(text); err != nil {
		return []bundle.Problem{o.Problem("metadata.annotations["+bundle.IgnoreFields+"]", err.Error())}
	}
	return nil
}

// matches says whether a token stands for a key.
func matches(token, key string) bool { return token == anyToken || token == key }
