package output

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"brine/bundle"
	"brine/bundle/plan"
	"brine/bundle/report"
)

// html writes the result as one page that needs nothing else: to be read
// elsewhere, on any screen, by keyboard, on paper. Progress goes to Err.
type html struct {
	o      Options
	text   *text
	result *report.Result
}

func newHTML(o Options) *html { return &html{o: o, text: newProgress(o)} }

func (h *html) Event(e report.Event) {
	h.text.Event(e)
	if end, ok := e.Payload.(report.Finished); ok {
		h.result = cleanResult(end.Result)
	}
}

func (h *html) Close() error {
	err := h.text.Close()
	r := h.result
	if r == nil {
		return err
	}
	h.result = nil
	page, err := newPage(complete(r), h.o.Now().UTC().Format("2006-01-02 15:04:05 UTC"))
	if err != nil {
		return fmt.Errorf("draw the page: %w", err)
	}
	if _, err := io.WriteString(h.o.Out, page.markup()); err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	return nil
}

// page is what markup shows.
type page struct {
	Title, Time, Outcome, Requests string
	Bad                            bool
	Result                         *report.Result
	Tiles                          []tile
	Kinds, Namespaces, Verified    []string
	Objects                        []pageObject
	Errors                         []string
	Graph                          picture
}

// tile is how often an action is done: the summary, and a filter.
type tile struct {
	Action, Label string
	Count         int
}

type pageObject struct {
	*report.ObjectResult
	Index             int
	FullKind, Title   string
	Unverified        bool
	Lines             []diffLine
	More              int    // lines that only Packed has
	Packed            string // the whole diff: gzip, base64 for URLs
	Rows              []changeRow
	Links, NeededBy   []link
	Sort              int
	SourceText, Label string
}

type diffLine struct{ Class, Text string }

type changeRow struct{ Path, Old, New string }

type link struct {
	Index      int
	Name, Note string
}

// wholeDiff is how many lines of a diff stand in the page as they are; of more
// the first of them do, and all of them packed.
const wholeDiff = 60

// readingOrder puts what takes something away first, as in the text.
var readingOrder = []plan.Action{plan.Failed, plan.Pruned, plan.Recreated, plan.Detached, plan.Configured, plan.Created, plan.Skipped, plan.Unchanged}

func newPage(r *report.Result, now string) (*page, error) {
	p := &page{Time: now, Result: r, Requests: requests(r.Summary), Graph: draw(r.Objects)}
	what := "Result of " + cmp.Or(r.Command, "apply")
	if isPreview(r) {
		what = "Preview"
	}
	p.Title = what
	if r.Inventory.Name != "" {
		p.Title += " of " + inventory(r.Inventory)
	}
	p.Outcome, _ = outcome(r)
	if r.Compared != nil {
		p.Title, p.Outcome = comparedTitle(r), "The objects on the cluster were not read."
	}
	p.Bad = r.ExitCode != report.ExitOK && r.ExitCode != report.ExitChanges
	for _, a := range readingOrder {
		n := 0
		for _, o := range r.Objects {
			if o.Action == a {
				n++
			}
		}
		if n > 0 {
			label := string(a)
			if r.Compared != nil {
				label = changed[a]
			} else if isPreview(r) {
				label, _ = strings.CutPrefix(toDo(n, a), fmt.Sprintf("%d ", n))
			}
			p.Tiles = append(p.Tiles, tile{Action: string(a), Label: label, Count: n})
		}
	}
	neededBy := map[int][]link{}
	at := map[bundle.ID]int{}
	for i, o := range r.Objects {
		at[o.ID()] = i
	}
	for i, o := range r.Objects {
		po, err := newPageObject(i, o)
		if err != nil {
			return nil, err
		}
		for _, n := range o.Needs {
			on, ok := at[n.ID()]
			if !ok {
				on = -1
			}
			po.Links = append(po.Links, link{Index: on, Name: bundle.Name(n.ID()), Note: n.Want + ": " + n.Reason})
			neededBy[on] = append(neededBy[on], link{Index: i, Name: bundle.Name(o.ID()), Note: n.Reason})
		}
		p.Objects = append(p.Objects, po)
		p.Kinds, p.Namespaces, p.Verified = add(p.Kinds, po.FullKind), add(p.Namespaces, o.Namespace), add(p.Verified, verifier(o.Verified))
	}
	for i := range p.Objects {
		p.Objects[i].NeededBy = neededBy[i]
	}
	slices.SortStableFunc(p.Objects, func(a, b pageObject) int { return a.Sort - b.Sort })
	p.Errors = r.Errors
	return p, nil
}

func add(names []string, name string) []string {
	if at, found := slices.BinarySearch(names, name); !found && name != "" {
		return slices.Insert(names, at, name)
	}
	return names
}

// verifier is a Verified without its reason, to filter by.
func verifier(v string) string {
	if strings.HasPrefix(v, "not verified") {
		return "not verified"
	}
	return v
}

func newPageObject(i int, o *report.ObjectResult) (pageObject, error) {
	p := pageObject{ObjectResult: o, Index: i, Title: bundle.Name(o.ID()), FullKind: o.ID().GroupKind.String(), SourceText: o.Source.String(), Label: o.Name}
	if o.Namespace != "" {
		p.Label = o.Namespace + "/" + o.Name
	}
	p.Unverified = strings.HasPrefix(o.Verified, "not verified")
	p.Sort = slices.Index(readingOrder, o.Action)
	for _, c := range o.Changes {
		p.Rows = append(p.Rows, changeRow{Path: c.Path, Old: value(c.Old), New: value(c.New)})
	}
	if o.Diff == "" {
		return p, nil
	}
	lines := strings.Split(strings.TrimSuffix(o.Diff, "\n"), "\n")
	if len(lines) > 1 && strings.HasPrefix(lines[0], "--- ") && strings.HasPrefix(lines[1], "+++ ") {
		lines = lines[2:]
	}
	if len(lines) > wholeDiff+20 {
		packed, err := packed(strings.Join(lines, "\n"))
		if err != nil {
			return p, err
		}
		p.More, p.Packed = len(lines)-wholeDiff, packed
		lines = lines[:wholeDiff]
	}
	for _, l := range lines {
		d := diffLine{Text: Clean(l)}
		switch {
		case strings.HasPrefix(l, "+"):
			d.Class = "a"
		case strings.HasPrefix(l, "-"):
			d.Class = "d"
		case strings.HasPrefix(l, "@@"):
			d.Class = "h"
		}
		if n := len(p.Lines); n > 0 && p.Lines[n-1].Class == d.Class { // fewer tags
			p.Lines[n-1].Text += "\n" + d.Text
			continue
		}
		p.Lines = append(p.Lines, d)
	}
	return p, nil
}

// longestValue is how much of a value stands in the table: the diff has all.
const longestValue = 300

func value(v any) string {
	if v == nil {
		return ""
	}
	s, ok := v.(string)
	if !ok {
		text, err := json.Marshal(v)
		if err != nil {
			return fmt.Sprint(v)
		}
		s = string(text)
	}
	if r := []rune(s); len(r) > longestValue {
		s = string(r[:longestValue]) + "…"
	}
	return Clean(s)
}

func packed(text string) (string, error) {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return "", err
	}
	if _, err := z.Write([]byte(Clean(text))); err != nil {
		return "", err
	}
	if err := z.Close(); err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(b.Bytes()), nil
}
