package wording

import (
	"strings"

	"brine/bundle/plan"
)

// Paint adds colours where they are wanted.
type Paint bool

// The colours, as SGR codes (ECMA-48).
const (
	Bold   = "1"
	Dim    = "2"
	Red    = "31"
	green  = "32"
	Yellow = "33"
	cyan   = "36"
)

// In is a text in a colour; the text alone where there are no colours.
func (p Paint) In(color, text string) string {
	if !p || color == "" || text == "" {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[0m"
}

// VerbColor is the colour of an action or of another first word of a line.
func VerbColor(verb string) string {
	switch verb {
	case string(plan.Created), "ready", "gone":
		return green
	case string(plan.Configured), string(plan.Recreated), string(plan.Detached), "retrying", "waiting", "warning":
		return Yellow
	case string(plan.Pruned), string(plan.Failed), "not ready":
		return Red
	}
	return Dim
}

// Diff paints a unified diff and leaves out its two lines of file names.
func (p Paint) Diff(text, indent string) string {
	var b strings.Builder
	for i, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		if i < 2 && (strings.HasPrefix(line, "--- ") || strings.HasPrefix(line, "+++ ")) {
			continue
		}
		color := ""
		for _, kind := range [][2]string{{"~", Yellow}, {"+", green}, {"-", Red}, {"@@", cyan}} {
			if strings.HasPrefix(line, kind[0]) {
				color = kind[1]
			}
		}
		b.WriteString(indent + p.In(color, line) + "\n")
	}
	return b.String()
}

// Indent puts prefix before each line of a message.
func Indent(s, prefix string) string {
	s = strings.TrimRight(Clean(s), " \t\n")
	return prefix + strings.ReplaceAll(s, "\n", "\n"+prefix) + "\n"
}
