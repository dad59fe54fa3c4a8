package order

import (
	"cmp"
	"container/heap"
	"fmt"
	"slices"
	"strings"

	"brine/bundle"
)

// The builder collects edges, drops weak ones that would close a cycle, and sorts the objects.

// Options are what is known beyond the bundle.
type Options struct {
	// Live says that the objects are live ones, about to be deleted: explicit
	// dependencies that cannot be read or form a cycle are left out with a notice,
	// they are no problems.
	Live bool
}

// tier is how strongly an edge holds, strongest first. Explicit edges are
// never dropped; of the others, those of the weakest tier that closes a cycle
// are.
type tier int8

const (
	explicit   tier = iota
	definition      // Namespace, CRD and APIService before what they make possible
	named           // what an object names
	rights          // bindings before the workloads that use them, CRDs before who watches them
	backend         // a configuration after the workload that serves it
	policy          // quotas, limits and network policies before the pods they are for
	conversion      // resources after the backend that converts their versions
	operator        // resources after the workload that acts on them
	judged          // objects after the webhook configurations that judge them
	tiers
)

type link struct {
	Edge
	tier tier
}

// builder collects edges and problems.
type builder struct {
	index
	opts Options

	links      []link
	start      []int // links[start[i]:start[i+1]] leave object i, once they are merged
	problems   []bundle.Problem
	notices    []bundle.Problem
	invalid    map[int]bool
	external   map[int][]External
	byName     map[kindName]int // made when something is missing
	selectedBy map[int][]int    // Service -> workloads it selects, once it was asked

	pairs map[string]int // by rule, see pair
	steps int            // operations done, which tests count
}

// Build finds every edge between the objects and brings them into order. It is
// pure and takes time linear in objects and edges. All problems are reported at
// once; the graph is usable (and free of cycles) even when there are some, the
// wrong edges are not in it.
func Build(objs []*bundle.Object, o Options) (*Graph, []bundle.Problem) {
	g, problems, _ := build(objs, o)
	return g, problems
}

// build also counts its operations.
func build(objs []*bundle.Object, o Options) (*Graph, []bundle.Problem, int) {
	b := newBuilder(objs, o)
	b.explicit()
	b.definitions()
	b.references()
	b.workloadNeeds()
	b.policies()
	b.rbac()
	b.conversions()
	b.webhooks()

	b.links = b.merge()
	return b.graph(b.breakCycles()), b.problems, b.steps
}

func newBuilder(objs []*bundle.Object, o Options) *builder {
	return &builder{
		index:      newIndex(objs),
		links:      make([]link, 0, 4*len(objs)),
		opts:       o,
		invalid:    map[int]bool{},
		external:   map[int][]External{},
		selectedBy: map[int][]int{},
		pairs:      map[string]int{},
	}
}

// need records that from needs to. A target that is not in the bundle (-1) and
// the object itself are passed over, so that callers need not ask.
func (b *builder) need(from, to int, w Want, t tier, reason string) {
	b.steps++
	if from < 0 || to < 0 || from == to {
		return
	}
	b.links = append(b.links, link{
		Edge: Edge{From: from, To: to, Want: w, Reason: reason, Weak: t != explicit},
		tier: t,
	})
}

// pair asks for one more pair of a rule that joins many with many (webhooks
// and what they judge, say). Real bundles stay far below the bound; beyond it
// the rule's further edges are left out, which is reported, so that the number of
// edges grows as the number of objects does and never as its square.
func (b *builder) pair(rule string) bool {
	b.steps++
	b.pairs[rule]++
	limit := 20_000 + 20*len(b.objs)
	if b.pairs[rule] <= limit {
		return true
	}
	if b.pairs[rule] == limit+1 {
		b.notices = append(b.notices, bundle.Problem{Message: fmt.Sprintf(
			"more than %d pairs of %s: the others are not ordered; use %s where the order matters",
			limit, rule, bundle.DependsOn)})
	}
	return false
}

// merge sorts the links by their ends and joins those that have both ends in
// common: the strongest tier and the stronger want hold, all reasons are kept.
func (b *builder) merge() []link {
	slices.SortFunc(b.links, func(x, y link) int {
		if by := cmp.Or(cmp.Compare(x.From, y.From), cmp.Compare(x.To, y.To), cmp.Compare(x.tier, y.tier)); by != 0 {
			return by
		}
		return strings.Compare(x.Reason, y.Reason)
	})
	merged := b.links[:0]
	var reasons []string
	for _, l := range b.links {
		b.steps++
		last := len(merged) - 1
		if last < 0 || merged[last].From != l.From || merged[last].To != l.To {
			merged, reasons = append(merged, l), append(reasons[:0], l.Reason)
			continue
		}
		merged[last].Want = max(merged[last].Want, l.Want)
		if !slices.Contains(reasons, l.Reason) {
			merged[last].Reason += "; " + l.Reason
			reasons = append(reasons, l.Reason)
		}
	}
	return merged
}

// graph puts together what is left when out is taken away.
func (b *builder) graph(out []bool) *Graph {
	n := len(b.objs)
	g := &Graph{
		Objects:    b.objs,
		Needs:      make([][]Edge, n),
		Dependents: make([][]Edge, n),
		External:   b.external,
		Notices:    b.notices,
	}
	kept := make([]Edge, 0, len(b.links))
	count := make([]int, n)
	for i, l := range b.links {
		b.steps++
		if !out[i] {
			kept = append(kept, l.Edge)
			count[l.To]++
			continue
		}
		if l.Weak {
			g.Dropped = append(g.Dropped, l.Edge)
		}
	}
	// Both directions are slices of one array each: 50,000 small slices less.
	back := make([]Edge, len(kept))
	at := 0
	for i, c := range count {
		g.Dependents[i] = back[at : at : at+c]
		at += c
	}
	for start := 0; start < len(kept); {
		end := start
		for ; end < len(kept) && kept[end].From == kept[start].From; end++ {
			e := kept[end]
			g.Dependents[e.To] = append(g.Dependents[e.To], e)
		}
		g.Needs[kept[start].From] = kept[start:end:end]
		start = end
	}
	for i := range b.objs {
		if b.invalid[i] {
			g.Invalid = append(g.Invalid, i)
		}
	}
	g.Sorted = sorted(g)
	return g
}

// sorted is the topological order that stays closest to the text: of all that
// may come next, the first in the text does.
func sorted(g *Graph) []int {
	left := make([]int, len(g.Objects))
	free := make(first, 0, len(g.Objects))
	for i := range g.Objects {
		left[i] = len(g.Needs[i])
		if left[i] == 0 {
			free = append(free, i) // ascending, so already a heap
		}
	}
	order := make([]int, 0, len(g.Objects))
	for len(free) > 0 {
		i := heap.Pop(&free).(int) //nolint:forcetypeassert // it holds nothing else
		order = append(order, i)
		for _, e := range g.Dependents[i] {
			if left[e.From]--; left[e.From] == 0 {
				heap.Push(&free, e.From)
			}
		}
	}
	return order
}

// first is a heap of indices, smallest on top.
type first []int

func (f first) Len() int           { return len(f) }
func (f first) Less(i, j int) bool { return f[i] < f[j] }
func (f first) Swap(i, j int)      { f[i], f[j] = f[j], f[i] }
func (f *first) Push(x any)        { *f = append(*f, x.(int)) } //nolint:forcetypeassert // it holds nothing else
func (f *first) Pop() any {
	old := *f
	x := old[len(old)-1]
	*f = old[:len(old)-1]
	return x
}
