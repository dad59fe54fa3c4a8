package output

import (
	_ "embed"
	"fmt"
	stdhtml "html"
	"strings"
)

// The page around what changes: style and script.
//
//go:embed page.html
var frameOfPage string

// markup is the page as HTML. It is written out here, as a binary that has
// html/template in it keeps every exported method of every type: a fifth more.
type markup struct{ strings.Builder }

// add writes a format whose arguments are texts, which are escaped, or numbers.
// They stand between tags or in quotes, nowhere else.
func (m *markup) add(format string, args ...any) {
	for i, a := range args {
		switch a := a.(type) {
		case int:
		case string:
			args[i] = stdhtml.EscapeString(strings.ReplaceAll(a, "\x00", "\uFFFD"))
		default:
			args[i] = stdhtml.EscapeString(fmt.Sprint(a))
		}
	}
	fmt.Fprintf(m, format, args...)
}

// options are those of a select.
func (m *markup) options(names []string) {
	for _, n := range names {
		m.add("<option>%s</option>", n)
	}
}

// box is a list that stands out; nothing where the list is empty.
func (m *markup) box(class, id, title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	m.add(`<section class="box %s"`, class)
	if id != "" {
		m.add(` id="%s"`, id)
	}
	m.add(` aria-label="%s"><h2>%s (%d)</h2><ul>`, title, title, len(lines))
	for _, l := range lines {
		m.add("<li>%s</li>", l)
	}
	m.add("</ul></section>\n")
}

func (p *page) markup() string {
	m := &markup{}
	p.header(m)
	p.filters(m)
	m.add("<div id=\"list\">\n")
	for i := range p.Objects {
		p.Objects[i].markup(m)
	}
	m.add("</div>\n<p id=\"none\" class=\"dim\" hidden>No object matches.</p>\n")
	p.Graph.markup(m)
	return strings.NewReplacer("<!-- title -->", stdhtml.EscapeString(p.Title), "<!-- body -->", m.String()).Replace(frameOfPage)
}

func (p *page) header(m *markup) {
	bad := ""
	if p.Bad {
		bad = " bad"
	}
	m.add("<h1>%s</h1>\n<p class=\"outcome%s\">%s</p>\n<p class=\"dim\">%s", p.Title, bad, p.Outcome, p.Time)
	if dry := p.Result.DryRun; dry != "" && dry != "none" {
		m.add(", dry run: %s", dry)
	}
	if id := p.Result.Inventory.ID; id != "" {
		m.add(", inventory id <code>%s</code>", id)
	}
	m.add("; %d objects, %s</p>\n<div class=\"tiles\" role=\"group\" aria-label=\"Filter by action\">\n", len(p.Result.Objects), p.Requests)
	for _, t := range p.Tiles {
		m.add("<button class=\"tile\" type=\"button\" data-action=\"%s\" aria-pressed=\"false\"><b>%d</b>%s</button>\n", t.Action, t.Count, t.Label)
	}
	m.add("</div>\n")
	m.box("error", "", "Errors", p.Errors)
	m.box("error", "rights", "Missing rights", p.Result.MissingRights)
	m.box("warning", "", "Warnings", p.Result.Warnings)
	m.add("</header>\n<main>\n<h2 id=\"objects\">Objects</h2>\n")
}

func (p *page) filters(m *markup) {
	m.add(`<div class="bar" role="search">
<input id="q" type="search" placeholder="Search names, fields, reasons ( / )" aria-label="Search" autocomplete="off">
<select id="action" aria-label="Action"><option value="">all actions</option>`)
	for _, t := range p.Tiles {
		m.add(`<option value="%s">%s</option>`, t.Action, t.Label)
	}
	m.add("</select>\n<select id=\"kind\" aria-label=\"Kind\"><option value=\"\">all kinds</option>")
	m.options(p.Kinds)
	m.add("</select>\n<select id=\"ns\" aria-label=\"Namespace\"><option value=\"\">all namespaces</option><option value=\"-\">cluster-scoped</option>")
	m.options(p.Namespaces)
	m.add("</select>\n")
	if len(p.Verified) > 0 {
		m.add(`<select id="by" aria-label="Verified by"><option value="">all</option>`)
		m.options(p.Verified)
		m.add("</select>\n")
	}
	m.add(`<button id="clear" type="button">Clear</button>
<span id="shown" class="dim" role="status" aria-live="polite">%d shown</span>
</div>
<p class="dim keys"><kbd>j</kbd> <kbd>k</kbd> next, previous &nbsp; <kbd>Enter</kbd> open &nbsp; <kbd>/</kbd> search &nbsp; <kbd>Esc</kbd> clear &nbsp; <kbd>g</kbd> graph</p>
`, len(p.Objects))
}

func (o *pageObject) markup(m *markup) {
	by, tag := o.Verified, ""
	if o.Unverified {
		by, tag = "not verified", " no"
	}
	m.add(`<details class="o" id="o%d" data-action="%s" data-kind="%s" data-ns="%s" data-by="%s">`+"\n", o.Index, o.Action, o.FullKind, o.Namespace, by)
	m.add(`<summary><span class="act">%s</span><span class="kind">%s</span><span class="name">%s</span>`, o.Action, o.FullKind, o.Label)
	if o.SourceText != "" {
		m.add(`<span class="dim mono">%s</span>`, o.SourceText)
	}
	if o.Verified != "" && o.Verified != "server" {
		m.add(`<span class="tag%s">%s</span>`, tag, o.Verified)
	}
	if len(o.Rows) > 0 {
		m.add(`<span class="dim">%d changed</span>`, len(o.Rows))
	}
	m.add("</summary>\n<div class=\"body\">\n")
	if o.Error != "" {
		m.add(`<p class="err">%s</p>`, o.Error)
	} else if o.Reason != "" {
		m.add(`<p class="why">%s</p>`, o.Reason)
	}
	m.add("\n")
	for _, why := range o.Why {
		m.add(`<p class="why dim">because %s</p>`, why)
	}
	m.add("\n")
	o.changes(m)
	o.links(m)
	m.add("</div></details>\n")
}

// changes are the table of fields, and the diff.
func (o *pageObject) changes(m *markup) {
	if len(o.Rows) > 0 {
		m.add(`<h3>Changes</h3><div class="scroll"><table><thead><tr><th>Field</th><th>Now</th><th>Then</th></tr></thead><tbody>`)
		for _, r := range o.Rows {
			m.add(`<tr><td class="mono">%s</td><td class="old mono">%s</td><td class="new mono">%s</td></tr>`, r.Path, r.Old, r.New)
		}
		m.add("</tbody></table></div>")
	}
	m.add("\n")
	if len(o.Lines) > 0 {
		m.add(`<h3>Diff</h3><pre tabindex="0"`)
		if o.Packed != "" {
			m.add(` data-all="%s"`, o.Packed)
		}
		m.add(">")
		for _, l := range o.Lines {
			if l.Class != "" {
				m.add(`<span class="%s">%s</span>`, l.Class, l.Text)
			} else {
				m.add("<span>%s</span>", l.Text)
			}
		}
		m.add("</pre>")
		if o.More > 0 {
			m.add(`<button type="button" class="more">Show %d more lines</button>`, o.More)
		}
	}
	m.add("\n")
}

// links are what the object needs, and what needs it.
func (o *pageObject) links(m *markup) {
	for _, list := range []struct {
		title string
		links []link
	}{{"Needs", o.Links}, {"Needed by", o.NeededBy}} {
		if len(list.links) > 0 {
			m.add("<h3>%s</h3><ul>", list.title)
			for _, l := range list.links {
				if l.Index >= 0 {
					m.add(`<li><a href="#o%d">%s</a> <span class="dim">%s</span></li>`, l.Index, l.Name, l.Note)
				} else {
					m.add(`<li>%s <span class="dim">%s</span></li>`, l.Name, l.Note)
				}
			}
			m.add("</ul>")
		}
		m.add("\n")
	}
}

func (p *picture) markup(m *markup) {
	if len(p.Nodes) == 0 {
		m.add("\n")
		return
	}
	m.add("<h2 id=\"order\">Dependencies</h2>\n<p class=\"dim\">Objects on the left are applied first. Choose an object to see all that it needs and all that need it.")
	if p.Alone > 0 {
		m.add(" %d objects that need nothing, and that nothing needs, are not drawn.", p.Alone)
	}
	m.add(`</p>
<div class="tools"><button type="button" data-zoom="1.25">Larger</button><button type="button" data-zoom="0.8">Smaller</button><button type="button" data-zoom="0">Fit</button><button type="button" id="all">Show all</button><span id="chosen" role="status" aria-live="polite"></span></div>
<div id="graph" tabindex="0" role="group" aria-label="Dependency graph">
<svg width="%d" height="%d" viewBox="0 0 %d %d" role="img" aria-label="Dependency graph of %d objects">
`, p.Width, p.Height, p.Width, p.Height, len(p.Nodes))
	for _, e := range p.Edges {
		m.add("<path class=\"e\" d=\"%s\" data-a=\"%d\" data-b=\"%d\"><title>%s</title></path>\n", e.Path, e.From, e.To, e.Reason)
	}
	for _, n := range p.Nodes {
		m.add(`<g class="n %s" id="n%d" tabindex="-1" role="button" data-i="%d" data-title="%s" transform="translate(%d,%d)">`, n.Action, n.Index, n.Index, n.Title, n.X, n.Y)
		m.add("<title>%s</title><rect width=\"230\" height=\"36\" rx=\"5\"/><text class=\"k\" x=\"8\" y=\"14\">%s</text><text x=\"8\" y=\"29\">%s</text></g>\n", n.Title, n.Kind, n.Name)
	}
	m.add("</svg></div>\n")
}
