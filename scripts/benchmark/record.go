package main

import (
	"debug/buildinfo"
	"encoding/xml"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// What scripts/bench --record writes: the medians beside this file, the README's picture
// that is drawn from them, and the place of that picture.
const (
	recordedFile = "recorded.json"
	pictureFile  = "speed.svg"
	recordBegin  = "<!-- scripts/bench --record writes from here -->"
)

// The works that the picture shows, each a panel, and how many objects they are done to.
var shownWorks = []string{first, unchanged, destroy}

// record writes the medians of what was measured into the folder of this program in root,
// and redraws the picture.
func (r *report) record(root string) error {
	if err := r.medians().saveAs(filepath.Join(root, "scripts/benchmark", recordedFile)); err != nil {
		return err
	}
	return redraw(root)
}

// redraw draws the picture of what is recorded, and puts it into the README.
func redraw(root string) error {
	folder := filepath.Join(root, "scripts/benchmark")
	r, err := readReport(filepath.Join(folder, recordedFile))
	if err != nil {
		return err
	}
	svg, line := r.speed()
	if svg == "" {
		return fmt.Errorf("%s: it has no work on %d objects", recordedFile, few)
	}
	if err := os.WriteFile(filepath.Join(folder, pictureFile), []byte(svg), 0o666); err != nil {
		return err
	}
	return replaceSection(filepath.Join(root, "README.md"), recordBegin, line)
}

// medians is the report with one result for each cell of the generated bundles.
func (r *report) medians() *report {
	short := &report{Machine: r.Machine, Time: r.Time, Commit: r.Commit, Versions: r.Versions}
	for _, work := range mixedWorks {
		for _, count := range of(r, []string{work}, func(x result) int { return x.Count }) {
			for _, delay := range of(r, []string{work}, func(x result) int { return x.Delay }) {
				for _, tool := range r.toolsOf([]string{work}) {
					if c := r.cell(tool, work, count, delay); c != nil {
						short.Results = append(short.Results, result{
							Tool: tool, Work: work, Count: count, Delay: delay, Parallel: c.parallel, Run: c.runs, Load: c.load, Said: c.said,
							usage: usage{Seconds: c.seconds, CPU: c.cpu, Memory: c.memory, Exit: c.exit},
						})
					}
				}
			}
		}
	}
	return short
}

// versionOf is the version of the module that a binary was built from.
func versionOf(binary string) string {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return ""
	}
	return info.Main.Version
}

const (
	speedWidth, panelEach, rowEach   = 840, 270, 22
	speedTop, speedNames, speedWords = 64, 72, 50 // above the bars; the tools' names before them; the seconds after them
)

// The picture has a ground of its own: it can be read on any page. In dark mode, that is dark.
const speedStyle = `<style>
svg{font:12px system-ui,sans-serif;fill:#1f2328}
.ground{fill:#fff;stroke:#d1d9e0}
.title{font-size:14px;font-weight:600}
.weak{fill:#59636e;font-size:11px}
.bar{fill:#9aa4ae}
.ours{fill:#0b7a57}
.cut{stroke:#fff;stroke-width:3}
text.ours{font-weight:600}
@media(prefers-color-scheme:dark){
svg{fill:#e6edf3}
.ground{fill:#0d1117;stroke:#3d444d}
.weak{fill:#9198a1}
.bar{fill:#656c76}
.ours{fill:#3fb98f}
.cut{stroke:#0d1117}
}
</style>
`

// speed is the README's picture, a bar for each tool and work, and the line that shows it
// there, whose words are the same figures; both are empty where there are none.
func (r *report) speed() (svg, line string) {
	var panels []string
	var said []string
	rows := 0
	for _, work := range shownWorks {
		tools := slices.DeleteFunc(r.toolsOf([]string{work}), func(tool string) bool { return r.cell(tool, work, few, 0) == nil })
		if len(tools) == 0 {
			continue
		}
		panel, words := r.bars(work, tools)
		panels = append(panels, fmt.Sprintf(`<g transform="translate(%d,%d)">`+"\n%s</g>\n", 18+len(panels)*panelEach, speedTop, panel))
		said = append(said, work+": "+words)
		rows = max(rows, len(tools))
	}
	if len(panels) == 0 {
		return "", ""
	}
	title := fmt.Sprintf("Seconds for %d objects on one machine, less is better", few)
	notes := r.circumstances()
	height := speedTop + rows*rowEach + 14 + len(notes)*16
	for i, note := range notes {
		panels = append(panels, fmt.Sprintf(`<text class="weak" x="18" y="%d">%s</text>`+"\n", height-14-(len(notes)-1-i)*16, escape(note)))
	}
	svg = fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img">`+"\n", speedWidth, height, speedWidth, height) +
		fmt.Sprintf("<title>%s</title>\n%s", escape(title+". "+strings.Join(said, "; ")), speedStyle) +
		fmt.Sprintf(`<rect class="ground" x="0.5" y="0.5" width="%d" height="%d" rx="6"/>`+"\n", speedWidth-1, height-1) +
		fmt.Sprintf(`<text class="title" x="18" y="27">%s</text>`+"\n", escape(title)) +
		strings.Join(panels, "") + "</svg>\n"
	return svg, fmt.Sprintf("[![%s. %s](scripts/benchmark/%s)](scripts/benchmark/README.md)\n", title, strings.Join(said, "; "), pictureFile)
}

// bars is one panel: the longest bar is of the slowest tool. One that would make all others
// too short to compare is cut: at three times the median.
func (r *report) bars(work string, tools []string) (panel, words string) {
	var all []float64
	for _, tool := range tools {
		if c := r.cell(tool, work, few, 0); c.failed == "" {
			all = append(all, c.seconds)
		}
	}
	longest := 0.001
	if slices.Sort(all); len(all) > 0 {
		longest = max(longest, min(all[len(all)-1], 3*all[len(all)/2]))
	}
	var b strings.Builder
	var said []string
	fmt.Fprintf(&b, `<text x="0" y="-10">%s</text>`+"\n", escape(work))
	for row, tool := range tools {
		c, class, y := r.cell(tool, work, few, 0), "bar", row*rowEach
		if tool == "brine" {
			class = "ours"
		}
		width, text, cut := 0.0, "fails", ""
		if c.failed == "" {
			width, text = max(1, min(c.seconds/longest, 1)*float64(panelEach-18-speedNames-speedWords)), seconds(c.seconds)
		}
		if c.failed == "" && c.seconds > longest {
			x := float64(speedNames) + width - 14
			cut = fmt.Sprintf(`<line class="cut" x1="%.1f" y1="%d" x2="%.1f" y2="%d"/>`, x+6, y-1, x, y+17)
		}
		fmt.Fprintf(&b, `<text class="%s" x="0" y="%d">%s</text><rect class="%s" x="%d" y="%d" width="%.1f" height="14" rx="2"/>%s<text x="%.1f" y="%d">%s</text>`+"\n",
			strings.Replace(class, "bar", "", 1), y+12, tool, class, speedNames, y+1, width, cut, float64(speedNames+5)+width, y+12, text)
		said = append(said, tool+" "+text)
	}
	return b.String(), strings.Join(said, ", ")
}

// circumstances are with what, when and where it was measured, a line each.
func (r *report) circumstances() []string {
	tools := []string{"brine " + r.Commit}
	for _, tool := range r.toolsOf(shownWorks) {
		if version := r.Versions[tool]; version != "" {
			tools = append(tools, tool+" "+version)
		}
	}
	return append([]string{strings.Join(tools, ", ") + "; raw: the bare requests, as many at once as is fastest"}, strings.SplitN(r.loads(), ". ", 2)...)
}

func escape(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a Builder takes all
	return b.String()
}
