// Package sls reads what Salt prints of its states (high data, low data, what
// its renderers return): YAML nodes in, the nodes of the Kubernetes manifests in
// them out. FillSlots answers the slots that Salt leaves in manifests.
//
// The shapes and rules come from Salt's salt/state.py (verify_high,
// compile_high_data, requisite_in, order_chunks, check_requisite).
package sls

import (
	"sigs.k8s.io/kustomize/kyaml/yaml"

	"brine/bundle"
)

// Shape is what a YAML or JSON document turns out to be.
type Shape int

const (
	// Manifests is a document of its own, and whatever is none of the others.
	Manifests Shape = iota
	// High is {ID: {module.function: [arguments]}}, as state.show_sls and
	// slsutil.renderer print it.
	High
	// Low is a list of {state, fun, name, __id__, …}, as state.show_low_sls
	// prints it.
	Low
	// Errors is what Salt prints in place of states when it could not render.
	Errors
	// Empty is {}, [] or null: nothing rendered, or not serialisable.
	Empty
	// Rendered is a bundle's text inside {"local": "…"}, as slsutil.renderer
	// prints a file that only jinja renders; Text returns it.
	Rendered
)

// Options is how to treat states.
type Options struct {
	// IgnoreNonKubernetesStates skips states that are not objects; requisites
	// still lead through them. States that change objects are never skipped.
	IgnoreNonKubernetesStates bool
	// File is that of the document, for problems, Offset how many of its lines come before.
	File   string
	Offset int
}

// Document is one manifest and the state it came from.
type Document struct {
	// Source is the state, without its SLS in what slsutil.renderer prints, the file of the
	// SLS where it is known, and the line of the manifest's first field in the document.
	bundle.Source
	Node   *yaml.Node // the manifest, a mapping
	Absent bool       // the object is to be gone
	// Objects are those of the manifest, for who reads it to note.
	Objects []*bundle.Object
	// Requires are the documents that the state's requisites lead to, each once;
	// Link finds them.
	Requires []Require
}

// Require is the document that another one needs first.
type Require struct {
	On     *Document
	Reason string // "require: Create settings"
}

// The functions that stand for objects, whatever the module is called, and those
// that change fields of objects that the bundle does not contain.
var (
	presentFuns = map[string]bool{"object_present": true, "manifest_present": true}
	absentFuns  = map[string]bool{"object_absent": true, "manifest_absent": true}
	patchFuns   = map[string]bool{"object_updated": true, "labels_exist": true}
)

// Rendering is one document of Salt's, taken apart.
type Rendering struct {
	Documents          []*Document
	Problems, Warnings []bundle.Problem // without IDs and paths

	options  Options
	chunks   []*chunk
	resolved bool     // low data: Salt has resolved extend, use and the like
	includes []string // SLS named by include, which this rendering does not hold
}

// Decode takes a document of the given shape apart (a wrapping in "local" or
// one minion id comes off first) into its manifests in the order Salt would run
// them: by order, ties in the order of the text. A document without a single
// manifest is a problem, never an empty result.
func Decode(doc *yaml.Node, shape Shape, o Options) *Rendering {
	root, minions := unwrap(resolve(doc))
	d := &Rendering{options: o}
	if shape == High || shape == Low {
		d.unique(root, map[*yaml.Node]bool{})
	}
	switch {
	case len(minions) > 1:
		d.problem(at(root), "this is the answer of %d minions (%s): a bundle is one rendering; ask one of them, or use salt-call",
			len(minions), bundle.Some(minions, 5))
	case shape == Errors && !isEmpty(root) && !isMapping(root):
		d.saltErrors(root)
	case shape == Empty || isEmpty(root):
		d.problem(at(root), "Salt rendered nothing (%s): an empty rendering is an error, not an empty bundle; "+
			"the Salt command's own log says why", describe(root))
	case shape == High:
		d.high(root)
	case shape == Low:
		d.low(root)
	case shape == Manifests && isMapping(root):
		d.Documents = []*Document{{Node: root, Source: at(root)}}
	default:
		d.problem(at(root), "this is not Salt's high or low data")
	}
	if len(d.chunks) > 0 {
		d.documents()
	}
	return d
}

// unique reports keys that a mapping of Salt's has twice, as Salt does. Manifests are left to
// who reads them.
func (d *Rendering) unique(n *yaml.Node, seen map[*yaml.Node]bool) {
	if n = resolve(n); n == nil || seen[n] {
		return
	}
	seen[n] = true
	first := map[string]int{}
	for i, inner := range n.Content {
		switch {
		case isMapping(n) && i%2 == 0:
			key := text(resolve(inner))
			if before, twice := first[key]; twice && key != "" {
				d.problem(at(inner), "duplicate key %s; the first is on line %d", key, before+d.options.Offset)
				continue
			}
			first[key] = line(inner)
		case isMapping(n) && text(resolve(n.Content[i-1])) == "manifest" || inner.Kind == yaml.ScalarNode:
		default:
			d.unique(inner, seen)
		}
	}
}
