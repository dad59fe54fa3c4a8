package inventory

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"brine/bundle"
)

// What a revision keeps, and its encoding.

// Content is what a revision keeps: all that its bundle needs to be applied
// again in the same way.
type Content struct {
	Bundle *bundle.Bundle
	// Namespace is that of objects that name none.
	Namespace string
	// Options are those of the run that decided what was done, as flags name them.
	Options map[string]string
	// Sources are the files and folders that the bundle was read from, each with the name
	// of the folder that it is in: "shop/bundle.yaml". Older versions kept none.
	Sources []string
	// Before are the objects that the run made members and did not create, as they were: a
	// rollback past it sets their fields back. Those that hold a Secret are left out.
	Before []*unstructured.Unstructured

	madeByRollback bool
}

// content is a Content as it is stored. Older versions stored the list of
// objects alone, with none of the rest.
type content struct {
	Namespace string            `json:"namespace,omitempty"`
	Options   map[string]string `json:"options,omitempty"`
	Sources   []string          `json:"sources,omitempty"`
	Rendering *bundle.Rendering `json:"rendering,omitempty"`
	Objects   []savedObject     `json:"objects"`
	Absent    []savedAbsent     `json:"absent,omitempty"`
	Invalid   []savedProblem    `json:"invalid,omitempty"`
	Before    []map[string]any  `json:"before,omitempty"`
}

type savedObject struct {
	Content    map[string]any   `json:"content"`
	Source     bundle.Source    `json:"source"`
	Requisites []savedRequisite `json:"requisites,omitempty"`
}

type savedRequisite struct {
	On  record `json:"on"`
	Why string `json:"why"`
}

type savedAbsent struct {
	record
	Version string        `json:"version"`
	Source  bundle.Source `json:"source"`
}

type savedProblem struct {
	record
	Source  bundle.Source `json:"source"`
	Path    string        `json:"path,omitempty"`
	Message string        `json:"message"`
}

// Encode is the content, compressed, and its checksum.
func (c *Content) Encode() (packed []byte, sum string, err error) {
	out := content{Namespace: c.Namespace, Options: c.Options, Sources: c.Sources, Objects: []savedObject{}}
	if c.Bundle.Rendering != nil {
		kept := *c.Bundle.Rendering
		kept.Tree = nil
		out.Rendering = &kept
	}
	for _, o := range c.Bundle.Objects {
		out.Objects = append(out.Objects, savedObject{Content: o.Content.Object, Source: o.Source, Requisites: bundle.Each(o.Requisites, func(r bundle.Requisite) savedRequisite {
			return savedRequisite{On: recordOf(r.On, Status{}), Why: r.Reason}
		})})
	}
	out.Absent = bundle.Each(c.Bundle.Absent, func(a *bundle.Absent) savedAbsent {
		return savedAbsent{record: recordOf(a.ID, Status{}), Version: a.GVK.Version, Source: a.Source}
	})
	out.Invalid = bundle.Each(c.Bundle.Invalid, func(p bundle.Problem) savedProblem {
		return savedProblem{record: recordOf(p.ID, Status{}), Source: p.Source, Path: p.Path, Message: p.Message}
	})
	out.Before = bundle.Each(c.Before, func(u *unstructured.Unstructured) map[string]any { return u.Object })
	text, err := json.Marshal(out)
	if err != nil {
		return nil, "", fmt.Errorf("encode the bundle: %w", err)
	}
	packed = Compress(text)
	return packed, checksum(packed), nil
}

func checksum(packed []byte) string {
	sum := sha256.Sum256(packed)
	return hex.EncodeToString(sum[:])
}

// DecodeContent is the inverse of Encode. name, like "revision-3", goes before
// the files of the bundle. Content without a checksum is an older version's.
func DecodeContent(packed []byte, sum, name string) (*Content, error) {
	if sum != "" && sum != checksum(packed) {
		return nil, errors.New("its content does not have the checksum that was stored with it")
	}
	text, err := Decompress(packed)
	if err != nil {
		return nil, err
	}
	if bytes.HasPrefix(bytes.TrimSpace(text), []byte("[")) {
		return decodeObjects(text, name)
	}
	if sum == "" {
		return nil, errors.New("the checksum of its content is missing")
	}
	var in content
	if err := utiljson.Unmarshal(text, &in); err != nil { // integers stay integers
		return nil, fmt.Errorf("decode: %w", err)
	}
	c := &Content{Bundle: &bundle.Bundle{Rendering: in.Rendering}, Namespace: in.Namespace, Options: in.Options, Sources: in.Sources}
	for _, s := range in.Objects {
		c.madeByRollback = c.madeByRollback || s.Source.FromRevisions() != ""
		o, err := objectOf(s.Content, inRevision(s.Source, name))
		if err != nil {
			return nil, err
		}
		for _, r := range s.Requisites {
			o.Requisites = append(o.Requisites, bundle.Requisite{On: r.On.id(), Reason: r.Why})
		}
		c.Bundle.Objects = append(c.Bundle.Objects, o)
	}
	for _, a := range in.Absent {
		c.Bundle.Absent = append(c.Bundle.Absent, &bundle.Absent{ID: a.id(), GVK: a.id().GroupKind.WithVersion(a.Version), Source: inRevision(a.Source, name)})
	}
	for _, p := range in.Invalid {
		c.Bundle.Invalid = append(c.Bundle.Invalid, bundle.Problem{ID: p.id(), Source: inRevision(p.Source, name), Path: p.Path, Message: p.Message})
	}
	for _, was := range in.Before {
		c.Before = append(c.Before, &unstructured.Unstructured{Object: was})
	}
	return c, nil
}

// decodeObjects reads a revision of an older version. The places of the objects
// in it stand for lines.
func decodeObjects(text []byte, name string) (*Content, error) {
	var objects []map[string]any
	if err := utiljson.Unmarshal(text, &objects); err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	c := &Content{Bundle: &bundle.Bundle{}}
	for i, content := range objects {
		o, err := objectOf(content, bundle.Source{File: name, Line: i + 1})
		if err != nil {
			return nil, err
		}
		c.Bundle.Objects = append(c.Bundle.Objects, o)
	}
	return c, nil
}

func objectOf(object map[string]any, source bundle.Source) (*bundle.Object, error) {
	u := &unstructured.Unstructured{Object: object}
	gvk := u.GroupVersionKind()
	if gvk.Version == "" || gvk.Kind == "" || cmp.Or(u.GetName(), u.GetGenerateName()) == "" {
		return nil, fmt.Errorf("%s is no object: it has no apiVersion, kind or name", source)
	}
	return &bundle.Object{
		ID:      bundle.ID{Namespace: u.GetNamespace(), Name: u.GetName(), GroupKind: schema.GroupKind{Group: gvk.Group, Kind: gvk.Kind}},
		GVK:     gvk,
		Content: u,
		Source:  source,
	}, nil
}

// inRevision puts the revision before the file, in place of those that earlier
// rollbacks put there.
func inRevision(s bundle.Source, name string) bundle.Source {
	s.File = name + ":" + s.File[len(s.FromRevisions()):]
	return s
}

// MadeByRollback says whether a rollback made the content. Older versions did not
// record it: the objects come from files of another revision.
func (c *Content) MadeByRollback() bool { return c.madeByRollback }
