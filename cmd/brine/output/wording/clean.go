package wording

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"brine/bundle"
	"brine/bundle/report"
)

// escape finds the sequences by which a program talks to a terminal (ECMA-48):
// CSI, and OSC that has an end.
var escape = regexp.MustCompile(`(?:\x1b\[|\x{9b})[0-?]*[ -/]*[@-~]|(?:\x1b\]|\x{9d})[^\x07\x1b\x{9c}\n]*(?:\x07|\x1b\\|\x{9c})`)

// Clean takes out what would move a terminal's cursor, change its colours or the
// direction of text, or hide what is there: names, messages and log lines come
// from anywhere. Lines stay lines. What it returns is valid UTF-8.
func Clean(s string) string {
	if isClean(s) {
		return s
	}
	return strings.Map(func(r rune) rune {
		if hidden(r) {
			return unicode.ReplacementChar
		}
		return r
	}, strings.ReplaceAll(escape.ReplaceAllString(s, ""), "\r\n", "\n"))
}

func isClean(s string) bool {
	for i := range len(s) {
		if c := s[i]; c >= utf8.RuneSelf {
			return strings.IndexFunc(s[i:], func(r rune) bool { return r == utf8.RuneError || hidden(r) }) < 0
		} else if c < ' ' && c != '\n' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

// hidden are control characters (C0 and C1), and those that have no form of
// their own: marks of direction, joiners, tags, separators of lines.
func hidden(r rune) bool {
	return r != '\n' && r != '\t' && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}

// Line is Clean, in one line.
func Line(s string) string {
	if !strings.ContainsAny(s, "\n\t\r") && !strings.Contains(s, "  ") && isClean(s) {
		return strings.TrimSpace(s)
	}
	var b strings.Builder
	for line := range strings.SplitSeq(Clean(s), "\n") {
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

// FirstSentence is a message without what it says to do.
func FirstSentence(s string) string {
	if at := nextSentence().FindStringIndex(s); at != nil {
		return s[:at[0]]
	}
	return s
}

var nextSentence = bundle.Pattern(`\.\s+[A-Z]`)

// CleanEvent is an event whose texts can be shown.
func CleanEvent(e report.Event) report.Event {
	e.Payload = report.Rewrite(e.Payload, cleanText)
	return e
}

// CleanResult is a result whose texts can be shown.
func CleanResult(r *report.Result) *report.Result { return report.Rewrite(r, cleanText) }

func cleanText(t report.Text) string {
	if t.Kind == report.Name || t.Kind == report.Field {
		return Line(t.Value)
	}
	return Clean(t.Value)
}

// NewEncoder writes JSON in which nothing is hidden, a value a line.
func NewEncoder(w io.Writer) *json.Encoder {
	e := json.NewEncoder(plainJSON{w})
	e.SetEscapeHTML(false)
	return e
}

// JSON writes one document, indented.
func JSON(w io.Writer, document any) error {
	encoder := NewEncoder(w)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(document); err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}
	return nil
}

// plainJSON writes JSON in which nothing is hidden: what Clean takes out, it
// escapes. That is the same document. It wants whole values.
type plainJSON struct{ w io.Writer }

func (p plainJSON) Write(text []byte) (int, error) {
	unclean := func(r rune) bool { return r == 0x7f || r > 0x7f && hidden(r) }
	if bytes.IndexFunc(text, unclean) < 0 {
		return p.w.Write(text)
	}
	var b bytes.Buffer
	for _, r := range string(text) {
		switch {
		case !unclean(r):
			b.WriteRune(r)
		case r > 0xffff:
			fmt.Fprintf(&b, `\u%04x\u%04x`, 0xd800+(r-0x10000)>>10, 0xdc00+(r-0x10000)&0x3ff)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	_, err := p.w.Write(b.Bytes())
	return len(text), err
}
