// Package output picks the printer of a run, and shows checks, images and revisions. It renders
// what bundle/report defines, and knows nothing else. Results go to Out, progress to Err.
package output

import (
	"fmt"
	"strings"
	"time"

	"brine/cmd/brine/output/documents"
	"brine/cmd/brine/output/salt"
	"brine/cmd/brine/output/text"
	"brine/cmd/brine/output/wording"
)

// Formats are what -o takes, the default first.
var Formats = []string{"text", "json", "events", "html", "github", "gitlab", salt.Format, salt.CommandFormat, salt.EventsFormat}

// New is the printer for o.Format.
func New(o wording.Options) (wording.Printer, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	switch o.Format {
	case "", "text":
		return text.New(o), nil
	case "json":
		return documents.NewJSON(o), nil
	case "events":
		return documents.NewEvents(o), nil
	case salt.Format, salt.CommandFormat, salt.EventsFormat:
		return salt.New(o), nil
	}
	if render := documents.Renderers[o.Format]; render != nil {
		return documents.New(o, render), nil
	}
	return nil, fmt.Errorf("output format %q is not known: use one of %s", o.Format, strings.Join(Formats, ", "))
}
