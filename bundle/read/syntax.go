package read

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"

	"brine/bundle"
)

var (
	yamlError = bundle.Pattern(`^(?:yaml: )?(?:line (\d+): )?(.*)`)
	anchorOf  = bundle.Pattern(`unknown anchor '(.*)' referenced`)
)

// explain turns the parser's error about a document that is not YAML into a
// problem with a line and a remedy. The parser's own words quote no
// values but an anchor's name, which may be an unquoted password.
func (d *document) explain(err error) bundle.Problem {
	m := yamlError().FindStringSubmatch(strings.ReplaceAll(err.Error(), "\n", " "))
	line, msg := 1, m[2]
	if m[1] != "" {
		line, _ = strconv.Atoi(m[1])
	}
	lines := bytes.SplitAfter(d.text, []byte("\n"))
	last := d.reached(lines)
	at := func(i int, msg string) bundle.Problem {
		i = min(max(i, 1), len(lines))
		return bundle.Problem{Source: bundle.Source{File: d.file, Line: d.line + i - 1}, Message: msg}
	}

	// The line the parser names is often where the enclosing mapping begins:
	// the mistake is between it and the last line that was read.
	if i := between(lines, line-1, last, isJinja); i > 0 {
		return at(i, "Jinja is left over ({{ … }}, {% … %} or {# … #}), so this is not YAML: render the file before it gets here")
	}
	if strings.Contains(msg, "tab") || strings.Contains(msg, "cannot start any token") {
		if i := between(lines, line, last, hasTab); i > 0 {
			return at(i, "a tab in the indentation: YAML allows only spaces there")
		}
	}
	if a := anchorOf().FindStringSubmatch(msg); a != nil {
		i := between(lines, 1, len(lines), func(l []byte) bool { return bytes.Contains(l, []byte("*"+a[1])) })
		return at(i, "an unquoted value that begins with * refers to an anchor, and this document has no such anchor: put the value in quotes")
	}
	if strings.Contains(msg, "control characters") {
		i := between(lines, 1, len(lines), hasControl)
		return at(i, "a control character: YAML allows it only escaped in double quotes, like \"\\x01\"")
	}
	// Jinja blocks that break a mapping show up wherever the parser gives up.
	if i := between(lines, 1, len(lines), isJinjaBlock); i > 0 {
		return at(i, fmt.Sprintf("Jinja is left over ({%% … %%}), and the document is not YAML (%s): render the file before it gets here", msg))
	}
	if strings.HasPrefix(msg, "did not find expected") {
		return at(last, fmt.Sprintf("not YAML: %s on this line or just before it; look for wrong indentation, a missing quote or a missing colon", msg))
	}
	return at(line, "not YAML: "+msg)
}

// reached is the last line that the parser had read when it failed.
func (d *document) reached(lines [][]byte) int {
	r := &lineReader{lines: lines}
	_, _ = parseYAML(r)
	return r.n
}

type lineReader struct {
	lines [][]byte
	n     int // lines begun
	rest  []byte
}

func (r *lineReader) Read(p []byte) (int, error) {
	for len(r.rest) == 0 {
		if r.n == len(r.lines) {
			return 0, io.EOF
		}
		r.rest = r.lines[r.n]
		r.n++
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// between is the first line from..to (both counted from 1) that fits, or 0.
func between(lines [][]byte, from, to int, fits func([]byte) bool) int {
	for i := max(from, 1); i <= min(to, len(lines)); i++ {
		if fits(lines[i-1]) {
			return i
		}
	}
	return 0
}

func isJinja(line []byte) bool {
	return hasJinja(string(line)) || bytes.Contains(line, []byte("{#"))
}

func isJinjaBlock(line []byte) bool {
	line = bytes.TrimLeft(line, " \t-")
	return bytes.HasPrefix(line, []byte("{%")) || bytes.HasPrefix(line, []byte("{#"))
}

func hasTab(line []byte) bool {
	i := bytes.IndexFunc(line, func(r rune) bool { return r != ' ' && r != '-' })
	return i >= 0 && line[i] == '\t'
}

func hasControl(line []byte) bool {
	return bytes.ContainsFunc(line, func(r rune) bool {
		return r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0x7f
	})
}
