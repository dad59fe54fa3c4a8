// Package order computes the dependencies between the objects of a bundle: objects
// in, a graph without cycles out, with a reason for each edge. It reads no cluster.
package order

import (
	"fmt"
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
	// External are the explicit dependencies on objects that are not in the bundle.
	External map[int][]External
	// Invalid are the objects whose explicit dependencies are wrong: the ones
	// to leave out where invalid objects are skipped. Ascending.
	Invalid []int
	// Notices are for people: live annotations that lead nowhere, a rule that
	// was given up because it would have made too many edges.
	Notices []bundle.Problem
}

// External is an explicit dependency on an object that is not in the bundle. That
// has to be ready, too.
type External struct {
	On     bundle.ID
	Reason string

	annotation string // "" for a requisite
	similar    string // an object of the bundle that may be meant
}

// Outside are all External dependencies, in the order of the objects.
func (g *Graph) Outside(each func(i int, e External)) {
	for i := range g.Objects {
		for _, e := range g.External[i] {
			each(i, e)
		}
	}
}

// Problem is a problem of object i with an External dependency: its target is so.
func (g *Graph) Problem(i int, e External, so string) bundle.Problem {
	return g.Objects[i].Problem(e.annotation, fmt.Sprintf("depends on %s, which %s%s", bundle.Name(e.On), so, e.similar))
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
