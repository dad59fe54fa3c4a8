package output

import (
	"fmt"

	"brine/bundle"
	"brine/bundle/report"
	"brine/bundle/review"
)

// review is what a change is about, above everything else.
func (m *markup) review(r *report.Result) {
	if r.Review.Empty() {
		return
	}
	at := map[bundle.ID]int{}
	for i, o := range r.Objects {
		at[o.ID()] = i
	}
	v := r.Review
	for _, line := range []string{componentsLine(v), podsLine(v)} {
		if line != "" {
			m.add("<p><strong>%s</strong></p>\n", line)
		}
	}
	if len(v.Risks) > 0 {
		m.add(`<section class="box error" id="dangerous" aria-label="Dangerous"><h2>Dangerous</h2>` + "\n")
		for _, g := range risksByType(v.Risks) {
			m.add("<h3>%s</h3><ul>\n", riskTitle(g))
			shown, rest := folds(g)
			for _, risk := range shown {
				m.risk(risk, at)
			}
			if len(rest) > 0 {
				m.add("<li><details><summary>%s</summary><ul>\n", foldTitle(rest))
				for _, risk := range rest {
					m.risk(risk, at)
				}
				m.add("</ul></details></li>\n")
			}
			m.add("</ul>\n")
		}
		m.add("</section>\n")
	}
	if len(v.Starts) > 0 {
		title := startsTitle(v.Starts)
		m.add(`<section class="box" id="starts" aria-label="%s"><h2>%s</h2><ul>`, title, title)
		for _, s := range v.Starts {
			m.add("<li>")
			m.names([]review.Object{s.Object}, at)
			m.add(": %s</li>\n", startText(s))
		}
		m.add("</ul></section>\n")
	}
	if len(v.Clear) > 0 {
		m.add("<section class=\"box good\" id=\"clear-risks\" aria-label=\"Checked\"><p><strong>Checked, nothing found:</strong> %s</p></section>\n", absences(v))
	}
	if v.Back != nil {
		m.box("warning", "back", backTitle(v.Back), backLines(v.Back))
	}
	m.box("warning", "unchecked", "Could not be checked", texts(v.Unchecked, uncheckedLine))
	if images := r.Review.Images; len(images) > 0 {
		m.table("images", fmt.Sprintf("Images (%d)", len(images)), "Image", "Change", "Objects")
		for _, i := range images {
			guess := ""
			if i.Guess {
				guess = guessed
			}
			m.add(`<tr><td class="mono">%s</td><td data-th="Change">%s%s</td><td data-th="Objects">`, i.Image, arrow(i.From, i.To), guess)
			m.names(i.Objects, at)
			m.add("</td></tr>\n")
		}
		m.add("</tbody></table></div></section>\n")
	}
	if versions := r.Review.Versions; len(versions) > 0 {
		m.table("versions", fmt.Sprintf("Versions (%d)", len(versions)), "Component", "Chart", "Version", "Objects that change")
		for _, one := range versions {
			m.add("<tr><td>%s</td><td data-th=\"Chart\">%s</td><td data-th=\"Version\">%s</td><td data-th=\"Objects that change\">%d</td></tr>\n", one.Component, arrow(one.ChartFrom, one.ChartTo), arrow(one.From, one.To), one.Objects)
		}
		m.add("</tbody></table></div>")
		if v.Unversioned > 0 {
			m.add("<p class=\"dim\">%s</p>", others(r.Review))
		}
		m.add("</section>\n")
	}
}

func (m *markup) table(id, title string, columns ...string) {
	m.add(`<section class="box" id="%s" aria-label="%s"><h2>%s</h2><div class="scroll"><table><thead><tr>`, id, title, title)
	for _, c := range columns {
		m.add(`<th scope="col">%s</th>`, c)
	}
	m.add("</tr></thead><tbody>\n")
}

// manyNames is how many objects are named at once.
const manyNames = 5

// names are links to objects.
func (m *markup) names(objects []review.Object, at map[bundle.ID]int) {
	end := ""
	for i, o := range objects {
		if i == manyNames && len(objects) > manyNames+1 {
			m.add("<details><summary>%d more</summary>", len(objects)-i)
			end = "</details>"
		} else if i > 0 {
			m.add(", ")
		}
		if n, ok := at[o.ID()]; ok {
			m.add(`<a href="#o%d">%s</a>`, n, objectName(o))
		} else {
			m.add("%s", objectName(o))
		}
	}
	m.WriteString(end)
}

// fewInline is how many details of a risk stand in the page unfolded.
const fewInline = 2

func (m *markup) risk(r review.Risk, at map[bundle.ID]int) {
	m.add("<li>")
	switch {
	case r.Subject != "":
		if r.Severe {
			m.add(`<strong class="mark">dangerous</strong> `)
		}
		m.add("<b>%s</b> %s <span class=\"dim\">by</span> ", r.Subject, r.Text)
		m.names(r.Objects, at)
	case len(r.Objects) == 1:
		m.names(r.Objects, at)
		m.add(": %s", r.Text)
	default:
		m.add("%s: ", r.Text)
		m.names(r.Objects, at)
	}
	switch {
	case r.Type != review.Rights && len(r.Details) <= fewInline:
		for _, d := range r.Details {
			m.add(`<br><span class="dim">%s</span>`, d)
		}
	case len(r.Details) > 0:
		m.add("<details><summary>%s</summary><ul>", bundle.Count(len(r.Details), "detail"))
		for _, d := range r.Details {
			m.add("<li>%s</li>", d)
		}
		m.add("</ul></details>")
	}
	m.add("</li>\n")
}
