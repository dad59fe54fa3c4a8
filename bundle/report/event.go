// Package report is what a run says: its events while it goes on, its Result at
// the end, and the exit code. The Recorder makes both of what the run finds, and
// takes the values of Secrets out of all of it.
package report

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"brine/bundle"
	"brine/bundle/diff"
	"brine/bundle/plan"
)

// Event is one thing that happened. Its Payload says what.
type Event struct {
	Time    time.Time
	Elapsed time.Duration // since the run began
	Total   int           // objects in the plan
	Done    int           // of which nothing more is to be done
	Payload
}

// Type is the name of the event's payload in -o events.
func (e Event) Type() string { return e.name() }

// Object is the object that the event is about, in its state as of now; nil where
// it is about none.
func (e Event) Object() *ObjectResult {
	if about, ok := e.Payload.(objectPayload); ok {
		return about.object()
	}
	return nil
}

// WithObject is the same event about another version of its object.
func (e Event) WithObject(o *ObjectResult) Event {
	if about, ok := e.Payload.(objectPayload); ok {
		e.Payload = about.with(o)
	}
	return e
}

// Payload is one of the types below, in about the order they come in.
type Payload interface {
	name() string // in -o events
}

// objectPayload is a Payload about one object.
type objectPayload interface {
	Payload
	object() *ObjectResult
	with(*ObjectResult) Payload // the same about another version of the object
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

func (Started) name() string     { return "started" }
func (Acting) name() string      { return "acting" }
func (Retrying) name() string    { return "retrying" }
func (Acted) name() string       { return "acted" }
func (Waiting) name() string     { return "waiting" }
func (BecameReady) name() string { return "ready" }
func (NotReady) name() string    { return "not-ready" }
func (Diagnosed) name() string   { return "diagnosed" }
func (Heartbeat) name() string   { return "heartbeat" }
func (Warning) name() string     { return "warning" }
func (Finished) name() string    { return "finished" }

func (p Acting) object() *ObjectResult      { return p.Object }
func (p Retrying) object() *ObjectResult    { return p.Object }
func (p Acted) object() *ObjectResult       { return p.Object }
func (p Waiting) object() *ObjectResult     { return p.Object }
func (p BecameReady) object() *ObjectResult { return p.Object }
func (p NotReady) object() *ObjectResult    { return p.Object }
func (p Diagnosed) object() *ObjectResult   { return p.Object }

func (p Acting) with(o *ObjectResult) Payload      { p.Object = o; return p }
func (p Retrying) with(o *ObjectResult) Payload    { p.Object = o; return p }
func (p Acted) with(o *ObjectResult) Payload       { p.Object = o; return p }
func (p Waiting) with(o *ObjectResult) Payload     { p.Object = o; return p }
func (p BecameReady) with(o *ObjectResult) Payload { p.Object = o; return p }
func (p NotReady) with(o *ObjectResult) Payload    { p.Object = o; return p }
func (p Diagnosed) with(o *ObjectResult) Payload   { p.Object = o; return p }

// Pending is an object that is waited for.
type Pending struct {
	ID     bundle.ID
	Reason string
	Since  time.Time
}

// Need is an edge as shown to users: the object that is needed, whether it
// has to be applied or ready, and why.
type Need struct {
	Group     string `json:"group"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Want      string `json:"want"`
	Reason    string `json:"reason"`
}

// ID names the object that is needed.
func (n Need) ID() bundle.ID {
	return bundle.ID{GroupKind: schema.GroupKind{Group: n.Group, Kind: n.Kind}, Namespace: n.Namespace, Name: n.Name}
}

// ObjectResult is one object in a Result.
type ObjectResult struct {
	Group     string        `json:"group"`
	Version   string        `json:"version"`
	Kind      string        `json:"kind"`
	Namespace string        `json:"namespace"`
	Name      string        `json:"name"`
	Source    bundle.Source `json:"source"`
	Action    plan.Action   `json:"action"`
	// Ready is "ready", "not-ready", "failed", or "" where readiness was not
	// looked at (dry runs, --wait=applied, skipped objects).
	Ready string `json:"ready"`
	// Reason says why: why it is not ready, was skipped, is pruned.
	Reason string `json:"reason"`
	Needs  []Need `json:"needs"`
	// Diff is what changes, a unified diff of YAML; Secrets' values are masked.
	Diff string `json:"diff"`
	// Changes is the same field by field, for machines.
	Changes []diff.Change `json:"changes,omitempty"`
	Error   string        `json:"error,omitempty"`
	// Verified says who vouches for a dry run's answer: "server",
	// "server (surrogate namespace)", "bundle CRD", "not verified: why".
	Verified string `json:"verified,omitempty"`
	// Why is the chain down to the cause of an object that is not ready.
	Why []string `json:"why,omitempty"`
	// Seconds since the run began: when the request was sent, when the server
	// had answered, when the object was ready. Zero where it did not happen.
	StartedAt float64 `json:"startedAt,omitempty"`
	ActedAt   float64 `json:"actedAt,omitempty"`
	ReadyAt   float64 `json:"readyAt,omitempty"`
}

// ID names the object.
func (o *ObjectResult) ID() bundle.ID {
	return bundle.ID{GroupKind: schema.GroupKind{Group: o.Group, Kind: o.Kind}, Namespace: o.Namespace, Name: o.Name}
}

// About is a message about the object: with its name, and where it is in the
// bundle.
func (o *ObjectResult) About(message string) string {
	text := bundle.Name(o.ID()) + ": " + message
	if at := o.Source.String(); at != "" {
		text = at + ": " + text
	}
	return text
}

// Inventory names the inventory of a run.
type Inventory struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	ID        string `json:"id"`
}

// Summary counts the objects of a run.
type Summary struct {
	Created    int            `json:"created"`
	Configured int            `json:"configured"`
	Unchanged  int            `json:"unchanged"`
	Recreated  int            `json:"recreated"`
	Pruned     int            `json:"pruned"`
	Detached   int            `json:"detached"`
	Skipped    int            `json:"skipped"`
	Failed     int            `json:"failed"`
	Ready      int            `json:"ready"`
	NotReady   int            `json:"notReady"`
	Requests   map[string]int `json:"requests"` // API requests sent, by verb
	Seconds    float64        `json:"seconds"`
}

// DryRun says who answers instead of the cluster being changed.
type DryRun string

// The values of --dry-run.
const (
	None   DryRun = "none"   // the cluster is changed
	Client DryRun = "client" // no server is asked
	Server DryRun = "server" // the server answers, and stores nothing
)

// Compared names two bundles that are compared: "revision 3", "bundle shop.yaml".
type Compared struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// Result is what a run came to: the document of -o json, in apiVersion
// brine.dev/v1. Fields are added to it, never renamed.
type Result struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Command    string          `json:"command,omitempty"` // apply, preview, destroy, …
	Inventory  Inventory       `json:"inventory"`
	DryRun     DryRun          `json:"dryRun"`
	Summary    Summary         `json:"summary"`
	Objects    []*ObjectResult `json:"objects"`
	Errors     []string        `json:"errors"`
	Warnings   []string        `json:"warnings"`
	// MissingRights are what the user may not do and the run needs, such as
	// "patch deployments.apps in namespace shop". Only of dry runs.
	MissingRights []string `json:"missingRights,omitempty"`
	// ExitCode is the process's, Interrupted the signal's name that ended it.
	ExitCode    int    `json:"exitCode"`
	Interrupted string `json:"interrupted,omitempty"`
	Revision    int    `json:"revision,omitempty"`
	// Compared are the two bundles of brine diff.
	Compared *Compared `json:"compared,omitempty"`
}
