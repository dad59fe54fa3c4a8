package order

import (
	"fmt"
	"slices"
	"strings"

	"brine/bundle"
)

// Cycles: which edges are dropped to open them, and how one of explicit edges is reported.

// maxRounds bounds how many cycles of explicit edges are reported that share
// objects; people rarely write more than one.
const maxRounds = 20

// breakCycles says which links have to go so that no cycle is left. Links are
// sorted by From.
//
// Explicit cycles come first: each is a problem. Then tier after tier joins,
// the strongest first, and the links of a tier that lie on a cycle with each
// other or with what is kept already are dropped. So a weaker link never costs
// a stronger one, and what is dropped does not depend on the order of the text.
// Each tier costs one pass over those parts of the graph that have cycles at
// all; most bundles have none.
func (b *builder) breakCycles() []bool {
	out := make([]bool, len(b.links))
	b.start = make([]int, len(b.objs)+1)
	for _, l := range b.links {
		b.start[l.From+1]++
	}
	for i := range b.objs {
		b.start[i+1] += b.start[i]
	}
	part, cyclic := b.components(func(int) bool { return true })
	if !cyclic {
		return out
	}
	inside := func(l int) bool { return part[b.links[l].From] == part[b.links[l].To] }
	b.explicitCycles(out, inside)
	for t := explicit + 1; t < tiers; t++ {
		comp, cyclic := b.components(func(l int) bool {
			return b.links[l].tier <= t && !out[l] && inside(l)
		})
		if !cyclic {
			continue
		}
		for i, l := range b.links {
			if l.tier == t && comp[l.From] == comp[l.To] {
				out[i] = true
			}
		}
	}
	return out
}

// explicitCycles reports all cycles of explicit links and takes one link of
// each out, so that the rest can still be ordered.
func (b *builder) explicitCycles(out []bool, inside func(int) bool) {
	use := func(l int) bool { return b.links[l].tier == explicit && !out[l] && inside(l) }
	for range maxRounds {
		comp, cyclic := b.components(use)
		if !cyclic {
			return
		}
		reported := map[int]bool{}
		for l := range b.links {
			from, to := b.links[l].From, b.links[l].To
			if !use(l) || comp[from] != comp[to] || reported[comp[from]] {
				continue
			}
			reported[comp[from]] = true
			cycle := b.cycle(from, func(l int) bool { return use(l) && comp[b.links[l].To] == comp[from] })
			b.reportCycle(cycle)
			out[cycle[len(cycle)-1]] = true
		}
	}
	comp, cyclic := b.components(use)
	if !cyclic {
		return
	}
	left := 0
	for l := range b.links {
		if use(l) && comp[b.links[l].From] == comp[b.links[l].To] {
			b.invalidate(b.links[l].From)
			out[l] = true
			left++
		}
	}
	b.report(bundle.Problem{Message: fmt.Sprintf(
		"%d more dependencies are in cycles with the ones above: remove those first", left)})
}

// reportCycle names every object of a cycle with its place, in order; none of
// them can be applied.
func (b *builder) reportCycle(cycle []int) {
	var msg strings.Builder
	start := b.links[cycle[0]].From
	fmt.Fprintf(&msg, "dependency cycle: %s", b.place(start))
	for n, l := range cycle {
		b.invalidate(b.links[l].From)
		if n > 0 {
			msg.WriteString(", which")
		}
		fmt.Fprintf(&msg, " needs %s (%s)", b.place(b.links[l].To), b.links[l].Reason)
	}
	msg.WriteString("; remove one of these dependencies")
	o := b.objs[start]
	b.report(bundle.Problem{Source: o.Source, ID: o.ID, Message: msg.String()})
}

func (b *builder) place(i int) string {
	o := b.objs[i]
	if o.Source.File == "" {
		return bundle.Name(o.ID)
	}
	return fmt.Sprintf("%s at %s", bundle.Name(o.ID), o.Source)
}

// report records a problem with explicit dependencies. Of live objects, which
// cannot be edited now, it is a notice.
func (b *builder) report(p bundle.Problem) {
	if b.opts.Live {
		p.Message += " (ignored while deleting)"
		b.notices = append(b.notices, p)
		return
	}
	b.problems = append(b.problems, p)
}

func (b *builder) invalidate(i int) {
	if !b.opts.Live {
		b.invalid[i] = true
	}
}

// components numbers the strongly connected components over the links that are
// in use (Tarjan 1972), and reports whether any has more than one object.
func (b *builder) components(use func(link int) bool) (comp []int, cyclic bool) {
	size := len(b.start) - 1
	comp = make([]int, size)
	seen := make([]int, size) // order of discovery, from 1
	low := make([]int, size)
	var stack []int
	count, found := 0, 0
	var visit func(v int)
	visit = func(v int) {
		count++
		seen[v], low[v] = count, count
		stack = append(stack, v)
		for l := b.start[v]; l < b.start[v+1]; l++ {
			b.steps++
			if !use(l) {
				continue
			}
			switch w := b.links[l].To; {
			case seen[w] == 0:
				visit(w)
				low[v] = min(low[v], low[w])
			case comp[w] == 0: // still on the stack
				low[v] = min(low[v], seen[w])
			}
		}
		if low[v] != seen[v] {
			return
		}
		found++
		cyclic = cyclic || stack[len(stack)-1] != v
		for done := false; !done; {
			w := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			comp[w] = found
			done = w == v
		}
	}
	for v := range size {
		b.steps++
		if seen[v] == 0 {
			visit(v)
		}
	}
	return comp, cyclic
}

// cycle is a shortest way from an object back to itself, as links. There has
// to be one.
func (b *builder) cycle(start int, use func(link int) bool) []int {
	by := map[int]int{} // object -> link that reached it first
	for queue := []int{start}; len(queue) > 0; queue = queue[1:] {
		v := queue[0]
		for l := b.start[v]; l < b.start[v+1]; l++ {
			b.steps++
			w := b.links[l].To
			if _, been := by[w]; been || !use(l) {
				continue
			}
			by[w] = l
			if w != start {
				queue = append(queue, w)
				continue
			}
			way := []int{l}
			for at := v; at != start; at = b.links[by[at]].From {
				way = append(way, by[at])
			}
			slices.Reverse(way)
			return way
		}
	}
	return nil
}
