package output

import (
	"strings"

	"brine/bundle/plan"
)

// paint adds colours where they are wanted.
type paint bool

// The colours, as SGR codes (ECMA-48).
const (
	bold   = "1"
	dim    = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
	cyan   = "36"
)

func (p paint) in(color, text string) string {
	if !p || color == "" || text == "" {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[0m"
}

// verbColor is the colour of an action or of another first word of a line.
func verbColor(verb string) string {
	switch verb {
	case string(plan.Created), "ready", "gone":
		return green
	case string(plan.Configured), string(plan.Recreated), string(plan.Detached), "retrying", "waiting", "warning":
		return yellow
	case string(plan.Pruned), string(plan.Failed), "not ready":
		return red
	}
	return dim
}

// diff paints a unified diff and leaves out its two lines of file names.
func (p paint) diff(text, indent string) string {
	var b strings.Builder
	for i, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		if i < 2 && (strings.HasPrefix(line, "--- ") || strings.HasPrefix(line, "+++ ")) {
			continue
		}
		color := ""
		switch {
		case strings.HasPrefix(line, "~"):
			color = yellow
		case strings.HasPrefix(line, "+"):
			color = green
		case strings.HasPrefix(line, "-"):
			color = red
		case strings.HasPrefix(line, "@@"):
			color = cyan
		}
		b.WriteString(indent + p.in(color, line) + "\n")
	}
	return b.String()
}

// indent puts prefix before each line of a message.
func indent(s, prefix string) string {
	s = strings.TrimRight(Clean(s), " \t\n")
	return prefix + strings.ReplaceAll(s, "\n", "\n"+prefix) + "\n"
}
