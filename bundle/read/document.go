package read

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"

	"sigs.k8s.io/kustomize/kyaml/yaml"

	"brine/bundle"
)

// From a file to its documents, and from a document to nodes with positions, of YAML and JSON.

// document is one document of a file, still text. The text is kept instead of
// what was parsed from it: that is a tenth of the memory, and a line is asked
// for only when something is wrong.
type document struct {
	file string
	line int // of text's first byte, counted from 1
	text []byte

	once     sync.Once
	mappings map[position]*yaml.Node // parsed again, for Line
}

// position is that of a node in its document.
type position struct{ row, col int }

// maxDepth bounds how deep a document may be nested. The API server's own bound
// is far higher, no real object comes near it.
const maxDepth = 1000

var byteOrderMark = []byte("\uFEFF")

// sourceMarker is a comment of a stream that other files were concatenated to,
// as the Salt modules send it: the number of its next line, and the file that the
// line is of.
const sourceMarker = "# brine.dev/source: "

// renderingMarker is a comment in the first line of standard input, with a
// bundle.Rendering as JSON. The Salt modules write it.
const renderingMarker = "# brine.dev/rendering: "

// renderingOf reads what the text of standard input says that it was rendered from.
func renderingOf(files []file) (*bundle.Rendering, error) {
	for _, f := range files {
		line, _, _ := bytes.Cut(f.data, []byte("\n"))
		text, is := bytes.CutPrefix(line, []byte(renderingMarker))
		if f.name != Stdin || !is {
			continue
		}
		r := &bundle.Rendering{}
		if err := json.Unmarshal(text, r); err != nil {
			return nil, bundle.Problem{Source: bundle.Source{File: Stdin, Line: 1}, Message: fmt.Sprintf("what follows %q is not what brine's Salt module writes: %v", renderingMarker, err)}
		}
		return r, nil
	}
	return nil, nil //nolint:nilnil // Salt did not say
}

// split cuts a file at the markers of its documents without parsing it. A
// marker counts at column 0 only, and there it counts always: YAML allows it
// neither in a quoted nor in a block scalar.
func split(name string, data []byte) []*document {
	var docs []*document
	start, startLine, line := 0, 1, 1
	directives := false // nothing but directives and comments since start
	blank := true       // nothing but comments since start
	moved := 0          // how much the line is smaller in the file that a comment named
	add := func(end int) {
		if !blank {
			docs = append(docs, &document{file: name, line: startLine - moved, text: data[start:end]})
		}
	}
	for at := 0; at < len(data); line++ {
		end := len(data)
		if i := bytes.IndexByte(data[at:], '\n'); i >= 0 {
			end = at + i + 1
		}
		text := bytes.TrimPrefix(data[at:end], byteOrderMark)
		if number, file, ok := sourceOf(text); ok {
			name, moved = file, line+1-number
		}
		switch {
		case isMarker(text, "---"):
			if !directives {
				add(at)
				start, startLine = at, line
			}
			directives, blank = false, false
		case isMarker(text, "..."):
			add(at)
			start, startLine = end, line+1
			directives, blank = false, true
		case blank && bytes.HasPrefix(text, []byte("%")):
			directives, blank = true, false
		case blank && !isBlank(text):
			blank = false
			// A shebang and comments are left out, so that a document's line
			// is that of its first field.
			start, startLine = at, line
		case directives && !isBlank(text) && !bytes.HasPrefix(text, []byte("%")):
			directives = false
		}
		at = end
	}
	add(len(data))
	return docs
}

// sourceOf reads a source marker.
func sourceOf(line []byte) (number int, file string, ok bool) {
	rest, ok := bytes.CutPrefix(line, []byte(sourceMarker))
	if !ok {
		return 0, "", false
	}
	first, file, ok := strings.Cut(strings.TrimSpace(string(rest)), " ")
	number, err := strconv.Atoi(first)
	return number, file, ok && err == nil && number >= 0 && number <= 1
}

// isMarker: the marker, then white space or the end of the line.
func isMarker(line []byte, marker string) bool {
	rest, ok := bytes.CutPrefix(line, []byte(marker))
	return ok && (len(rest) == 0 || strings.IndexByte(" \t\r\n", rest[0]) >= 0)
}

func isBlank(line []byte) bool {
	line = bytes.TrimSpace(line)
	return len(line) == 0 || line[0] == '#'
}

// parse gives the document's roots: one, as a rule; none where there are only
// comments; several where JSON objects stand one behind the other.
func (d *document) parse() ([]*yaml.Node, error) {
	if first := bytes.TrimLeft(bytes.TrimPrefix(d.text, byteOrderMark), " \t\r\n"); len(first) > 0 && (first[0] == '{' || first[0] == '[') {
		// Real JSON: YAML would refuse its \ud83d\ude00, which is how Python
		// writes anything beyond 16 bits. What is not JSON is YAML in flow style.
		if roots, err := parseJSON(d.text); err == nil {
			return roots, nil
		}
	}
	return parseYAML(bytes.NewReader(d.text))
}

func parseYAML(r io.Reader) (roots []*yaml.Node, err error) {
	defer func() {
		if p := recover(); p != nil { // the parser's way of saying "internal error"
			roots, err = nil, fmt.Errorf("the YAML parser failed: %v", p)
		}
	}()
	for dec := yaml.NewDecoder(r); ; {
		var n yaml.Node
		if err := dec.Decode(&n); errors.Is(err, io.EOF) {
			return roots, nil
		} else if err != nil {
			return nil, err
		}
		if n.Kind == yaml.DocumentNode {
			roots = append(roots, n.Content...)
		}
	}
}

// parseJSON builds what the YAML parser would, with positions.
func parseJSON(text []byte) ([]*yaml.Node, error) {
	p := jsonParser{text: text, dec: json.NewDecoder(bytes.NewReader(text)), line: 1}
	p.dec.UseNumber()
	var roots []*yaml.Node
	for {
		n, err := p.value(0)
		if errors.Is(err, io.EOF) {
			return roots, nil
		}
		if err != nil {
			return nil, err
		}
		roots = append(roots, n)
	}
}

type jsonParser struct {
	text []byte
	dec  *json.Decoder
	// line is that of seen, lineStart the offset it begins at.
	line, lineStart, seen int
}

func (p *jsonParser) value(depth int) (*yaml.Node, error) {
	if depth > maxDepth {
		return nil, errTooDeep
	}
	n := p.next()
	token, err := p.dec.Token()
	if err != nil {
		return nil, err
	}
	n.Kind = yaml.ScalarNode
	switch v := token.(type) {
	case string:
		n.Tag, n.Value, n.Style = yaml.NodeTagString, v, yaml.DoubleQuotedStyle
	case json.Number:
		n.Tag, n.Value = yaml.NodeTagInt, v.String()
		if bytes.ContainsAny([]byte(v), ".eE") {
			n.Tag = yaml.NodeTagFloat
		}
	case bool:
		n.Tag, n.Value = yaml.NodeTagBool, fmt.Sprint(v)
	case nil:
		n.Tag, n.Value = yaml.NodeTagNull, "null"
	case json.Delim:
		n.Kind, n.Tag = yaml.SequenceNode, yaml.NodeTagSeq
		if v == '{' {
			n.Kind, n.Tag = yaml.MappingNode, yaml.NodeTagMap
		}
		for p.dec.More() {
			child, err := p.value(depth + 1)
			if err != nil {
				return nil, unexpectedEOF(err)
			}
			n.Content = append(n.Content, child)
		}
		if _, err := p.dec.Token(); err != nil {
			return nil, unexpectedEOF(err)
		}
	}
	return n, nil
}

func unexpectedEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// next is a node at the position of the next token.
func (p *jsonParser) next() *yaml.Node {
	at := int(p.dec.InputOffset())
	for at < len(p.text) && strings.IndexByte(" \t\r\n,:", p.text[at]) >= 0 {
		at++
	}
	for ; p.seen < at; p.seen++ {
		if p.text[p.seen] == '\n' {
			p.line++
			p.lineStart = p.seen + 1
		}
	}
	return &yaml.Node{Line: p.line, Column: at - p.lineStart + 1}
}
