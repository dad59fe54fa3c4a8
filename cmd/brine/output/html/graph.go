package html

import (
	"cmp"
	"fmt"
	"slices"

	"brine/bundle"
	"brine/bundle/report"
)

// The graph of the page.

// picture is the dependency graph of a result as a drawing: what comes first
// stands left. Objects that need nothing and that nothing needs are not in it.
type picture struct {
	Width, Height int
	Nodes         []drawnNode
	Edges         []drawnEdge
}

type drawnNode struct {
	Index, X, Y int // of the object
}

type drawnEdge struct {
	From, To int // objects: To needs From
	Path     string
	Reason   string
}

// Measures of the drawing, in its own units.
const (
	nodeWidth  = 230
	nodeHeight = 36
	rowHeight  = 46
	columnGap  = 90
	tallest    = 28 // rows of a column; more of them stand beside it
	labelRunes = 32
)

// draw lays the objects out in columns, each right of all that it needs.
func draw(objects []*report.ObjectResult, at map[bundle.ID]int) picture {
	g := newLayout(objects, at)
	var p picture
	x := 10
	place := make([][2]int, len(objects))
	for _, column := range g.columns() {
		for start := 0; start < len(column); start += tallest {
			part := column[start:min(start+tallest, len(column))]
			for row, i := range part {
				place[i] = [2]int{x, 10 + row*rowHeight}
				p.Height = max(p.Height, 10+(row+1)*rowHeight)
				p.Nodes = append(p.Nodes, drawnNode{Index: i, X: x, Y: place[i][1]})
			}
			x += nodeWidth + columnGap/3
		}
		x += columnGap - columnGap/3
	}
	p.Width = max(x-columnGap+10, 10)
	for _, n := range p.Nodes {
		for k, from := range g.needs[n.Index] {
			a, b := place[from], place[n.Index]
			x1, y1, x2, y2 := a[0]+nodeWidth, a[1]+nodeHeight/2, b[0], b[1]+nodeHeight/2
			bend := max((x2-x1)/2, 30)
			p.Edges = append(p.Edges, drawnEdge{From: from, To: n.Index, Reason: g.why[n.Index][k],
				Path: fmt.Sprintf("M%d %dC%d %d %d %d %d %d", x1, y1, x1+bend, y1, x2-bend, y2, x2, y2)})
		}
	}
	return p
}

func short(s string) string {
	if r := []rune(s); len(r) > labelRunes {
		return string(r[:labelRunes-1]) + "…"
	}
	return s
}

type layout struct {
	needs, neededBy [][]int
	why             [][]string
	depth           []int
}

func newLayout(objects []*report.ObjectResult, at map[bundle.ID]int) *layout {
	g := &layout{needs: make([][]int, len(objects)), neededBy: make([][]int, len(objects)), why: make([][]string, len(objects)), depth: make([]int, len(objects))}
	for i, o := range objects {
		for _, n := range o.Needs {
			on, ok := at[n.ID()]
			if !ok || on == i || slices.Contains(g.needs[i], on) {
				continue
			}
			g.needs[i] = append(g.needs[i], on)
			g.neededBy[on] = append(g.neededBy[on], i)
			g.why[i] = append(g.why[i], n.Reason)
		}
	}
	begun := make([]bool, len(objects)) // a cycle ends there
	var measure func(i int) int
	measure = func(i int) int {
		if begun[i] {
			return g.depth[i]
		}
		begun[i] = true
		for _, on := range g.needs[i] {
			g.depth[i] = max(g.depth[i], measure(on)+1)
		}
		return g.depth[i]
	}
	for i := range objects {
		measure(i)
	}
	return g
}

// columns puts each object below those whose neighbours stand higher, so that
// few lines cross.
func (g *layout) columns() [][]int {
	var columns [][]int
	for i, depth := range g.depth {
		if len(g.needs[i])+len(g.neededBy[i]) == 0 {
			continue
		}
		for len(columns) <= depth {
			columns = append(columns, nil)
		}
		columns[depth] = append(columns[depth], i)
	}
	row := make([]float64, len(g.depth))
	number := func(column []int) {
		for r, i := range column {
			row[i] = float64(r)
		}
	}
	for _, column := range columns {
		number(column)
	}
	sweep := func(column []int, neighbours [][]int) {
		middle := map[int]float64{}
		for _, i := range column {
			middle[i] = row[i]
			if len(neighbours[i]) > 0 {
				sum := 0.0
				for _, n := range neighbours[i] {
					sum += row[n]
				}
				middle[i] = sum / float64(len(neighbours[i]))
			}
		}
		slices.SortStableFunc(column, func(a, b int) int { return cmp.Compare(middle[a], middle[b]) })
		number(column)
	}
	for range 4 {
		for _, column := range columns {
			sweep(column, g.needs)
		}
		for _, column := range slices.Backward(columns) {
			sweep(column, g.neededBy)
		}
	}
	return columns
}
