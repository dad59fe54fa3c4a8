// Package html writes a result as one page that needs nothing else.
package html

import (
	"bufio"
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	_ "embed"
	"fmt"
	stdhtml "html"
	"io"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"

	"brine/bundle"
	"brine/bundle/report"
	"brine/cmd/brine/output/wording"
)

// The page around what changes: style and script.
//
//go:embed page.html
var frameOfPage string

// Page is the result as one page that needs nothing else: to be read elsewhere, on
// any screen, by keyboard, on paper.
func Page(w io.Writer, r *report.Result, now string) error {
	r, root := wording.ShortenPaths(r)
	title, ended := wording.TitleOf(r)
	before, after, _ := strings.Cut(strings.ReplaceAll(frameOfPage, "<!-- title -->", stdhtml.EscapeString(title)), "<!-- body -->")
	out := bufio.NewWriter(w)
	m, tiles := newMarkup(out, r), wording.TilesOf(r)
	m.WriteString(before)
	m.header(r, tiles, title, now, ended, root)
	m.filters(r, tiles)
	m.objects(r)
	m.timeline(r)
	m.graph(r.Objects)
	m.pack()
	m.WriteString(after)
	return out.Flush() // which has the first error
}

// markup is the page as HTML. It is written out here, as a binary that has
// html/template in it keeps every exported method of every type: a fifth more.
type markup struct {
	out io.Writer
	at  map[bundle.ID]int // where an object is in the result
	// Parts that the page's script unpacks when they are looked at: JSON, gzip. parts is
	// where those are whose SHA-256 it is.
	packed  bytes.Buffer
	packing *gzip.Writer
	parts   map[[sha256.Size]byte]int
}

func newMarkup(out io.Writer, r *report.Result) *markup {
	m := &markup{out: out, at: map[bundle.ID]int{}}
	for i, o := range r.Objects {
		m.at[o.ID()] = i
	}
	return m
}

// WriteString writes HTML.
func (m *markup) WriteString(html string) { _, _ = io.WriteString(m.out, html) }

// add writes a format whose arguments are texts, which are escaped, or numbers.
// They stand between tags or in quotes, nowhere else.
func (m *markup) add(format string, args ...any) {
	for i, a := range args {
		if _, number := a.(int); !number {
			args[i] = stdhtml.EscapeString(strings.ReplaceAll(fmt.Sprint(a), "\x00", "\uFFFD"))
		}
	}
	fmt.Fprintf(m.out, format, args...)
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

func (m *markup) header(r *report.Result, tiles []wording.ActionTile, title, now, ended, root string) {
	bad := ""
	if !report.Succeeded(r.ExitCode) {
		bad = " bad"
	}
	m.add("<h1>%s</h1>\n<p class=\"outcome%s\">%s</p>\n<p class=\"dim\">%s, %d objects", title, bad, ended, now, len(r.Objects))
	if r.Inventory.ID != "" {
		m.add(", inventory id <code>%s</code>", r.Inventory.ID)
	}
	if r.Server != "" {
		m.add(", API server <code>%s</code>", r.Server)
	}
	m.add("<br>%s", wording.RequestCounts(r))
	if root != "" {
		m.add("<br>Files are in <code>%s</code>", root)
	}
	m.add("</p>\n<div class=\"tiles\" role=\"group\" aria-label=\"Filter by action\">\n")
	for _, t := range tiles {
		m.add("<button class=\"tile\" type=\"button\" data-action=\"%s\" aria-pressed=\"false\"><b>%d</b>%s</button>\n", t.Action, t.Count, t.Label)
	}
	m.add("</div>\n")
	m.box("error", "", "Errors", r.Errors)
	m.box("error", "rights", "Missing rights", r.MissingRights)
	m.review(r)
	m.box("", "outside", wording.OutsideTitle(r), wording.OutsideLines(r))
	m.box("warning", "", "Warnings", r.Warnings)
	m.add("</header>\n<main>\n<h2 id=\"objects\">Objects</h2>\n<noscript><p class=\"box warning\">Without JavaScript this page has no filters, and no diffs of long or new objects: %s shows them.</p></noscript>\n",
		"brine "+cmp.Or(r.Command, "preview")+" -o text -v")
}

// choices are the options of a select: what the objects have, each once.
func (m *markup) choices(objects []*report.ObjectResult, of func(*report.ObjectResult) string) {
	for _, name := range sets.List(bundle.SetOf(objects, of)) {
		if name != "" {
			m.add("<option>%s</option>", name)
		}
	}
}

// verifier is vouched without its reason, to filter by.
func verifier(o *report.ObjectResult) string {
	if wording.IsUnverified(o) {
		return "not verified"
	}
	if o.Verified == "server" {
		return "server"
	}
	return wording.VerifiedBy(o)
}

func (m *markup) filters(r *report.Result, tiles []wording.ActionTile) {
	m.add(`<div class="bar" role="search">
<input id="q" type="search" placeholder="Search ( / )" aria-label="Search" autocomplete="off">
<select id="action" aria-label="Action"><option value="">all actions</option>`)
	for _, t := range tiles {
		m.add(`<option value="%s">%s</option>`, t.Action, t.Label)
	}
	m.add("</select>\n<select id=\"kind\" aria-label=\"Kind\"><option value=\"\">all kinds</option>")
	m.choices(r.Objects, wording.FullKind)
	m.add("</select>\n<select id=\"ns\" aria-label=\"Namespace\"><option value=\"\">all namespaces</option><option value=\"-\">cluster-scoped</option>")
	m.choices(r.Objects, func(o *report.ObjectResult) string { return o.Namespace })
	m.add("</select>\n")
	if slices.ContainsFunc(r.Objects, func(o *report.ObjectResult) bool { return o.Verified != "" }) {
		m.add(`<select id="by" aria-label="Verified by"><option value="">checked by any</option>`)
		m.choices(r.Objects, verifier)
		m.add("</select>\n")
	}
	m.add(`<button id="clear" type="button">Clear</button>
<span id="shown" class="dim" role="status" aria-live="polite">%d shown</span>
</div>
<p class="dim keys"><kbd>j</kbd> <kbd>k</kbd> next, previous &nbsp; <kbd>Enter</kbd> open &nbsp; <kbd>/</kbd> search &nbsp; <kbd>Esc</kbd> clear &nbsp; <kbd>g</kbd> graph</p>
`, len(r.Objects))
}
