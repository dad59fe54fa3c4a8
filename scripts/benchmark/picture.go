package main

import (
	"fmt"
	"math"
	"strings"
)

// The picture is one panel a work and delay: time over the number of objects,
// both logarithmic, a line a tool.
const (
	panelWidth, panelHeight = 380, 260
	left, right, top, below = 52, 70, 34, 36
)

var colors = map[string]string{"raw": "#888888", "brine": "#0b6e4f", "kapply": "#c1666b", "kapp": "#4281a4", "kapp-tuned": "#7fb2cc", "helm": "#d4a017", "helm-tuned": "#e8cb73", "nelm": "#8b5fbf", "nelm-tuned": "#b69bdb", "kluctl": "#3d405b"}

func (r *report) picture() string {
	works := []string{first, unchanged, destroy}
	delays := of(r, works, func(x result) int { return x.Delay })
	var b strings.Builder
	width, height := panelWidth*max(1, len(works)), panelHeight*max(1, len(delays))
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="11">`+"\n", width, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="white"/>`+"\n", width, height)
	for row, delay := range delays {
		for column, work := range works {
			fmt.Fprintf(&b, `<g transform="translate(%d,%d)">`+"\n%s</g>\n", column*panelWidth, row*panelHeight, r.panel(work, delay))
		}
	}
	return b.String() + "</svg>\n"
}

// axis maps a value to its place on a logarithmic scale.
type axis struct{ low, high, from, to float64 }

func (a axis) at(v float64) float64 {
	return a.from + (math.Log(v)-math.Log(a.low))/(math.Log(a.high)-math.Log(a.low))*(a.to-a.from)
}

func (r *report) panel(work string, delay int) string {
	var b strings.Builder
	counts := of(r, []string{work}, func(x result) int { return x.Count })
	x := axis{math.Inf(1), 0, left, panelWidth - right}
	y := axis{math.Inf(1), 0, panelHeight - below, top}
	tools := r.toolsOf([]string{work})
	for _, count := range counts {
		for _, tool := range tools {
			if c := r.cell(tool, work, count, delay); c != nil && c.failed == "" && c.seconds > 0 {
				x.low, x.high = min(x.low, float64(count)), max(x.high, float64(count))
				y.low, y.high = min(y.low, c.seconds), max(y.high, c.seconds)
			}
		}
	}
	if x.high == 0 {
		return ""
	}
	if x.low == x.high { // one count: in the middle
		x.low, x.high = x.low/2, x.high*2
	}
	y.low, y.high = math.Pow(10, math.Floor(math.Log10(y.low))), math.Pow(10, math.Ceil(math.Log10(y.high)+0.01))
	fmt.Fprintf(&b, `<text x="%d" y="18" font-weight="bold">%s, %s</text>`+"\n", left, work, wire(delay))
	for v := y.low; v <= y.high*1.01; v *= 10 {
		fmt.Fprintf(&b, `<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="#ddd"/><text x="%d" y="%.1f" text-anchor="end">%g s</text>`+"\n",
			left, panelWidth-right, y.at(v), y.at(v), left-5, y.at(v)+4, v)
	}
	for _, count := range counts {
		if f := float64(count); f >= x.low && f <= x.high {
			fmt.Fprintf(&b, `<line x1="%.1f" x2="%.1f" y1="%d" y2="%d" stroke="#eee"/><text x="%.1f" y="%d" text-anchor="middle">%d</text>`+"\n",
				x.at(f), x.at(f), top, panelHeight-below, x.at(f), panelHeight-below+15, count)
		}
	}
	for _, tool := range tools {
		var points []string
		var lastX, lastY float64
		for _, count := range counts {
			c := r.cell(tool, work, count, delay)
			if c == nil || c.failed != "" || c.seconds <= 0 {
				continue
			}
			lastX, lastY = x.at(float64(count)), y.at(c.seconds)
			points = append(points, fmt.Sprintf("%.1f,%.1f", lastX, lastY))
			fmt.Fprintf(&b, `<circle cx="%.1f" cy="%.1f" r="2.5" fill="%s"/>`+"\n", lastX, lastY, colors[tool])
		}
		if len(points) == 0 {
			continue
		}
		fmt.Fprintf(&b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="1.5"/><text x="%.1f" y="%.1f" fill="%s">%s</text>`+"\n",
			strings.Join(points, " "), colors[tool], lastX+6, lastY+4, colors[tool], tool)
	}
	return b.String()
}
