package html

import (
	"cmp"
	"fmt"
	"slices"

	"brine/bundle"
	"brine/bundle/plan"
	"brine/bundle/report"
	"brine/cmd/brine/output/wording"
)

// span is a bar of the timeline: from when all that an object needs was there, to its
// end, in three parts. Times are seconds since the run began.
type span struct {
	name, reason              string
	index                     int // of the object; -1 for a group
	from, sent, answered, end float64
	critical                  bool
}

// timeline shows where the time of a run went: the critical path, then all objects by
// kind, the kinds that took longest first.
func (m *markup) timeline(r *report.Result) {
	if r.CriticalPath == nil {
		return
	}
	critical := map[bundle.ID]bool{}
	m.add("<h2 id=\"time\">Time</h2>\n<p class=\"dim\">The critical path: each of these objects could begin only when the one before it had come so far. What is not on it did not make the run longer.</p>\n<ol class=\"time\">\n")
	whole := max(r.Summary.Seconds, r.CriticalPath.Seconds, 0.001)
	for i := range r.CriticalPath.Steps {
		s := &r.CriticalPath.Steps[i]
		critical[s.ID()] = true
		sent := s.From + s.Queued
		index, inPage := m.at[s.ID()]
		if !inPage { // outside the bundle
			index = -1
		}
		b := span{name: bundle.Name(s.ID()), reason: s.Reason, index: index, from: s.From, sent: sent, answered: sent + s.Request, end: s.Until, critical: true}
		m.add("<li>")
		m.span(b, whole)
		m.add("</li>\n")
	}
	m.add("</ol>\n<p class=\"dim legend\"><i class=\"q\"></i> waits for other requests <i class=\"r\"></i> the server's answer <i class=\"w\"></i> not ready yet, or being deleted</p>\n")
	for _, g := range groupSpans(slices.Concat(r.Objects, r.Outside), critical) {
		m.add("<details class=\"time\"><summary>")
		m.span(g.sum, whole)
		m.add("</summary>\n")
		for _, b := range g.spans {
			m.span(b, whole)
		}
		m.add("</details>\n")
	}
}

// spanGroup is the objects of one kind; sum is from the first to the last of them.
type spanGroup struct {
	sum   span
	spans []span
}

func groupSpans(objects []*report.ObjectResult, critical map[bundle.ID]bool) []*spanGroup {
	by := map[string]*spanGroup{}
	var groups []*spanGroup
	for i, o := range objects {
		if o.StartedAt == 0 && len(o.Waits) == 0 {
			continue
		}
		b := span{name: bundle.Name(o.ID()), reason: wording.Line(o.LongestWait().Reason), index: i, from: o.QueuedAt, end: o.End(), critical: critical[o.ID()]}
		if o.Action == plan.Awaited {
			b.index = -1
		}
		b.sent = max(o.StartedAt, b.from)
		b.answered = max(o.ActedAt, b.sent)
		kind := wording.FullKind(o)
		g := by[kind]
		if g == nil {
			g = &spanGroup{sum: span{name: kind, index: -1, from: b.from}}
			by[kind] = g
			groups = append(groups, g)
		}
		g.spans = append(g.spans, b)
		g.sum.from, g.sum.end = min(g.sum.from, b.from), max(g.sum.end, b.end)
		g.sum.critical = g.sum.critical || b.critical
	}
	for _, g := range groups {
		g.sum.sent, g.sum.answered = g.sum.end, g.sum.end // one bar
		g.sum.name += ", " + bundle.Count(len(g.spans), "object")
		slices.SortStableFunc(g.spans, func(a, b span) int { return cmp.Compare(b.end-b.from, a.end-a.from) })
	}
	slices.SortStableFunc(groups, func(a, b *spanGroup) int { return cmp.Compare(b.sum.end, a.sum.end) })
	return groups
}

// span draws a bar with its name, its duration and its reason.
func (m *markup) span(b span, whole float64) {
	class := "t"
	if b.critical {
		class = "t on"
	}
	m.add(`<div class="%s"><span class="name">`, class)
	if b.index >= 0 {
		m.add(`<a href="#o%d">%s</a>`, b.index, b.name)
	} else {
		m.add(`%s`, b.name)
	}
	m.add(`</span><span class="took">%s s</span><span class="lane" role="img" aria-label="from %s s to %s s">`, seconds(b.end-b.from), seconds(b.from), seconds(b.end))
	for _, part := range []struct {
		class     string
		from, end float64
	}{{"q", b.from, b.sent}, {"r", b.sent, b.answered}, {"w", b.answered, b.end}} {
		if part.end > part.from {
			m.add(`<i class="%s" style="left:%s%%;width:%s%%"></i>`, part.class, seconds(100*part.from/whole), seconds(100*(part.end-part.from)/whole))
		}
	}
	m.add(`</span><span class="dim why">%s</span></div>`, b.reason)
	m.add("\n")
}

func seconds(f float64) string { return fmt.Sprintf("%.2f", f) }
