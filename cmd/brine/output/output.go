// Package output picks the printer of a run, and shows checks, images and revisions. It renders
// what bundle/report defines, and knows nothing else. Results go to Out, progress to Err.
package output

import (
	"fmt"
	"strings"
	"time"

	"brine/bundle/report"
	"brine/cmd/brine/output/documents"
	"brine/cmd/brine/output/salt"
	"brine/cmd/brine/output/text"
	"brine/cmd/brine/output/wording"
)

// Formats are what -o takes, the default first.
var Formats = []string{"text", "json", "events", "html", "github", "gitlab", salt.Format, salt.CommandFormat, salt.EventsFormat}

// New is the printer for o.Format. Where it is none, that is the error of writing.
func New(o wording.Options) wording.Printer {
	if o.Now == nil {
		o.Now = time.Now
	}
	switch o.Format {
	case "", "text":
		return text.New(o)
	case "events":
		return documents.NewEvents(o)
	case salt.Format, salt.CommandFormat, salt.EventsFormat:
		return salt.New(o)
	}
	render := documents.Renderers[o.Format]
	if render == nil {
		render = func(wording.Options, *report.Result, time.Time) error {
			return fmt.Errorf("output format %q is not known: use one of %s", o.Format, strings.Join(Formats, ", "))
		}
	}
	return documents.New(o, render)
}
