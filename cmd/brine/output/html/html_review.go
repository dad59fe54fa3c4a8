package html

import (
	"fmt"

	"brine/bundle"
	"brine/bundle/report"
	"brine/bundle/review"
	"brine/cmd/brine/output/wording"
)

// review is what a change is about, above everything else.
func (m *markup) review(r *report.Result) {
	if r.Review.Empty() {
		return
	}
	v := r.Review
	for _, line := range wording.Headlines(v) {
		m.add("<p><strong>%s</strong></p>\n", line)
	}
	if len(v.Risks) > 0 {
		m.add(`<section class="box error" id="dangerous" aria-label="Dangerous"><h2>Dangerous</h2>` + "\n")
		for _, g := range wording.RisksByType(v.Risks) {
			m.add("<h3>%s</h3><ul>\n", wording.RiskTitle(g))
			shown, rest := wording.FoldRisks(g)
			for _, risk := range shown {
				m.risk(risk)
			}
			if len(rest) > 0 {
				m.add("<li><details><summary>%s</summary><ul>\n", wording.FoldTitle(rest))
				for _, risk := range rest {
					m.risk(risk)
				}
				m.add("</ul></details></li>\n")
			}
			m.add("</ul>\n")
		}
		m.add("</section>\n")
	}
	if len(v.Starts) > 0 {
		title := wording.StartsTitle(v.Starts)
		m.add(`<section class="box" id="starts" aria-label="%s"><h2>%s</h2><ul>`, title, title)
		for _, s := range v.Starts {
			m.add("<li>")
			m.names([]bundle.Reference{s.Object})
			m.add(": %s</li>\n", wording.StartText(s))
		}
		m.add("</ul></section>\n")
	}
	if len(v.Clear) > 0 {
		m.add("<section class=\"box good\" id=\"clear-risks\" aria-label=\"Checked\"><p><strong>Checked, nothing found:</strong> %s</p></section>\n", wording.ClearLine(v))
	}
	if v.Back != nil {
		m.box("warning", "back", wording.BackTitle(v.Back), wording.BackLines(v.Back))
	}
	m.box("warning", "unchecked", "Could not be checked", bundle.Each(v.Unchecked, wording.UncheckedLine))
	if images := r.Review.Images; len(images) > 0 {
		m.table("images", fmt.Sprintf("Images (%d)", len(images)), "Image", "Change", "Objects")
		for _, i := range images {
			m.add(`<tr><td class="mono">%s</td><td data-th="Change">%s</td><td data-th="Objects">`, i.Image, wording.ImageVersions(i))
			m.names(i.Objects)
			m.add("</td></tr>\n")
		}
		m.add("</tbody></table></div></section>\n")
	}
	if versions := r.Review.Versions; len(versions) > 0 {
		m.table("versions", fmt.Sprintf("Versions (%d)", len(versions)), "Component", "Chart", "Version", "Objects that change")
		for _, one := range versions {
			m.add("<tr><td>%s</td><td data-th=\"Chart\">%s</td><td data-th=\"Version\">%s</td><td data-th=\"Objects that change\">%d</td></tr>\n", one.Component, wording.VersionArrow(one.ChartFrom, one.ChartTo), wording.VersionArrow(one.From, one.To), one.Objects)
		}
		m.add("</tbody></table></div>")
		if v.Unversioned > 0 {
			m.add("<p class=\"dim\">%s</p>", wording.UnversionedLine(r.Review))
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

// names are links to objects.
func (m *markup) names(objects []bundle.Reference) {
	end := ""
	for i, o := range objects {
		if i == wording.ManyNames && len(objects) > wording.ManyNames+1 {
			m.add("<details><summary>%d more</summary>", len(objects)-i)
			end = "</details>"
		} else if i > 0 {
			m.add(", ")
		}
		if n, ok := m.at[o.ID()]; ok {
			m.add(`<a href="#o%d">%s</a>`, n, wording.ObjectName(o))
		} else {
			m.add("%s", wording.ObjectName(o))
		}
	}
	m.WriteString(end)
}

func (m *markup) risk(r review.Risk) {
	m.add("<li>")
	switch {
	case r.Subject != "":
		if r.Severe {
			m.add(`<strong class="mark">dangerous</strong> `)
		}
		m.add("<b>%s</b> %s <span class=\"dim\">by</span> ", r.Subject, r.Text)
		m.names(r.Objects)
	case len(r.Objects) == 1:
		m.names(r.Objects)
		m.add(": %s", r.Text)
	default:
		m.add("%s: ", r.Text)
		m.names(r.Objects)
	}
	switch {
	case r.Type != review.Rights && len(r.Details) <= wording.FewInline:
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
