// Package published is the structure of the built-in kinds, as a Kubernetes
// server publishes it in OpenAPI v3: scripts/schemagen reduces it, and go generate (in
// package validate) calls that.
package published

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Document is all that is known.
type Document struct {
	Version string            `json:"version"` // of the server, like v1.37.1
	Kinds   map[string]string `json:"kinds"`   // by Key: the type of each kind that can be applied
	Types   map[string]*Type  `json:"types"`
}

// Type is the structure of a value. One without Type and Ref may be anything.
type Type struct {
	Ref    string   `json:"$,omitempty"` // is the type of this name
	Type   string   `json:"t,omitempty"` // of JSON; several with "," between
	Format string   `json:"f,omitempty"`
	Enum   []string `json:"e,omitempty"`
	// Default is only of text, for the keys of lists.
	Default  string           `json:"d,omitempty"`
	Fields   map[string]*Type `json:"p,omitempty"` // no others are allowed, if there are any
	Required []string         `json:"r,omitempty"`
	Values   *Type            `json:"v,omitempty"` // of the keys that Fields does not have
	Items    *Type            `json:"i,omitempty"`
	Set      bool             `json:"s,omitempty"` // no item twice
	Keys     []string         `json:"k,omitempty"` // the fields that tell the items apart
}

// Key is how Kinds names a kind: version first, as in "apps/v1 Deployment".
func Key(gvk schema.GroupVersionKind) string {
	return gvk.GroupVersion().String() + " " + gvk.Kind
}

//go:embed published.json.zst
var compressed []byte

// Load reads it all, once.
var Load = sync.OnceValues(func() (*Document, error) {
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	defer decoder.Close()
	data, err := decoder.DecodeAll(compressed, nil)
	if err != nil {
		return nil, fmt.Errorf("read the published types: %w", err)
	}
	doc := &Document{}
	if err := json.Unmarshal(data, doc); err != nil {
		return nil, fmt.Errorf("read the published types: %w", err)
	}
	return doc, nil
})

// Resolve follows t's reference.
func (d *Document) Resolve(t *Type) *Type {
	for i := 0; t != nil && t.Ref != "" && i < 10; i++ {
		t = d.Types[t.Ref]
	}
	return t
}
