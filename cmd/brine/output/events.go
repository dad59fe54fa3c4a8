package output

import (
	"encoding/json"
	"sync"
	"time"

	"brine/bundle"
	"brine/bundle/plan"
	"brine/bundle/report"
)

// eventLine is one line of -o events. Fields are added to it, never renamed;
// those that do not belong to its type are left out.
type eventLine struct {
	Type           report.Type       `json:"type"`
	Time           string            `json:"time"`           // RFC 3339 with nanoseconds, UTC
	ElapsedSeconds float64           `json:"elapsedSeconds"` // since the run began
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
	Group     string `json:"group"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Reason    string `json:"reason"`
	Since     string `json:"since,omitempty"` // RFC 3339
}

// eventPrinter writes one JSON object a line to Out, at once. The last is of
// type "finished" and carries the whole Result.
type eventPrinter struct {
	mu       sync.Mutex
	out      *stream
	over     bool
	progress *text // shows nothing but why a run was refused
}

func newEvents(o Options) *eventPrinter {
	o.Quiet = true
	return &eventPrinter{out: &stream{w: o.Out}, progress: newProgress(o)}
}

func (p *eventPrinter) Event(e report.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over { // "finished" is the last line, whatever comes late
		return
	}
	p.over = e.Type == report.Finished
	enc := json.NewEncoder(plainJSON{p.out})
	enc.SetEscapeHTML(false)
	if err := enc.Encode(lineOf(e)); err != nil && p.out.err == nil {
		p.out.err = err
	}
	if p.over && e.Result != nil && refused(e.Result) {
		p.progress.Event(e)
	}
}

func (p *eventPrinter) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.err
}

func lineOf(e report.Event) eventLine {
	l := eventLine{
		Type: e.Type, Time: e.Time.UTC().Format(time.RFC3339Nano), ElapsedSeconds: e.Elapsed.Seconds(),
		Reason: e.Reason, Error: e.Error, Message: e.Message, Attempt: e.Attempt, Total: e.Total, Done: e.Done,
	}
	switch {
	case e.Result != nil && e.Type == report.Finished:
		l.Result = complete(e.Result)
	case e.Result != nil:
		l.Command, l.DryRun, l.Inventory = e.Result.Command, e.Result.DryRun, &e.Result.Inventory
	}
	if o := e.Object; o != nil {
		l.Object = &eventObject{Group: o.Group, Version: o.Version, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}
		if o.Source.File != "" {
			l.Object.Source = &o.Source
		}
		l.Action, l.Ready = o.Action, o.Ready
		l.Reason, l.Error = first(e.Reason, o.Reason), first(e.Error, o.Error)
		if e.Type == report.NotReady || e.Type == report.Diagnosed {
			l.Why = o.Why
		}
	}
	for _, p := range e.Pending {
		at := ""
		if !p.Since.IsZero() {
			at = p.Since.UTC().Format(time.RFC3339Nano)
		}
		l.Pending = append(l.Pending, eventPending{
			Group: p.ID.GroupKind.Group, Kind: p.ID.GroupKind.Kind, Namespace: p.ID.Namespace, Name: p.ID.Name,
			Reason: p.Reason, Since: at,
		})
	}
	return l
}
