package documents

import (
	"cmp"
	"fmt"
	"strings"

	"brine/bundle"
	"brine/bundle/plan"
	"brine/bundle/report"
	"brine/bundle/review"
	"brine/cmd/brine/output/wording"
)

// The result as a comment of a merge request.

// longestComment is how many bytes a comment has at most: GitHub takes 65,536.
const longestComment = 60_000

// escapes are the characters that Markdown gives a meaning to, and @, which would
// notify somebody.
var escapes = strings.NewReplacer(`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "|", `\|`, "~", `\~`, "#", `\#`,
	"&", "&amp;", "<", "&lt;", ">", "&gt;", "@", "&#64;")

func md(text string) string { return escapes.Replace(wording.Line(text)) }

// code is a text in a code span. A backtick would end it.
func code(text string) string { return "`" + strings.ReplaceAll(wording.Line(text), "`", "'") + "`" }

// markdown is the result as a comment of a merge request: what matters most comes
// first, and what is too much is left out.
func markdown(r *report.Result) string {
	r, root := wording.ShortenPaths(r)
	c := &comment{}
	title, ended := wording.TitleOf(r)
	c.add("## %s\n\n%s\n", md(title), md(ended))
	tally := bundle.Each(wording.TilesOf(r), func(t wording.ActionTile) string { return fmt.Sprintf("**%d** %s", t.Count, md(t.Label)) })
	c.add("\n%s\n", strings.Join(tally, ", "))
	if r.Server != "" {
		c.add("\nAPI server %s\n", code(r.Server))
	}
	if root != "" {
		c.add("\nFiles are in %s\n", code(root))
	}
	c.list("Errors", r.Errors)
	c.list("Missing rights", r.MissingRights)
	if r.Review != nil {
		c.review(r)
	}
	c.list(wording.OutsideTitle(r), wording.OutsideLines(r))
	c.list("Warnings", r.Warnings)
	c.objects(r)
	if c.left > 0 {
		fmt.Fprintf(c, "\n%s left out, as a comment has a limited size. The reports in HTML and JSON have all of it.\n", bundle.Count(c.left, "part")+" of this report "+map[bool]string{true: "was", false: "were"}[c.left == 1])
	}
	return c.String()
}

// comment is Markdown of a limited size.
type comment struct {
	strings.Builder
	left int // parts that had no room
}

// add writes one part, if there is room for it.
func (c *comment) add(format string, args ...any) {
	if part := fmt.Sprintf(format, args...); c.Len()+len(part) <= longestComment {
		c.WriteString(part)
	} else {
		c.left++
	}
}

func (c *comment) list(title string, lines []string) {
	c.points(fmt.Sprintf("### %s (%d)", title, len(lines)), lines)
}

// points are lines below a heading; nothing where there are none.
func (c *comment) points(heading string, lines []string) {
	if len(lines) == 0 {
		return
	}
	c.add("\n%s\n\n", heading)
	for _, l := range lines {
		c.add("- %s\n", md(l))
	}
}

func (c *comment) review(r *report.Result) {
	v := r.Review
	for _, line := range wording.Headlines(v) {
		c.add("\n%s\n", md(line))
	}
	if len(v.Risks) > 0 {
		c.add("\n### Dangerous\n")
	}
	for _, g := range wording.RisksByType(v.Risks) {
		c.add("\n**%s**\n\n", md(wording.RiskTitle(g)))
		shown, rest := wording.FoldRisks(g)
		for _, risk := range shown {
			c.add("- %s\n", riskMarkdown(risk))
		}
		if len(rest) > 0 {
			text := fmt.Sprintf("- <details><summary>%s</summary><ul>", wording.FoldTitle(rest))
			for _, risk := range rest {
				text += "<li>" + md(wording.RiskLine(risk)) + "</li>"
			}
			c.add("%s</ul></details>\n", text)
		}
	}
	if len(v.Starts) > 0 {
		c.add("\n### %s\n\n", md(wording.StartsTitle(v.Starts)))
		for _, s := range v.Starts {
			c.add("- %s: %s\n", code(wording.ObjectName(s.Object)), md(wording.StartText(s)))
		}
	}
	if len(v.Clear) > 0 {
		c.add("\n**Checked, nothing found:** %s\n", md(wording.ClearLine(v)))
	}
	c.points("**"+md(wording.BackTitle(v.Back))+"**", wording.BackLines(v.Back))
	c.points("**Could not be checked:**", bundle.Each(v.Unchecked, wording.UncheckedLine))
	if images := v.Images; len(images) > 0 {
		c.add("\n### Images (%d)\n\n| Image | Change | Objects |\n|---|---|---|\n", len(images))
		for _, i := range images {
			c.add("| %s | %s | %s |\n", code(i.Image), md(wording.ImageVersions(i)), md(wording.ObjectNames(i.Objects, wording.ManyNames)))
		}
	}
	c.points(fmt.Sprintf("### Versions (%d)", len(v.Versions)), wording.VersionLines(v))
}

// riskMarkdown is a risk with its details.
func riskMarkdown(risk review.Risk) string {
	text := bundle.Some(bundle.Each(risk.Objects, func(o bundle.Reference) string { return code(wording.ObjectName(o)) }), wording.ManyNames)
	if risk.Subject != "" {
		text = md(risk.Subject+" "+risk.Text) + " (by " + text + ")"
	} else {
		text += ": " + md(risk.Text)
	}
	if risk.Severe {
		text = "**!** " + text
	}
	switch {
	case risk.Type != review.Rights && len(risk.Details) <= wording.FewInline:
		for _, d := range risk.Details {
			text += "<br>" + md(d)
		}
	case len(risk.Details) > 0:
		text += fmt.Sprintf(" <details><summary>%s</summary>", bundle.Count(len(risk.Details), "detail"))
		for _, d := range risk.Details {
			text += code(d) + "<br>"
		}
		text += "</details>"
	}
	return text
}

// objects are those that change, each with its diff.
func (c *comment) objects(r *report.Result) {
	alike := wording.FoldedObjects(r)
	for _, a := range wording.ReadingOrder {
		of := bundle.Where(r.Objects, func(o *report.ObjectResult) bool { return o.Action == a })
		if len(of) == 0 || a == plan.Unchanged {
			continue
		}
		c.add("\n### %s (%d)\n\n", wording.ActionTitle(r, a), len(of))
		if a == plan.Configured && r.Review != nil {
			for _, s := range r.Review.Same {
				c.add("- %s: %s\n", md(wording.SameLine(s)), md(wording.KindCounts(s.Objects)))
			}
		}
		for _, o := range of {
			if alike[o.ID()] && !wording.IsUnverified(o) && o.Reason == "" {
				continue
			}
			c.object(o)
		}
	}
}

func (c *comment) object(o *report.ObjectResult) {
	line := "- " + code(bundle.Name(o.ID()))
	if at := o.Source.String(); at != "" {
		line += " (" + md(at) + ")"
	}
	if why := cmp.Or(o.Error, o.Reason); why != "" {
		line += ": " + md(why)
	}
	if by := wording.VerifiedBy(o); by != "" {
		line += " (" + md(by) + ")"
	}
	c.add("%s\n", line)
	shown := wording.ShortDiff(o, false)
	if shown == "" || o.Action == plan.Created || o.Action == plan.Pruned {
		return
	}
	fence := "```"
	for strings.Contains(shown, fence) {
		fence += "`"
	}
	c.add("\n  <details><summary>diff</summary>\n\n  %sdiff\n%s  %s\n\n  </details>\n\n", fence, wording.Paint(false).Diff(wording.Clean(shown), "  "), fence)
}
