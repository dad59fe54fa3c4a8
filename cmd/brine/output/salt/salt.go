// Package salt writes a run as Salt reads it.
package salt

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"brine/bundle/report"
	"brine/cmd/brine/output/documents"
	"brine/cmd/brine/output/text"
	"brine/cmd/brine/output/wording"
)

// The formats for Salt: a state's whole return, what cmd.run with
// `stateful: True` reads, and, for scripts/salt, the lines of -o events of
// which the last holds the state's return in place of the result.
const (
	Format        = "salt"
	CommandFormat = "salt-cmd"
	EventsFormat  = "salt-events"
)

// Error is the one JSON object, a line, for a run that never began: bad
// input, bad usage, a cluster that does not answer; or of which it is unknown what it did.
func Error(format string, exitCode int, errs []string, unknown bool) []byte {
	why := cmp.Or(strings.Join(errs, "\n"), "brine failed and gave no reason")
	headline := "Nothing was changed"
	if unknown {
		headline = "Objects may have changed"
	}
	comment := wording.Clean(fmt.Sprintf("%s (exit code %d):\n%s", headline, exitCode, why))
	return withoutResult(format, comment, unknown, report.Event{Time: time.Now(), Run: rand.Text()[:16]}, 1)
}

// withoutResult is what a format says of a run that has no result. last and seq are
// those of the line of -o salt-events.
func withoutResult(format, comment string, changed bool, last report.Event, seq int) []byte {
	if format == CommandFormat {
		return encode(map[string]any{"changed": changed, "comment": comment})
	}
	ret := map[string]any{
		"name": "brine", "result": false, "changes": map[string]any{}, "comment": comment,
		"warnings": []string{}, "sub_state_run": []any{},
	}
	if format == EventsFormat {
		return encode(lastLine(last, seq, ret))
	}
	return encode(ret)
}

// lastLine is the line of -o salt-events that holds a return.
func lastLine(e report.Event, seq int, ret map[string]any) documents.EventLine {
	e.Payload = report.Finished{}
	l := documents.LineOf(e, seq)
	l.Return = ret
	return l
}

func encode(v any) []byte {
	var b bytes.Buffer
	enc := wording.NewEncoder(&b)
	if err := enc.Encode(v); err != nil {
		b.Reset()
		_ = enc.Encode(map[string]any{
			"name": "brine", "result": false, "changed": false, "changes": map[string]any{},
			"comment": "brine could not write its result as JSON: " + err.Error(),
		})
	}
	return b.Bytes()
}

// printer writes one JSON object to Out when the run is over (of
// salt-events: lines as things happen, that one last). Salt keeps
// what cmd.run's command writes to Err among the changes, so progress is shown
// there only to a person at a terminal.
type printer struct {
	mu       sync.Mutex
	out      *wording.Stream
	format   string
	progress wording.Printer // nil without a terminal
	started  time.Time
	begun    bool
	over     bool
	seq      int
	last     report.Event
}

// New is the printer.
func New(o wording.Options) wording.Printer {
	p := &printer{out: &wording.Stream{W: o.Out}, format: o.Format}
	if o.Terminal {
		p.progress = text.NewProgress(o)
	}
	return p
}

func (p *printer) Event(e report.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return
	}
	if p.progress != nil {
		p.progress.Event(e)
	}
	if !p.begun {
		p.begun, p.started = true, e.Time.Add(-e.Elapsed)
	}
	p.seq++
	p.last = e
	end, _ := wording.CleanEvent(e).Payload.(report.Finished) // Salt prints what it is given as it is
	p.over = end.Result != nil
	var line any
	switch {
	case !p.over && p.format == EventsFormat:
		line = documents.LineOf(e, p.seq)
	case !p.over:
		return
	case p.format == CommandFormat:
		line = answerOf(wording.FillLists(end.Result)).command()
	case p.format == EventsFormat:
		l := lastLine(e, p.seq, State(wording.FillLists(end.Result), p.started))
		l.Inventory = &end.Result.Inventory
		line = l
	default:
		line = State(wording.FillLists(end.Result), p.started)
	}
	p.out.Print(string(encode(line)))
}

// Close writes the object that has to be there even if a run that began never
// came to its result.
func (p *printer) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var err error
	if p.progress != nil {
		err = p.progress.Close()
	}
	if p.begun && !p.over {
		p.over = true
		lost := errors.New("the run ended without a result")
		comment := lost.Error() + ": objects may have changed. Run it again to continue"
		p.out.Print(string(withoutResult(p.format, comment, true, p.last, p.seq+1)))
		err = errors.Join(lost, err)
	}
	return errors.Join(p.out.Err, err)
}
