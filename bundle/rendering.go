package bundle

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// Rendering is what Salt says it rendered a bundle from. SLS and Files also are those that
// gave no object.
type Rendering struct {
	Saltenv string   `json:"saltenv,omitempty"`
	SLS     []string `json:"sls,omitempty"`
	Files   []string `json:"files,omitempty"`
	// Pillar are the settings of pillar about the inventory.
	Pillar map[string]string `json:"pillar,omitempty"`
	// Tree are the files that the saltenv has; nil where that is not known. A revision
	// does not keep it.
	Tree []string `json:"tree,omitempty"`
}

// Origin is what an object was rendered from: an SLS, or a file. It is "" for what came
// from neither.
func (s Source) Origin() string {
	if s.SLS != "" {
		return s.SLS
	}
	return strings.TrimSuffix(s.File[len(s.FromRevisions()):], " (rendered)")
}

// FromRevisions is what stands before the file of an object that was read from a revision:
// "revision-3:".
func (s Source) FromRevisions() string { return fromRevisions().FindString(s.File) }

var fromRevisions = Pattern(`^(revision-\d+:)+`)

// RenderedFrom is a digest over what each object was rendered from; "" where Salt said
// nothing about it.
func (b *Bundle) RenderedFrom() string {
	if b.Rendering == nil {
		return ""
	}
	lines := Each(b.Objects, func(o *Object) string { return o.ID.String() + " " + o.Source.Origin() })
	slices.Sort(lines)
	sum := sha256.New()
	fmt.Fprintln(sum, b.Rendering.Saltenv)
	for _, line := range lines {
		fmt.Fprintln(sum, line)
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
}
