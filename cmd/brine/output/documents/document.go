// Package documents writes a run for other programs: JSON, events, and the reports in HTML,
// Markdown, JUnit, metrics and annotations.
package documents

import (
	"errors"
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
	over   bool
	render render
}

// render writes a result to o.Out.
type render func(o wording.Options, r *report.Result, now time.Time) error

// Renderers are the formats of files that reports are written in, and of annotations, by
// their names. The page and JSON have every object in them, so they are never whole in
// memory.
var Renderers = map[string]render{
	"json": func(o wording.Options, r *report.Result, _ time.Time) error { return resultJSON(o.Out, r) },
	"html": func(o wording.Options, r *report.Result, now time.Time) error {
		return written(html.Page(o.Out, wording.CleanResult(r), now.UTC().Format("2006-01-02 15:04:05 UTC")))
	},
	"md":     inMemory(func(_ wording.Options, r *report.Result, _ time.Time) string { return markdown(r) }),
	"xml":    inMemory(func(_ wording.Options, r *report.Result, now time.Time) string { return junit(r, now) }),
	"prom":   inMemory(func(o wording.Options, r *report.Result, now time.Time) string { return metrics(r, now, o.Previous) }),
	"github": inMemory(func(_ wording.Options, r *report.Result, _ time.Time) string { return github(r) }),
	"gitlab": inMemory(func(_ wording.Options, r *report.Result, _ time.Time) string { return gitlab(r) }),
}

func inMemory(text func(wording.Options, *report.Result, time.Time) string) render {
	return func(o wording.Options, r *report.Result, now time.Time) error {
		_, err := io.WriteString(o.Out, text(o, wording.CleanResult(r), now))
		return written(err)
	}
}

func written(err error) error {
	if err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	return nil
}

// Reports are the formats that files of --report are written in, by what their names
// end with.
var Reports = []string{"html", "json", "md", "xml", "prom"}

// New is the printer.
func New(o wording.Options, render render) wording.Printer {
	return &document{o: o, text: text.NewProgress(o), render: render}
}

// Event shows progress, and keeps the result.
func (d *document) Event(e report.Event) {
	d.text.Event(e)
	if end, ok := e.Payload.(report.Finished); ok {
		d.result = end.Result
	}
}

func (d *document) Close() error {
	err := d.text.Close()
	switch {
	case d.over:
		return err
	case d.result == nil:
		return errors.Join(errors.New("the run ended without a result"), err)
	}
	d.over = true
	return errors.Join(d.render(d.o, wording.FillLists(d.result), d.o.Now()), err)
}
