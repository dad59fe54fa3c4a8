package output

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

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

// cleanEvent is a copy of an event whose texts can be shown.
func cleanEvent(e report.Event) report.Event {
	e = e.WithObject(cleanObject(e.Object()))
	switch p := e.Payload.(type) {
	case report.Retrying:
		p.Error = Clean(p.Error)
		e.Payload = p
	case report.Waiting:
		p.Reason = Clean(p.Reason)
		e.Payload = p
	case report.NotReady:
		p.Reason = Clean(p.Reason)
		e.Payload = p
	case report.Warning:
		p.Message = Clean(p.Message)
		e.Payload = p
	case report.Heartbeat:
		pending := slices.Clone(p.Pending)
		for i, one := range pending {
			pending[i] = cleanPending(one)
		}
		e.Payload = report.Heartbeat{Pending: pending}
	case report.Started:
		e.Payload = report.Started{Result: cleanResult(p.Result)}
	case report.Finished:
		e.Payload = report.Finished{Result: cleanResult(p.Result)}
	}
	return e
}

func cleanPending(p report.Pending) report.Pending {
	p.Reason = Clean(p.Reason)
	for _, s := range []*string{&p.ID.GroupKind.Group, &p.ID.GroupKind.Kind, &p.ID.Namespace, &p.ID.Name} {
		*s = Line(*s)
	}
	return p
}

func cleanResult(r *report.Result) *report.Result {
	if r == nil {
		return nil
	}
	c := *r
	c.Inventory = report.Inventory{Namespace: Line(r.Inventory.Namespace), Name: Line(r.Inventory.Name), ID: Line(r.Inventory.ID)}
	c.Server = Line(r.Server)
	c.Errors, c.Warnings, c.MissingRights = cleanAll(r.Errors), cleanAll(r.Warnings), cleanAll(r.MissingRights)
	c.Review, c.Rollback = r.Review.Rewrite(Clean), cleanResult(r.Rollback)
	for _, list := range []*[]*report.ObjectResult{&c.Objects, &c.Outside} {
		*list = slices.Clone(*list)
		for i, o := range *list {
			(*list)[i] = cleanObject(o)
		}
	}
	if r.CriticalPath != nil {
		path := *r.CriticalPath
		path.Steps = slices.Clone(path.Steps)
		for i := range path.Steps {
			n := &path.Steps[i]
			for _, s := range []*string{&n.Group, &n.Kind, &n.Namespace, &n.Name, &n.Reason} {
				*s = Line(*s)
			}
		}
		c.CriticalPath = &path
	}
	return &c
}

func cleanAll(texts []string) []string {
	texts = slices.Clone(texts)
	for i := range texts {
		texts[i] = Clean(texts[i])
	}
	return texts
}

func cleanNeed(n report.Need) report.Need {
	for _, s := range []*string{&n.Group, &n.Kind, &n.Namespace, &n.Name, &n.Reason} {
		*s = Line(*s)
	}
	return n
}

func cleanObject(o *report.ObjectResult) *report.ObjectResult {
	if o == nil {
		return nil
	}
	c := *o
	for _, s := range []*string{&c.Group, &c.Version, &c.Kind, &c.Namespace, &c.Name, &c.Source.File, &c.Source.State, &c.Source.SLS} {
		*s = Line(*s)
	}
	for _, s := range []*string{&c.Reason, &c.Error, &c.Verified, &c.Diff} {
		*s = Clean(*s)
	}
	c.Why, c.Needs, c.Changes, c.Waits = cleanAll(o.Why), slices.Clone(o.Needs), slices.Clone(o.Changes), slices.Clone(o.Waits)
	if o.Schema != nil {
		schema := *o.Schema
		schema.Fields = slices.Clone(schema.Fields)
		for i := range schema.Fields {
			f := &schema.Fields[i]
			f.Version, f.Field, f.Details = Line(f.Version), Line(f.Field), cleanAll(f.Details)
		}
		c.Schema = &schema
	}
	for i := range c.Needs {
		c.Needs[i] = cleanNeed(c.Needs[i])
	}
	if o.After != nil {
		after := cleanNeed(*o.After)
		c.After = &after
	}
	for i := range c.Waits {
		c.Waits[i].Reason = Clean(c.Waits[i].Reason)
	}
	for i := range c.Changes {
		change := &c.Changes[i]
		change.Path, change.Moved, change.Old, change.New = Line(change.Path), Line(change.Moved), cleanValue(change.Old), cleanValue(change.New)
	}
	return &c
}

// cleanValue is a value with all texts in it clean.
func cleanValue(v any) any {
	switch v := v.(type) {
	case string:
		return Clean(v)
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, w := range v {
			out[Line(k)] = cleanValue(w)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, w := range v {
			out[i] = cleanValue(w)
		}
		return out
	}
	return v
}

// JSON writes one document, indented.
func JSON(w io.Writer, document any) error {
	encoder := json.NewEncoder(plainJSON{w})
	encoder.SetEscapeHTML(false)
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
