// Package text shows a run to people: line by line, with a live view at a terminal.
package text

import (
	"cmp"
	"fmt"
	"sync"
	"time"

	"brine/bundle"
	"brine/bundle/plan"
	"brine/bundle/report"
	"brine/cmd/brine/output/wording"
)

// Printer shows a run line by line. Every line stands alone: when, what, which
// object, why, where from. Nothing is printed twice.
type Printer struct {
	mu       sync.Mutex
	o        wording.Options
	out, err *wording.Stream
	live     *live // nil where there is none
	brief    bool  // the result itself is shown elsewhere: no preview, only its counts

	header   report.Result               // of the Started event
	acted    map[bundle.ID]time.Duration // when the server answered
	waited   map[bundle.ID]time.Duration // since when it is waited for
	reported map[bundle.ID]string        // the last reason or error printed
	warned   map[string]bool
	lastBeat time.Duration // of the last line
	over     bool
}

// New is the printer.
func New(o wording.Options) *Printer {
	t := &Printer{
		o:        o,
		out:      &wording.Stream{W: o.Out, Paint: wording.Paint(o.Color)},
		err:      &wording.Stream{W: o.Err, Paint: wording.Paint(o.ErrColor)},
		acted:    map[bundle.ID]time.Duration{},
		waited:   map[bundle.ID]time.Duration{},
		reported: map[bundle.ID]string{},
		warned:   map[string]bool{},
	}
	if o.Terminal && !o.Quiet {
		t.live = newLive(o)
		go t.live.run()
		t.err.W = t.live
		if o.Shared {
			t.out.W = t.live
		}
	}
	return t
}

// NewProgress is text for Err alone, for formats whose Out belongs to a machine.
func NewProgress(o wording.Options) *Printer {
	o.Out, o.Color, o.Terminal = o.Err, o.ErrColor, false
	t := New(o)
	t.brief = true
	return t
}

// Event shows an event.
func (t *Printer) Event(e report.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p, ok := e.Payload.(report.Acted); ok && p.Object.Action == plan.Unchanged && t.live == nil && !t.o.Verbose {
		id := p.Object.ID()
		t.acted[id] = e.Elapsed
		delete(t.reported, id)
		return // most of a large run, of which nothing is shown
	}
	e = wording.CleanEvent(e)
	if t.live != nil {
		t.live.update(e)
	}
	switch p := e.Payload.(type) {
	case report.Started:
		t.started(e, p.Result)
	case report.Warning:
		t.warning(e.Elapsed, p.Message)
	case report.Heartbeat:
		t.heartbeat(e, p.Pending)
	case report.Finished:
		t.finished(p.Result)
	case report.Retrying:
		t.retrying(e, p)
	case report.Acted:
		t.actedOn(e, p.Object)
	case report.Waiting:
		t.waiting(e, p)
	case report.BecameReady:
		t.ready(e, p.Object)
	case report.NotReady:
		t.notReady(e, p)
	}
}

// Close ends the live view; it has the first error of writing to Out.
func (t *Printer) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.live != nil {
		t.live.stop()
	}
	return t.out.Err
}

// line writes "   0.42s  created     Deployment.apps ns/name: reason  (a.yaml:1)".
func (t *Printer) line(s *wording.Stream, at time.Duration, verb, what, reason, source string) {
	if reason = wording.Line(reason); reason != "" {
		what += ": " + reason
	}
	if source != "" {
		source = "  " + s.Paint.In(wording.Dim, "("+source+")")
	}
	s.Print(fmt.Sprintf("%s  %s  %s%s\n", s.Paint.In(wording.Dim, clock(at)),
		s.Paint.In(wording.VerbColor(verb), fmt.Sprintf("%-10s", verb)), what, source))
	t.lastBeat = at
}

func clock(d time.Duration) string { return fmt.Sprintf("%7.2fs", d.Seconds()) }

func (t *Printer) preview() bool { return wording.IsPreview(&t.header) }

// results are not shown line by line in a preview, nor where that was asked for.
func (t *Printer) silent() bool { return t.o.Quiet || t.preview() }

func (t *Printer) started(e report.Event, header *report.Result) {
	if header != nil {
		t.header = *header
	}
	if t.o.Quiet {
		return
	}
	what := cmp.Or(t.header.Command, "apply")
	if t.preview() && what != "preview" {
		what += " (dry run)"
	}
	what += fmt.Sprintf(" of %s", bundle.Count(e.Total, "object"))
	if t.header.Inventory.Name != "" {
		what += ", inventory " + wording.InventoryName(t.header.Inventory)
	}
	t.line(t.err, e.Elapsed, "started", what, "", "")
}

func (t *Printer) retrying(e report.Event, p report.Retrying) {
	id, why := p.Object.ID(), wording.Line(p.Error)
	if t.o.Quiet || t.live != nil || (t.reported[id] == why && !t.o.Verbose) {
		return
	}
	t.reported[id] = why
	if p.Attempt > 1 {
		why += fmt.Sprintf(" (attempt %d)", p.Attempt)
	}
	t.line(t.err, e.Elapsed, "retrying", bundle.Name(id), why, "")
}

func (t *Printer) actedOn(e report.Event, o *report.ObjectResult) {
	id := o.ID()
	t.acted[id] = e.Elapsed
	delete(t.reported, id)
	if t.silent() || (o.Action == plan.Unchanged && !t.o.Verbose) {
		return
	}
	why := o.Reason
	if o.Action == plan.Failed {
		why = wording.FirstSentence(cmp.Or(o.Error, o.Reason)) // all of it is in the list at the end
	}
	t.line(t.out, e.Elapsed, string(o.Action), bundle.Name(id), why, o.Source.String())
	if t.o.Diff && o.Diff != "" && !t.brief && o.Action != plan.Failed {
		t.out.Print(t.out.Paint.Diff(wording.ShortDiff(o, t.o.Verbose), "            "))
	}
}

// waiting prints a reason only for an object that takes long.
func (t *Printer) waiting(e report.Event, p report.Waiting) {
	id := p.Object.ID()
	since, ok := t.waited[id]
	if !ok {
		since = e.Elapsed
		t.waited[id] = since
	}
	why := wording.Line(cmp.Or(p.Reason, p.Object.Reason))
	late := t.o.Heartbeat > 0 && e.Elapsed-since >= t.o.Heartbeat
	if t.silent() || t.live != nil || t.reported[id] == why || (!late && !t.o.Verbose) {
		return
	}
	t.reported[id] = why
	t.line(t.err, e.Elapsed, "waiting", bundle.Name(id), why, "")
}

// ready is printed if it came later than the server's answer, or counts as ready for a
// reason: another object that is ready at once has its line already.
func (t *Printer) ready(e report.Event, o *report.ObjectResult) {
	id := o.ID()
	_, waited := t.waited[id]
	at, acted := t.acted[id]
	t.forget(id)
	if t.silent() || (!waited && o.Reason == "" && (!acted || e.Elapsed-at < 100*time.Millisecond)) {
		return
	}
	verb, why := "ready", o.Reason
	if o.Action == plan.Pruned {
		verb, why = "gone", ""
	}
	t.line(t.out, e.Elapsed, verb, bundle.Name(id), why, o.Source.String())
}

func (t *Printer) notReady(e report.Event, p report.NotReady) {
	id := p.Object.ID()
	t.forget(id)
	if t.silent() {
		return
	}
	verb := "not ready"
	if p.Object.Ready == report.StateFailed {
		verb = "failed"
	}
	t.line(t.out, e.Elapsed, verb, bundle.Name(id), wording.Line(cmp.Or(p.Reason, p.Object.Reason)), p.Object.Source.String())
}

func (t *Printer) forget(id bundle.ID) {
	delete(t.waited, id)
	delete(t.reported, id)
}

// shownPending is how many objects a heartbeat names.
const shownPending = 5

func (t *Printer) heartbeat(e report.Event, pending []report.Pending) {
	if t.o.Quiet || t.live != nil || e.Elapsed-t.lastBeat < t.o.Heartbeat/2 {
		return
	}
	what := fmt.Sprintf("%d of %d done", e.Done, e.Total)
	if n := len(pending); n > 0 {
		what += fmt.Sprintf(", still waiting for %d", n)
	}
	t.line(t.err, e.Elapsed, "working", what, "", "")
	for i, p := range pending {
		if i == shownPending {
			t.line(t.err, e.Elapsed, "waiting", fmt.Sprintf("and %d more", len(pending)-i), "", "")
			break
		}
		name := bundle.Name(p.Object)
		if !p.Since.IsZero() && !e.Time.IsZero() {
			name += fmt.Sprintf(" for %.0fs", e.Time.Sub(p.Since).Seconds())
		}
		t.reported[p.Object] = wording.Line(p.Reason)
		t.line(t.err, e.Elapsed, "waiting", name, p.Reason, "")
	}
}

func (t *Printer) warning(at time.Duration, message string) {
	if t.warned[message] {
		return
	}
	t.warned[message] = true
	t.line(t.err, at, "warning", wording.Line(message), "", "")
}

func (t *Printer) finished(r *report.Result) {
	if t.live != nil {
		t.live.stop()
	}
	if r == nil || t.over {
		return
	}
	t.over = true
	switch {
	case wording.IsRefused(r):
		t.err.Print(t.refusal(r))
	case r.Compared != nil && t.brief:
	case r.Compared != nil:
		t.out.Print(t.compared(r))
	case wording.IsPreview(r) && !t.brief:
		t.out.Print(t.previewed(r))
	default:
		t.out.Print(t.closing(r))
	}
}
