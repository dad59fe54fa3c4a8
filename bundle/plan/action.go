// Package plan decides what has to be done: bundle, inventory and live objects
// in, plan out. It is a pure function and does no I/O.
package plan

// Action is what a run does to one object, or did.
type Action string

// The actions, named as they are counted in a Result's summary.
const (
	Created    Action = "created"
	Configured Action = "configured"
	Unchanged  Action = "unchanged"
	Recreated  Action = "recreated" // deleted and created: a field cannot change
	Pruned     Action = "pruned"
	Detached   Action = "detached" // left on the cluster, no longer ours
	Skipped    Action = "skipped"  // nothing was done; the reason says why
	Failed     Action = "failed"
)
