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
	if len(r.Review.Risks) > 0 {
		m.add(`<section class="box error" id="dangerous" aria-label="Dangerous"><h2>Dangerous</h2>` + "\n")
		for _, g := range risksByType(r.Review.Risks) {
			m.add("<h3>%s</h3><ul>\n", riskTitle(g))
			for _, risk := range g {
				m.risk(risk, at)
			}
			m.add("</ul>\n")
		}
		m.add("</section>\n")
	}
	if images := r.Review.Images; len(images) > 0 {
		m.table("images", fmt.Sprintf("Images (%d)", len(images)), "Image", "Change", "Objects")
		for _, i := range images {
			guess := ""
			if i.Guess {
				guess = " (perhaps an image)"
			}
			m.add(`<tr><td class="mono">%s</td><td>%s%s</td><td>`, i.Image, arrow(i.From, i.To), guess)
			m.names(i.Objects, at)
			m.add("</td></tr>\n")
		}
		m.add("</tbody></table></div></section>\n")
	}
	if versions := r.Review.Versions; len(versions) > 0 {
		m.table("versions", fmt.Sprintf("Versions (%d)", len(versions)), "Component", "Chart", "Version", "Objects")
		for _, v := range versions {
			m.add("<tr><td>%s</td><td>%s</td><td>%s</td><td>%d</td></tr>\n", v.Component, arrow(v.ChartFrom, v.ChartTo), arrow(v.From, v.To), v.Objects)
		}
		m.add("</tbody></table></div></section>\n")
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

func (m *markup) risk(r review.Risk, at map[bundle.ID]int) {
	m.add("<li>")
	if len(r.Objects) == 1 {
		m.names(r.Objects, at)
		m.add(": %s", r.Text)
	} else {
		m.add("%s: ", r.Text)
		m.names(r.Objects, at)
	}
	if len(r.Details) > 0 {
		m.add("<details><summary>%s</summary><ul>", bundle.Count(len(r.Details), "detail"))
		for _, d := range r.Details {
			m.add("<li>%s</li>", d)
		}
		m.add("</ul></details>")
	}
	m.add("</li>\n")
}
