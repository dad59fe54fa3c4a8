package output

import (
	"fmt"
	"io"
	"time"

	"brine/bundle/report"
)

// document writes the result when the run is over, as one text. Progress goes to Err.
type document struct {
	o      Options
	text   *text
	result *report.Result
	render func(r *report.Result, now time.Time) string
}

// documents are the formats of files that reports are written in, but for JSON, and of
// annotations, by their names.
var documents = map[string]func(Options, *report.Result, time.Time) string{
	"html":   func(_ Options, r *report.Result, now time.Time) string { return htmlPage(r, at(now)) },
	"md":     func(_ Options, r *report.Result, _ time.Time) string { return markdown(r) },
	"xml":    func(_ Options, r *report.Result, now time.Time) string { return junit(r, now) },
	"prom":   func(o Options, r *report.Result, now time.Time) string { return metrics(r, now, o.Previous) },
	"github": func(_ Options, r *report.Result, _ time.Time) string { return github(r) },
	"gitlab": func(_ Options, r *report.Result, _ time.Time) string { return gitlab(r) },
}

// Reports are the formats that files of --report are written in, by what their names
// end with.
var Reports = []string{"html", "json", "md", "xml", "prom"}

func at(now time.Time) string { return now.UTC().Format("2006-01-02 15:04:05 UTC") }

func newDocument(o Options, render func(Options, *report.Result, time.Time) string) *document {
	return &document{o: o, text: newProgress(o), render: func(r *report.Result, now time.Time) string { return render(o, r, now) }}
}

func (d *document) Event(e report.Event) {
	d.text.Event(e)
	if end, ok := e.Payload.(report.Finished); ok {
		d.result = cleanResult(end.Result)
	}
}

func (d *document) Close() error {
	err := d.text.Close()
	if d.result == nil {
		return err
	}
	text := d.render(complete(d.result), d.o.Now())
	d.result = nil
	if _, err := io.WriteString(d.o.Out, text); err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	return nil
}
