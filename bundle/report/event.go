// Package report is what a run says: its events while it goes on, its Result at
// the end, and the exit code. The Recorder makes both of what the run finds, and
// takes the values of Secrets out of all of it.
package report

import (
	"time"

	"brine/bundle"
)

// Event is one thing that happened. Its Payload says what.
type Event struct {
	Time    time.Time
	Elapsed time.Duration // since the run began
	Total   int           // objects in the plan
	Done    int           // of which nothing more is to be done
	Preview bool          // nothing is changed
	Run     string        // names the run: all its events have the same, and no other run has it
	Payload
}

// Type is the name of the event's payload in -o events.
func (e Event) Type() string {
	name, _ := e.about()
	return name
}

// Object is the object that the event is about, in its state as of now; nil where
// it is about none.
func (e Event) Object() *ObjectResult {
	if e.Payload == nil {
		return nil
	}
	_, object := e.about()
	return object
}

// Payload is one of the types below, in about the order they come in.
type Payload interface {
	about() (name string, object *ObjectResult) // the name is that in -o events
}

type (
	// Started is the beginning of a run. Result holds Command, Inventory and DryRun, which
	// distinguish a preview from an apply, and where they are known Objects with
	// their Needs, by which the live view shows what waits for what.
	Started struct{ Result *Result }
	// Acting is a request for the object that is about to be sent.
	Acting struct{ Object *ObjectResult }
	// Retrying is a request that is sent again after a transient answer.
	Retrying struct {
		Object  *ObjectResult
		Error   string
		Attempt int
	}
	// Acted is the server's answer. Object.Action says what was done.
	Acted struct{ Object *ObjectResult }
	// Waiting is an object that is not ready yet, for another reason than before.
	Waiting struct {
		Object *ObjectResult
		Reason string
	}
	// BecameReady is an object that is ready now (or, after a deletion, gone).
	BecameReady struct{ Object *ObjectResult }
	// NotReady is an object that failed, or whose time ran out.
	NotReady struct {
		Object *ObjectResult
		Reason string
	}
	// Diagnosed is an object of which the cause was found: Object.Why.
	Diagnosed struct{ Object *ObjectResult }
	// Heartbeat says that nothing happened for a while. Pending is waited for, the
	// longest first.
	Heartbeat struct{ Pending []Pending }
	// Warning is a message for people. Attempt counts those of a request.
	Warning struct {
		Message string
		Attempt int
	}
	// Finished is the end of a run. Result holds everything.
	Finished struct{ Result *Result }
)

func (Started) about() (string, *ObjectResult)       { return "started", nil }
func (p Acting) about() (string, *ObjectResult)      { return "acting", p.Object }
func (p Retrying) about() (string, *ObjectResult)    { return "retrying", p.Object }
func (p Acted) about() (string, *ObjectResult)       { return "acted", p.Object }
func (p Waiting) about() (string, *ObjectResult)     { return "waiting", p.Object }
func (p BecameReady) about() (string, *ObjectResult) { return "ready", p.Object }
func (p NotReady) about() (string, *ObjectResult)    { return "not-ready", p.Object }
func (p Diagnosed) about() (string, *ObjectResult)   { return "diagnosed", p.Object }
func (Heartbeat) about() (string, *ObjectResult)     { return "heartbeat", nil }
func (Warning) about() (string, *ObjectResult)       { return "warning", nil }
func (Finished) about() (string, *ObjectResult)      { return "finished", nil }

// Pending is an object that is waited for.
type Pending struct {
	Object bundle.ID `text:"name"`
	Reason string
	Since  time.Time
}

// ID names the object.
func (p *Pending) ID() bundle.ID { return p.Object }
