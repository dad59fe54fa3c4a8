package documents

import (
	"cmp"
	"sync"
	"time"

	"brine/bundle"
	"brine/bundle/plan"
	"brine/bundle/report"
	"brine/cmd/brine/output/text"
	"brine/cmd/brine/output/wording"
)

// The lines of -o events.

// EventLine is one line of -o events. Fields are added to it, never renamed;
// those that do not belong to its type are left out.
type EventLine struct {
	Type           string            `json:"type"`
	Time           string            `json:"time"`           // RFC 3339 with nanoseconds, UTC
	ElapsedSeconds float64           `json:"elapsedSeconds"` // since the run began
	Seq            int               `json:"seq"`            // 1, 2, … in a run
	Run            string            `json:"run"`            // names the run
	Preview        bool              `json:"preview"`        // nothing is changed
	Command        string            `json:"command,omitempty"`
	DryRun         report.DryRun     `json:"dryRun,omitempty"`
	Inventory      *report.Inventory `json:"inventory,omitempty"`
	Object         *eventObject      `json:"object,omitempty"`
	Action         plan.Action       `json:"action,omitempty"`
	Ready          string            `json:"ready,omitempty"`
	Reason         string            `json:"reason,omitempty"`
	Why            []string          `json:"why,omitempty"`
	Error          string            `json:"error,omitempty"`
	Message        string            `json:"message,omitempty"`
	Attempt        int               `json:"attempt,omitempty"`
	Total          int               `json:"total"`
	Done           int               `json:"done"`
	Pending        []eventPending    `json:"pending,omitempty"`
	Result         *report.Result    `json:"result,omitempty"`
	Return         map[string]any    `json:"return,omitempty"` // of salt-events, in place of Result
}

type eventObject struct {
	Group     string         `json:"group"`
	Version   string         `json:"version"`
	Kind      string         `json:"kind"`
	Namespace string         `json:"namespace"`
	Name      string         `json:"name"`
	Source    *bundle.Source `json:"source,omitempty"`
}

type eventPending struct {
	bundle.FullReference
	Reason string `json:"reason"`
	Since  string `json:"since,omitempty"` // RFC 3339
}

// eventPrinter writes one JSON object a line to Out, at once. The last is of
// type "finished" and carries the whole Result.
type eventPrinter struct {
	mu       sync.Mutex
	out      *wording.Stream
	over     bool
	seq      int
	progress *text.Printer // shows nothing but why a run was refused
}

// NewEvents is the printer of -o events.
func NewEvents(o wording.Options) wording.Printer {
	o.Quiet = true
	return &eventPrinter{out: &wording.Stream{W: o.Out}, progress: text.NewProgress(o)}
}

func (p *eventPrinter) Event(e report.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over { // "finished" is the last line, whatever comes late
		return
	}
	end, over := e.Payload.(report.Finished)
	p.over = over
	p.seq++
	enc := wording.NewEncoder(p.out)
	if err := enc.Encode(LineOf(e, p.seq)); err != nil && p.out.Err == nil {
		p.out.Err = err
	}
	if p.over && end.Result != nil && wording.IsRefused(end.Result) {
		p.progress.Event(e)
	}
}

func (p *eventPrinter) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.Err
}

// LineOf is an event as one line of -o events, seq the number of it.
func LineOf(e report.Event, seq int) EventLine {
	l := EventLine{
		Type: e.Type(), Time: e.Time.UTC().Format(time.RFC3339Nano), ElapsedSeconds: e.Elapsed.Seconds(),
		Total: e.Total, Done: e.Done, Seq: seq, Run: e.Run, Preview: e.Preview,
	}
	if o := e.Object(); o != nil {
		l.Object = &eventObject{Group: o.Group, Version: o.Version, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}
		if o.Source.File != "" {
			l.Object.Source = &o.Source
		}
		l.Action, l.Ready, l.Reason, l.Error = o.Action, o.Ready, o.Reason, o.Error
	}
	switch p := e.Payload.(type) {
	case report.Started:
		if p.Result != nil {
			l.Command, l.DryRun, l.Inventory = p.Result.Command, p.Result.DryRun, &p.Result.Inventory
		}
	case report.Finished:
		if p.Result != nil {
			l.Result = wording.FillLists(p.Result)
		}
	case report.Retrying:
		l.Error, l.Attempt = cmp.Or(p.Error, l.Error), p.Attempt
	case report.Waiting:
		l.Reason = cmp.Or(p.Reason, l.Reason)
	case report.NotReady:
		l.Reason, l.Why = cmp.Or(p.Reason, l.Reason), p.Object.Why
	case report.Diagnosed:
		l.Why = p.Object.Why
	case report.Warning:
		l.Message, l.Attempt = p.Message, p.Attempt
	case report.Heartbeat:
		l.Pending = pendingOf(p.Pending)
	}
	return l
}

func pendingOf(pending []report.Pending) []eventPending {
	var out []eventPending
	for _, p := range pending {
		at := ""
		if !p.Since.IsZero() {
			at = p.Since.UTC().Format(time.RFC3339Nano)
		}
		out = append(out, eventPending{bundle.ReferFullyTo(p.Object), p.Reason, at})
	}
	return out
}
