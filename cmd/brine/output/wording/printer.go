// Package wording has what all formats share: their options, the words for actions, outcomes
// and risks, and what makes any text safe to show. It prints nothing.
package wording

import (
	"io"
	"os"
	"slices"
	"time"

	"golang.org/x/term"

	"brine/bundle/report"
)

// Options are how and where to show a run.
type Options struct {
	Format string // one of Formats; "" is text
	Out    io.Writer
	Err    io.Writer
	// Terminal: Err is a terminal, so progress may be a block that is redrawn.
	Terminal bool
	// Shared: Out is that same terminal.
	Shared bool
	// Width and Height are asked for every frame; nil or 0 is 80 by 24.
	Width, Height func() int
	// Color: Out shows colours. Err shows them where both it and Terminal are set.
	Color bool
	// ErrColor: Err shows colours.
	ErrColor bool
	// Diff shows the diff of every object that changes.
	Diff bool
	// Quiet shows warnings and what went wrong, and no progress. A preview is
	// still shown, and documents (json, events) stay whole.
	Quiet bool
	// Verbose lists unchanged objects one by one, prints every reason why an
	// object is waited for, and shows long diffs whole.
	Verbose bool
	// Heartbeat is the least time between two heartbeats shown, and the time
	// that an object may take before the reason is printed.
	Heartbeat time.Duration
	// Previous is what a file of metrics held before.
	Previous string
	// Now is the clock of the live view; nil is time.Now.
	Now func() time.Time
}

// Printer shows one run. Its methods may be called by several goroutines.
type Printer interface {
	// Event shows one event. Errors of writing are kept for Close.
	Event(report.Event)
	// Close ends the output: it removes the live view and gives the cursor
	// back, and so has to be called however the process ends. It returns the
	// first error of writing to Out. It may be called more than once.
	Close() error
}

// Streams sets all that Options ask about the two streams: where they lead and
// what can be shown there. NO_COLOR (no-color.org) and TERM=dumb are honoured.
func (o *Options) Streams(out, err *os.File) {
	o.Out, o.Err = out, err
	plain := os.Getenv("NO_COLOR") != ""
	dumb := os.Getenv("TERM") == "dumb"
	o.Terminal = term.IsTerminal(int(err.Fd())) && !dumb
	o.Color = term.IsTerminal(int(out.Fd())) && !dumb && !plain
	o.ErrColor = o.Terminal && !plain
	outInfo, _ := out.Stat()
	errInfo, _ := err.Stat()
	o.Shared = o.Terminal && os.SameFile(outInfo, errInfo)
	o.Width = func() int { width, _, _ := term.GetSize(int(err.Fd())); return width } // 0 where it is not known
	o.Height = func() int { _, height, _ := term.GetSize(int(err.Fd())); return height }
}

// Stream is a writer that keeps its first error and writes no more after it.
type Stream struct {
	W     io.Writer
	Err   error
	Paint Paint
}

// Print writes a text; an error is kept.
func (s *Stream) Print(text string) { _, _ = io.WriteString(s, text) }

// Write writes until the first error, which is kept.
func (s *Stream) Write(p []byte) (int, error) {
	if s.Err != nil {
		return 0, s.Err
	}
	n, err := s.W.Write(p)
	s.Err = err
	return n, err
}

// FillLists sets what is never null in JSON. The result is over: no other goroutine
// reads or writes it.
func FillLists(r *report.Result) *report.Result {
	if r.Objects == nil {
		r.Objects = []*report.ObjectResult{}
	}
	r.Objects = slices.DeleteFunc(r.Objects, func(o *report.ObjectResult) bool { return o == nil })
	for _, o := range r.Objects {
		if o.Needs == nil {
			o.Needs = []report.Need{}
		}
	}
	if r.Errors == nil {
		r.Errors = []string{}
	}
	if r.Warnings == nil {
		r.Warnings = []string{}
	}
	if r.Summary.Requests == nil {
		r.Summary.Requests = map[string]int{}
	}
	return r
}
