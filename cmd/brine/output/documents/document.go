// Package documents writes a run for other programs: JSON, events, and the reports in HTML,
// Markdown, JUnit, metrics and annotations.
package documents

import (
	"fmt"
	"io"
	"time"

	"brine/bundle/report"
	"brine/cmd/brine/output/html"
	"brine/cmd/brine/output/text"
	"brine/cmd/brine/output/wording"
)

// document writes the result when the run is over, as one text. Progress goes to Err.
type document struct {
	o      wording.Options
	text   *text.Printer
	result *report.Result
	render render
}

// render writes a result to o.Out.
type render func(o wording.Options, r *report.Result, now time.Time) error

// Renderers are the formats of files that reports are written in, but for JSON, and of
// annotations, by their names. The page has every object in it, so it is never whole in
// memory.
var Renderers = map[string]render{
	"html":   func(o wording.Options, r *report.Result, now time.Time) error { return html.Page(o.Out, r, at(now)) },
	"md":     inMemory(func(_ wording.Options, r *report.Result, _ time.Time) string { return markdown(r) }),
	"xml":    inMemory(func(_ wording.Options, r *report.Result, now time.Time) string { return junit(r, now) }),
	"prom":   inMemory(func(o wording.Options, r *report.Result, now time.Time) string { return metrics(r, now, o.Previous) }),
	"github": inMemory(func(_ wording.Options, r *report.Result, _ time.Time) string { return github(r) }),
	"gitlab": inMemory(func(_ wording.Options, r *report.Result, _ time.Time) string { return gitlab(r) }),
}

func inMemory(text func(wording.Options, *report.Result, time.Time) string) render {
	return func(o wording.Options, r *report.Result, now time.Time) error {
		_, err := io.WriteString(o.Out, text(o, r, now))
		return err
	}
}

// Reports are the formats that files of --report are written in, by what their names
// end with.
var Reports = []string{"html", "json", "md", "xml", "prom"}

func at(now time.Time) string { return now.UTC().Format("2006-01-02 15:04:05 UTC") }

// New is the printer.
func New(o wording.Options, render render) wording.Printer {
	return &document{o: o, text: text.NewProgress(o), render: render}
}

// Event shows progress, and keeps the result.
func (d *document) Event(e report.Event) {
	d.text.Event(e)
	if end, ok := e.Payload.(report.Finished); ok {
		d.result = wording.CleanResult(end.Result)
	}
}

func (d *document) Close() error {
	err := d.text.Close()
	if d.result == nil {
		return err
	}
	r := wording.FillLists(d.result)
	d.result = nil
	if err := d.render(d.o, r, d.o.Now()); err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	return nil
}
