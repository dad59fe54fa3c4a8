package output

import (
	"regexp"
	"strings"
	"unicode"

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
		line = clean(line)
		color := ""
		switch {
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

var escape = regexp.MustCompile(`\x1b(\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)?)`)

// clean takes out what would move a terminal's cursor or change its colours:
// messages and log lines come from anywhere.
func clean(s string) string {
	if strings.IndexFunc(s, control) < 0 {
		return s
	}
	return strings.Map(func(r rune) rune {
		if control(r) {
			return unicode.ReplacementChar
		}
		return r
	}, strings.ReplaceAll(escape.ReplaceAllString(s, ""), "\r\n", "\n"))
}

func control(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }

// oneLine makes a message one line.
func oneLine(s string) string {
	var b strings.Builder
	for line := range strings.SplitSeq(clean(s), "\n") {
		line = strings.Join(strings.Fields(line), " ")
		if line == "" {
			continue
		}
		if so := b.String(); so != "" {
			if !strings.ContainsAny(so[len(so)-1:], ":;,.") {
				b.WriteString(";")
			}
			b.WriteString(" ")
		}
		b.WriteString(line)
	}
	return b.String()
}

// indent puts prefix before each line of a message.
func indent(s, prefix string) string {
	s = strings.TrimRight(clean(s), " \t\n")
	return prefix + strings.ReplaceAll(s, "\n", "\n"+prefix) + "\n"
}
