// Package bundle is the data that the other packages work on: the objects of one
// run with their place in the text, problems with them, the annotations and kinds
// that brine knows, and what a CustomResourceDefinition defines. It reads nothing
// (bundle/read does) and imports no other package of brine.
package bundle

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/cli-utils/pkg/object"
)

// ID names an object on a cluster, whatever version it is written in:
// group, kind, namespace ("" for cluster-scoped objects) and name. It is
// cli-utils' own type, so that an inventory reads the same in both.
type ID = object.ObjMetadata

// Source is the place of an object: the file as the user named it ("-" for
// standard input) and the line, counted from 1, of its document's first field.
// State and SLS are set when the object came from a Salt state.
type Source struct {
	File  string `json:"file" text:"name"`
	Line  int    `json:"line"`
	State string `json:"state,omitempty" text:"name"` // Salt's __id__
	SLS   string `json:"sls,omitempty" text:"name"`   // Salt's __sls__
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
		if s.SLS != "" { // low data may lack it
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
	// Content is what is sent to the server: no status, no server-set metadata, no
	// namespace on a cluster-scoped object. It is not changed after Resolve.
	Content *unstructured.Unstructured
	Source  Source
	// Requisites are Salt's, resolved to objects of this bundle.
	Requisites []Requisite
	// Unplaced: the bundle names no namespace; ID has the one that the run was given.
	Unplaced bool
	// FieldLine finds the line of a field in Source.File. It is nil where the
	// object was not read from text.
	FieldLine func(path string) int
}

// Line is the line, in o's source, of the field at path as Kubernetes writes
// it (spec.containers[0].image, metadata.annotations[foo.bar/x], also
// spec.containers[name="x"].image), or of the nearest field around it.
func (o *Object) Line(path string) int {
	if o.FieldLine == nil || path == "" {
		return o.Source.Line
	}
	return o.FieldLine(path)
}

// Problem is a problem with the field of o at path, "" for all of o.
func (o *Object) Problem(path, message string) Problem {
	at := o.Source
	at.Line = o.Line(path)
	return Problem{Source: at, ID: o.ID, Path: path, Message: InWords(message)}
}

// Requisite is an explicit dependency that did not come from an annotation:
// this object needs On first. Reason reads like "require: Create settings".
type Requisite struct {
	On     ID
	Reason string
	// Object is the object of On, where the bundle was read from text: its
	// identity is settled by read.Resolve only, which sets On.
	Object *Object
}

// Absent is an object that the bundle deletes (Salt's object_absent).
type Absent struct {
	ID     ID
	GVK    schema.GroupVersionKind
	Source Source
	// Unplaced: the bundle names no namespace; ID has the one that the run was given.
	Unplaced bool
}

// Bundle is the input of one run, in the order of the text.
type Bundle struct {
	Objects []*Object
	Absent  []*Absent
	// Digest is "sha256:<hex>" over the objects' content in canonical order,
	// so two renderings that ask for the same have the same digest.
	Digest string
	// Warnings are for people; none of them stops a run.
	Warnings []Problem
	// Invalid is what was wrong with objects that were left out of Objects,
	// where that was asked for (read.Options.SkipInvalid, Skip).
	Invalid []Problem
	// Partial: some of it could not be read (read.Options.Partial), so objects that
	// are missing here may still be in the text.
	Partial bool
	// Rendering is nil where Salt did not say what it rendered the bundle from.
	Rendering *Rendering

	secretDigests []secretDigest
}

// IDOf is the ID of an object as it stands in u.
func IDOf(u *unstructured.Unstructured) ID {
	return ID{GroupKind: u.GroupVersionKind().GroupKind(), Namespace: u.GetNamespace(), Name: u.GetName()}
}

// Names says whether the bundle contains an object, or names it as absent.
func (b *Bundle) Names(id ID) bool {
	return slices.ContainsFunc(b.Objects, func(o *Object) bool { return o.ID == id }) ||
		slices.ContainsFunc(b.Absent, func(a *Absent) bool { return a.ID == id })
}

// Reference is an ID as documents write it.
type Reference struct {
	Group     string `json:"group" text:"name"`
	Kind      string `json:"kind" text:"name"`
	Namespace string `json:"namespace,omitempty" text:"name"`
	Name      string `json:"name" text:"name"`
}

// ReferTo is the reference to an object.
func ReferTo(id ID) Reference {
	return Reference{id.GroupKind.Group, id.GroupKind.Kind, id.Namespace, id.Name}
}

// ID is which object is meant.
func (r Reference) ID() ID {
	return ID{GroupKind: schema.GroupKind{Group: r.Group, Kind: r.Kind}, Namespace: r.Namespace, Name: r.Name}
}

// FullReference is a Reference that has its namespace also where that is "".
type FullReference struct {
	Group     string `json:"group"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// ReferFullyTo is the full reference to an object.
func ReferFullyTo(id ID) FullReference { return FullReference(ReferTo(id)) }

// ID is which object is meant.
func (r FullReference) ID() ID { return Reference(r).ID() }

// CompareIDs is the one order of IDs: by namespace, name, group and kind.
func CompareIDs(a, b ID) int { return strings.Compare(a.String(), b.String()) }

// SortedIDs are the keys of a map in that order.
func SortedIDs[V any](m map[ID]V) []ID {
	texts := make(map[string]ID, len(m))
	for id := range m {
		texts[id.String()+" "+id.Name] = id // RBAC's a:b and a__b are one text
	}
	return Each(slices.Sorted(maps.Keys(texts)), func(text string) ID { return texts[text] })
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

// V1 is an object of version v1 with these fields. It takes them over.
func V1(id ID, fields map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: fields}
	u.SetGroupVersionKind(id.GroupKind.WithVersion("v1"))
	u.SetNamespace(id.Namespace)
	u.SetName(id.Name)
	return u
}
