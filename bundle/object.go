// Package bundle is what a bundle is: the objects that one rendering asks for,
// where each of them stands in the text, and how that text is read.
package bundle

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/cli-utils/pkg/object"
)

// ID names an object on a cluster, whatever version it is written in:
// group, kind, namespace ("" for cluster-scoped objects) and name. It is
// cli-utils' own type, so that an inventory reads the same in both.
type ID = object.ObjMetadata

// Source is where an object stands: the file as the user named it ("-" for
// standard input) and the line, counted from 1, of its document's first field.
// State and SLS are set when the object came from a Salt state.
type Source struct {
	File  string `json:"file"`
	Line  int    `json:"line"`
	State string `json:"state,omitempty"` // Salt's __id__
	SLS   string `json:"sls,omitempty"`   // Salt's __sls__
}

// String is "file:line", the form that editors and people follow, with the
// Salt state behind it when there is one.
func (s Source) String() string {
	if s.File == "" {
		return ""
	}
	at := s.File
	if s.Line > 0 { // 0: the file as a whole
		at = fmt.Sprintf("%s:%d", s.File, s.Line)
	}
	if s.State != "" {
		at += fmt.Sprintf(" (state %q", s.State)
		if s.SLS != "" { // Salt's low data need not tell it
			at += ", sls " + s.SLS
		}
		at += ")"
	}
	return at
}

// Object is one object of a bundle.
type Object struct {
	ID ID
	// GVK is the version the bundle writes; ID.GroupKind is its group and kind.
	GVK schema.GroupVersionKind
	// Content is what is to be sent: no status, no server-set metadata, no
	// namespace on a cluster-scoped object. It is not changed after Resolve.
	Content *unstructured.Unstructured
	Source  Source
	// Requisites are Salt's, resolved to objects of this bundle.
	Requisites []Requisite

	doc      *document // where it was read, for Line
	row, col int       // its position in doc
	needs    []need    // Salt's requisites until Resolve has settled identities
}

// need is a Requisite whose object has no settled identity yet.
type need struct {
	on  *Object
	why string
}

// Requisite is an explicit dependency that did not come from an annotation:
// this object needs On first. Why reads like "require: Create settings".
type Requisite struct {
	On  ID
	Why string
}

// Absent is an object that the bundle wants gone (Salt's object_absent).
type Absent struct {
	ID     ID
	GVK    schema.GroupVersionKind
	Source Source
}

// Bundle is all that one run was given, in the order of the text.
type Bundle struct {
	Objects []*Object
	Absent  []*Absent
	// Digest is "sha256:<hex>" over the objects' content in canonical order,
	// so two renderings that ask for the same have the same digest.
	Digest string
	// Warnings are for people; none of them stops a run.
	Warnings []Problem
	// Invalid is what was wrong with objects that were left out of Objects,
	// where that was asked for (Options.SkipInvalid, Skip).
	Invalid []Problem
	keyed   []keyedDigest

	// Partial: some of it could not be read (Options.Partial), so what is not
	// here may be there all the same.
	Partial bool
}

// Problem is one thing wrong (or, as a warning, odd) with a bundle. All
// problems of a bundle are found and told at once.
type Problem struct {
	Source Source
	ID     ID     // of the object, as far as it is known
	Path   string // of the field, like "spec.template.spec.containers[0].image"
	// Message says what is wrong and what to do about it.
	Message string
}

// Error is one line: "file:line: kind namespace/name: path: message".
func (p Problem) Error() string {
	s := p.Source.String()
	if p.ID != (ID{}) {
		s = join(s, Name(p.ID))
	}
	return join(join(s, p.Path), p.Message)
}

func join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + ": " + b
}

// Name is how messages name an object: "Deployment.apps ns/name",
// "Namespace name". It is unique, short, and what kubectl understands. What has
// no name (yet) is "ConfigMap (no name)".
func Name(id ID) string {
	kind, name := id.GroupKind.Kind, cmp.Or(id.Name, "(no name)")
	if id.GroupKind.Group != "" {
		kind += "." + id.GroupKind.Group
	}
	if id.Namespace != "" {
		name = id.Namespace + "/" + name
	}
	return strings.TrimPrefix(kind+" "+name, " ")
}
