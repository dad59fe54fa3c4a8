// Package plan decides what has to be done. The ordered bundle, the inventory, the
// live objects and the user's options come in; steps, or the problems that stop the
// run, go out. It is pure: the same input gives the same plan, and no I/O is done.
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
	Detached   Action = "detached" // left on the cluster, no longer a member
	Skipped    Action = "skipped"  // nothing was done; the reason says why
	Failed     Action = "failed"
	// Awaited is an object outside the bundle that objects of it depend on: it is
	// waited for, and never written. It is not counted.
	Awaited Action = "awaited"
)
