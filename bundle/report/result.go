package report

import (
	"time"

	"brine/bundle"
	"brine/bundle/diff"
	"brine/bundle/plan"
	"brine/bundle/remedy"
	"brine/bundle/review"
)

// The Result: the document of -o json.

// Need is an edge as shown to users: the object that is needed, whether it
// has to be applied or ready, and why.
type Need struct {
	bundle.Reference
	Want   string `json:"want" text:"name"`
	Reason string `json:"reason"`
}

// ObjectResult is one object in a Result.
type ObjectResult struct {
	Group     string        `json:"group" text:"name"`
	Version   string        `json:"version" text:"name"`
	Kind      string        `json:"kind" text:"name"`
	Namespace string        `json:"namespace" text:"name"`
	Name      string        `json:"name" text:"name"`
	Source    bundle.Source `json:"source"`
	Action    plan.Action   `json:"action"`
	// Ready is "ready", "not-ready", "failed", or "" where readiness was not
	// looked at (dry runs, --wait=applied, skipped objects).
	Ready string `json:"ready" text:"name"`
	// Reason says why: why it is not ready, was skipped, is pruned.
	Reason string `json:"reason"`
	// Rule is what decided over Ready, and on which field; of a status only.
	Rule string `json:"rule,omitempty"`
	// NotServed says, in a status for another version of Kubernetes, why that does
	// not serve the object as it was applied.
	NotServed string `json:"notServed,omitempty"`
	Needs     []Need `json:"needs"`
	// Diff is what changes, a unified diff of YAML; Secrets' values are masked.
	Diff string `json:"diff" text:"content"`
	// Changes is the same field by field, for machines.
	Changes []diff.Change `json:"changes,omitempty"`
	// Claims are the PersistentVolumeClaims of a recreated StatefulSet whose templates
	// ask for other sizes.
	Claims []plan.Claim `json:"claims,omitempty"`
	// Schema is what changes in what a CRD defines.
	Schema *diff.SchemaChanges `json:"schema,omitempty"`
	Error  string              `json:"error,omitempty"`
	// Unknown: whether the write that failed was stored, as its answer was lost, or how much of it: the
	// object was deleted to be created again, or only its first write went well.
	Unknown bool `json:"unknown,omitempty"`
	// Verified says who vouches for a dry run's answer: "server",
	// "server (surrogate namespace)", "bundle CRD", "not verified: why".
	Verified string `json:"verified,omitempty"`
	// Why is the chain down to the cause of an object that is not ready.
	Why []string `json:"why,omitempty"`
	// Seconds since the run began: when all that it needs was there, when the
	// request was sent, when the server had answered, when the object was ready (or
	// gone). Zero where it did not happen.
	QueuedAt  float64 `json:"queuedAt,omitempty"`
	StartedAt float64 `json:"startedAt,omitempty"`
	ActedAt   float64 `json:"actedAt,omitempty"`
	ReadyAt   float64 `json:"readyAt,omitempty"`
	// After is what came last of all that the object had to wait for.
	After *Need `json:"after,omitempty"`
	// Waits are why it was not ready after its request, in the order of time.
	Waits []Wait `json:"waits,omitempty"`
}

// ID names the object.
func (o *ObjectResult) ID() bundle.ID {
	return bundle.Reference{Group: o.Group, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}.ID()
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
	Namespace string `json:"namespace" text:"name"`
	Name      string `json:"name" text:"name"`
	ID        string `json:"id" text:"name"`
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
	Requests   map[string]int `json:"requests" text:"name"` // API requests sent, by verb
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
	From string `json:"from" text:"name"`
	To   string `json:"to" text:"name"`
}

// Result is what a run came to: the document of -o json, in apiVersion
// brine.dev/v1. Fields are added to it, never renamed.
type Result struct {
	APIVersion string          `json:"apiVersion" text:"name"`
	Kind       string          `json:"kind" text:"name"`
	Command    string          `json:"command,omitempty" text:"name"` // apply, preview, destroy, …
	Inventory  Inventory       `json:"inventory"`
	DryRun     DryRun          `json:"dryRun"`
	Server     string          `json:"server,omitempty" text:"name"` // the API server's URL
	Commands   remedy.Commands `json:"-" text:"name"`                // how its output shows commands
	Summary    Summary         `json:"summary"`
	Objects    []*ObjectResult `json:"objects"`
	// Outside are objects that are not in the bundle, and were waited for because
	// objects of it depend on them. Their action is "awaited".
	Outside  []*ObjectResult `json:"outside,omitempty"`
	Errors   []string        `json:"errors"`
	Warnings []string        `json:"warnings"`
	// MissingRights are what the user may not do and the run needs, such as
	// "patch deployments.apps in namespace shop". Only of dry runs.
	MissingRights []string `json:"missingRights,omitempty"`
	// Help are commands that say more about what went wrong: "brine help webhook".
	Help []string `json:"help,omitempty"`
	// ExitCode is the process's, Interrupted the signal's name that ended it.
	ExitCode    int    `json:"exitCode"`
	Interrupted string `json:"interrupted,omitempty" text:"name"`
	Revision    int    `json:"revision,omitempty"`
	// Rollback is the outcome of the rollback of a run that failed.
	Rollback *Result `json:"rollback,omitempty"`
	// Compared are the two bundles of brine diff.
	Compared *Compared `json:"compared,omitempty"`
	// Plan is what a preview saved.
	Plan *SavedPlan `json:"plan,omitempty"`
	// Wanted is what a drift is from: "revision 3", "bundle shop.yaml".
	Wanted string `json:"wanted,omitempty" text:"name"`
	// CriticalPath is where the time went; not of dry runs.
	CriticalPath *Path `json:"criticalPath,omitempty"`
	// Review says which images and versions a preview changes, what is dangerous, and
	// which objects change alike.
	Review *review.Review `json:"review,omitempty"`
}

// SavedPlan is a plan that was saved.
type SavedPlan struct {
	Place   string    `json:"place" text:"name"` // a file, or "Secret NAMESPACE/NAME"
	Digest  string    `json:"digest"`            // names it to who approves it
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires,omitzero"` // none where it may be carried out as long as it holds
	// Kept: it was there before, and still holds. Was is the digest of what was there.
	Kept bool   `json:"kept"`
	Was  string `json:"was,omitempty"`
}
