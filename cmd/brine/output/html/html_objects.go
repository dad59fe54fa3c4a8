package html

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"slices"
	"strings"

	"brine/bundle"
	"brine/bundle/diff"
	"brine/bundle/plan"
	"brine/bundle/report"
	"brine/cmd/brine/output/wording"
)

// The objects of the page: their rows, and the links between them.

// link leads to an object, or, with the index -1, names one that is not in the page.
type link struct {
	index      int
	name, note string
}

func (m *markup) objects(r *report.Result) {
	objects := r.Objects
	order := make([]int, len(objects))
	needs, neededBy := make([][]link, len(objects)), make([][]link, len(objects))
	for i, o := range objects {
		order[i] = i
		for _, n := range o.Needs {
			on, ok := m.at[n.ID()]
			if ok {
				neededBy[on] = append(neededBy[on], link{i, bundle.Name(o.ID()), n.Reason})
			} else {
				on = -1
			}
			needs[i] = append(needs[i], link{on, bundle.Name(n.ID()), n.Want + ": " + n.Reason})
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return slices.Index(wording.ReadingOrder, objects[a].Action) - slices.Index(wording.ReadingOrder, objects[b].Action)
	})
	m.add("<div id=\"list\">\n")
	alike := wording.FoldedObjects(r)
	one := func(i int) {
		o, part := objects[i], &strings.Builder{}
		more := &markup{out: part}
		m.object(i, o, wording.ActionLabel(r, o.Action), alike[o.ID()], more)
		more.diff(o.Diff)
		more.links("Needs", needs[i])
		more.links("Needed by", neededBy[i])
		m.later(part.String())
		m.add("</div></details>\n")
	}
	for n, i := range order {
		if objects[i].Action == plan.Configured && (n == 0 || objects[order[n-1]].Action != plan.Configured) && len(alike) > 0 {
			for _, s := range r.Review.Same {
				m.add("<details class=\"same configured\"><summary><span class=\"act\">%s</span> <span>%s</span> <span class=\"dim\">%s</span></summary>\n", wording.ActionLabel(r, plan.Configured), wording.SameLine(s), wording.KindCounts(s.Objects))
				for _, o := range s.Objects {
					if i, ok := m.at[o.ID()]; ok {
						one(i)
					}
				}
				m.add("</details>\n")
			}
		}
		if !alike[objects[i].ID()] {
			one(i)
		}
	}
	m.add("</div>\n<p id=\"none\" class=\"dim\" hidden>No object matches.</p>\n")
}

// fewChanges is how many changed fields of an object stand in the page as they are.
const fewChanges = 12

// object is one object up to its diff. What is short stands in the page as it is, the
// rest goes to more.
func (m *markup) object(i int, o *report.ObjectResult, action string, alike bool, more *markup) {
	m.add(`<details class="o" id="o%d" data-action="%s" data-kind="%s" data-ns="%s" data-by="%s">`+"\n", i, o.Action, wording.FullKind(o), o.Namespace, verifier(o))
	m.add(`<summary><span class="act">%s</span><span class="kind">%s</span><span class="name">%s</span>`, action, wording.FullKind(o), wording.InNamespace(o))
	if source := o.Source.String(); source != "" {
		m.add(`<span class="dim mono">%s</span>`, source)
	}
	if by := wording.VerifiedBy(o); by != "" {
		tag := ""
		if wording.IsUnverified(o) {
			tag = " no"
		}
		m.add(`<span class="tag%s">%s</span>`, tag, by)
	}
	switch n := len(o.Changes); {
	case o.Schema != nil:
		m.add(`<span class="dim">%s</span>`, o.Schema.Summary())
	case n > 0:
		m.add(`<span class="dim">%s</span>`, bundle.Count(n, "changed field"))
	}
	m.add("</summary>\n<div class=\"body\">\n")
	if o.Error != "" {
		m.add(`<p class="err">%s</p>`, o.Error)
	} else if o.Reason != "" {
		m.add(`<p class="why">%s</p>`, o.Reason)
	}
	for _, why := range o.Why {
		m.add(`<p class="why dim">because %s</p>`, why)
	}
	to := m
	if alike || len(o.Changes) > fewChanges {
		to = more
	}
	switch {
	case o.Schema != nil:
		to.add("<h3>Fields: %s</h3><ul class=\"fields\">", o.Schema.Summary())
		for _, f := range o.Schema.Fields {
			to.add("<li>%s</li>", f.String())
		}
		to.add("</ul>")
		to.changes(wording.OutsideSchema(o.Changes))
	default:
		to.changes(o.Changes)
	}
	m.add("\n")
}

func (m *markup) changes(changes []diff.Change) {
	if len(changes) == 0 {
		return
	}
	m.add(`<h3>Changes</h3><div class="scroll"><table><thead><tr><th scope="col">Field</th><th scope="col">Now</th><th scope="col">Then</th></tr></thead><tbody>`)
	for _, c := range changes {
		m.add(`<tr><td class="mono">%s</td><td class="old mono" data-th="Now">%s</td><td class="new mono" data-th="Then">%s</td></tr>`, c.Place(), wording.ValueText(c.Old), wording.ValueText(c.New))
	}
	m.add("</tbody></table></div>")
}

func (m *markup) diff(diff string) {
	if diff == "" {
		return
	}
	lines := strings.Split(strings.TrimSuffix(diff, "\n"), "\n")
	if len(lines) > 1 && strings.HasPrefix(lines[0], "--- ") && strings.HasPrefix(lines[1], "+++ ") {
		lines = lines[2:]
	}
	m.add(`<h3>Diff</h3><pre tabindex="0">`)
	before := "none"
	for _, l := range lines {
		class := map[byte]string{'+': ` class="a"`, '-': ` class="d"`, '@': ` class="h"`}[(l + " ")[0]]
		switch before {
		case class: // fewer tags
			m.add("\n")
		case "none":
			m.WriteString("<span" + class + ">")
		default:
			m.WriteString("</span><span" + class + ">")
		}
		m.add("%s", wording.Clean(l))
		before = class
	}
	m.add("</span></pre>")
}

// later leaves a place for a part that the page's script unpacks when it is looked at.
// Parts that are the same are in the page once.
func (m *markup) later(html string) {
	if strings.TrimSpace(html) == "" {
		return
	}
	if m.packing == nil {
		m.packing, _ = gzip.NewWriterLevel(&m.packed, gzip.BestCompression) // an error is about the level
		m.parts = map[[sha256.Size]byte]int{}
	}
	key := sha256.Sum256([]byte(html))
	i, known := m.parts[key]
	if !known {
		i = len(m.parts)
		m.parts[key] = i
		separator := ","
		if i == 0 {
			separator = "["
		}
		_, _ = io.WriteString(m.packing, separator) // to memory
		encoder := json.NewEncoder(m.packing)
		encoder.SetEscapeHTML(false) // base64 follows
		_ = encoder.Encode(html)
	}
	m.add(`<div data-body="%d"></div>`, i)
}

// pack writes the parts that later left places for, in base64.
func (m *markup) pack() {
	if m.packing == nil {
		return
	}
	_, _ = io.WriteString(m.packing, "]")
	_ = m.packing.Close()
	m.WriteString(`<script type="text/plain" id="bodies">`)
	text := base64.NewEncoder(base64.StdEncoding, m.out)
	_, _ = text.Write(m.packed.Bytes())
	_ = text.Close()
	m.WriteString("</script>\n")
}

// links are what an object needs, or what needs it.
func (m *markup) links(title string, links []link) {
	if len(links) == 0 {
		return
	}
	m.add(`<h3 class="links">%s</h3><ul>`, title)
	for _, l := range links {
		if l.index >= 0 {
			m.add(`<li><a href="#o%d">%s</a> <span class="dim">%s</span></li>`, l.index, l.name, l.note)
		} else {
			m.add(`<li>%s <span class="dim">%s</span></li>`, l.name, l.note)
		}
	}
	m.add("</ul>")
}

func (m *markup) graph(objects []*report.ObjectResult) {
	p := draw(objects, m.at)
	if len(p.Nodes) == 0 {
		return
	}
	m.add("<h2>Dependencies</h2>\n<details id=\"order\"><summary>Graph of %d objects</summary>\n<p class=\"dim\">Objects on the left are applied first; those to prune are deleted at the end of the run. Choose an object to see all that it needs and all that need it.", len(p.Nodes))
	if alone := len(objects) - len(p.Nodes); alone > 0 {
		m.add(" %d objects that need nothing, and that nothing needs, are not drawn.", alone)
	}
	m.add(`</p>
<div class="tools"><button type="button" data-zoom="1.25">Larger</button><button type="button" data-zoom="0.8">Smaller</button><button type="button" data-zoom="0">Fit</button><button type="button" id="all">Show all</button><span id="chosen" role="status" aria-live="polite"></span></div>
<div id="graph" tabindex="0" role="group" aria-label="Dependency graph: arrow keys go from object to object, Enter opens one, + and - zoom">
`)
	picture := &strings.Builder{}
	(&markup{out: picture}).drawn(p, objects)
	m.later(picture.String())
	m.add("</div></details>\n")
}

func (m *markup) drawn(p picture, objects []*report.ObjectResult) {
	m.add(`<svg width="%d" height="%d" viewBox="0 0 %d %d" role="img" aria-label="Dependency graph of %d objects">
`, p.Width, p.Height, p.Width, p.Height, len(p.Nodes))
	for _, e := range p.Edges {
		m.add("<path class=\"e\" d=\"%s\" data-a=\"%d\" data-b=\"%d\"><title>%s</title></path>\n", e.Path, e.From, e.To, e.Reason)
	}
	for _, n := range p.Nodes {
		o := objects[n.Index]
		title := bundle.Name(o.ID()) + ": " + string(o.Action)
		m.add(`<g class="n %s" id="n%d" tabindex="-1" role="button" data-i="%d" data-title="%s" transform="translate(%d,%d)">`, o.Action, n.Index, n.Index, title, n.X, n.Y)
		m.add("<title>%s</title><rect width=\"230\" height=\"36\" rx=\"5\"/><text class=\"k\" x=\"8\" y=\"14\">%s</text><text x=\"8\" y=\"29\">%s</text></g>\n", title, short(o.Kind), short(wording.InNamespace(o)))
	}
	m.add("</svg>\n")
}
