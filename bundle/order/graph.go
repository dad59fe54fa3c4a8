// Package order computes the dependencies between the objects of a bundle: objects
// in, a graph without cycles out, with a reason for each edge. It reads no cluster.
package order

import (
	"slices"

	"brine/bundle"
)

// Want is the state that an edge needs its target in.
type Want int

// Applied: the server has accepted the target. Ready: it works.
const (
	Applied Want = iota
	Ready
)

func (w Want) String() string {
	if w == Ready {
		return "ready"
	}
	return "applied"
}

// Edge says that object From needs object To first; both are indices into
// Graph.Objects. Weak edges are derived ones: they are dropped when they close
// a cycle. Reason reads on its own: "namespace metalk8s-auth",
// "depends-on annotation", "mounts ConfigMap settings".
type Edge struct {
	From, To int
	Want     Want
	Reason   string
	Weak     bool
}

// Graph is the objects and their edges, free of cycles.
type Graph struct {
	Objects []*bundle.Object
	// Needs and Dependents list, for each object, the edges that leave it and
	// those that reach it.
	Needs      [][]Edge
	Dependents [][]Edge
	// Sorted is one topological order (what is needed first), stable: ties keep
	// the order of the text.
	Sorted []int
	// Dropped are the weak edges that would have closed a cycle.
	Dropped []Edge
	// External are explicit dependencies on objects that are not in the bundle
	// but that Options.External knows.
	External map[int][]bundle.ID
	// Invalid are the objects whose explicit dependencies are wrong: the ones
	// to leave out where invalid objects are skipped. Ascending.
	Invalid []int
	// Notices are for people: live annotations that lead nowhere, a rule that
	// was given up because it would have made too many edges.
	Notices []bundle.Problem
}

// CriticalPath gives for each object how many edges the longest chain of
// dependents below it has. The scheduler takes the object with the largest number
// first.
func (g *Graph) CriticalPath() []int {
	length := make([]int, len(g.Objects))
	for _, i := range slices.Backward(g.Sorted) {
		for _, e := range g.Dependents[i] {
			length[i] = max(length[i], length[e.From]+1)
		}
	}
	return length
}
