package inventory

import (
	"cmp"
	"encoding/json"
	"fmt"
	"iter"
	"math"
	"slices"
	"strconv"
	"time"

	"brine/bundle"
	"brine/bundle/remedy"
)

// The history: which revision is good, which is kept, where a rollback goes.

// Revision is a bundle that was applied.
type Revision struct {
	Number  int       `json:"number"`
	Digest  string    `json:"digest"` // of the bundle
	Time    time.Time `json:"time"`
	Who     string    `json:"who,omitempty"`
	JobID   string    `json:"jid,omitempty"` // Salt's
	Result  string    `json:"result"`        // applied, partial, not-ready, failed; or, where nothing is kept, interrupted, not-kept
	Objects int       `json:"objects"`
	Parts   int       `json:"parts"`
	Version string    `json:"version"` // of brine
	// Command is what made it: apply, or rollback to RollbackTo. Older versions did not
	// record it. An apply has the RollbackTo of a rollback before it that is no revision of its own.
	Command    string `json:"command,omitempty"`
	RollbackTo int    `json:"rollbackTo,omitempty"`
	// Undid is the number of the apply that a rollback undid, where no revision was kept of that.
	Undid int `json:"undid,omitempty"`
	// Rendered is Bundle.RenderedFrom.
	Rendered string `json:"rendered,omitempty"`
	// Format is that of what the revision keeps, Since the first version that reads it.
	Format int    `json:"format,omitempty"`
	Since  string `json:"since,omitempty"`
}

// Rollback is Revision.Command of a rollback.
const Rollback = "rollback"

// Partial is the Result of a run of chosen objects that ended without an error.
const Partial = "partial"

// NotReady is the Result of a run that applied everything, and of which not all got ready.
const NotReady = "not-ready"

// Interrupted and NotKept are the Results of an apply that has written objects, and of which
// the history keeps no bundle: it was killed, or its history was switched off.
const (
	Interrupted = "interrupted"
	NotKept     = "not-kept"
)

// RevisionInfo is the annotation of a revision's first Secret: the Revision as JSON.
const RevisionInfo = "brine.dev/revision-info"

// Encode is the text of an annotation that says what the revision is.
func (r Revision) Encode() string {
	text, _ := json.Marshal(r)
	return string(text)
}

// Good says whether the run ended without an error.
func (r Revision) Good() bool { return r.Result == "applied" }

// Applied says whether every object was applied, ready or not.
func (r Revision) Applied() bool { return r.Good() || r.Result == NotReady }

// IsKept says whether the history keeps its bundle.
func (r Revision) IsKept() bool { return r.Result != Interrupted && r.Result != NotKept }

// Says whether the revision says all that another one, of a run after it, would say. A
// rollback that undoes what has begun since is always one of its own; so is an apply after a
// rollback where an earlier one has begun, and it ends that. Else nothing says what came last.
func (r Revision) Says(next, begun Revision) bool {
	switch undoes := next.Command == Rollback && begun.Number > r.Number; {
	case r.Digest != next.Digest || undoes:
		return false
	case next.Result == Partial: // it asked for nothing else than that
		return r.Good() || r.Result == Partial
	}
	ends := next.Ends() && r.Command == Rollback && begun.Number > 0
	return !ends && r.Result == next.Result && (next.Rendered == "" || r.Rendered == next.Rendered)
}

// Adopts says whether the revision keeps what was there before the run. Of one that failed that may be
// the same each time: what was refused is adopted by none.
func (r Revision) Adopts(c *Content) bool { return len(c.Before) > 0 && r.Result != "failed" }

// Ends says whether nothing is left of an apply that had begun before the run: not after a rollback,
// which undoes it however often it is repeated, and not where a run was partial.
func (r Revision) Ends() bool { return r.Command != Rollback && r.Result != Partial }

// LastGood is the newest good revision of a history, which has the newest first.
func LastGood(history []Revision) (Revision, bool) {
	return newest(history, Revision.Good)
}

// LastApplied is the newest revision of which every object was applied, ready or not: what
// the cluster is to look like. What a partial run changes is a difference from it. history
// has the newest first.
func LastApplied(history []Revision) (Revision, bool) {
	return newest(history, Revision.Applied)
}

func newest(history []Revision, is func(Revision) bool) (Revision, bool) {
	for r := range standing(history) {
		if is(r) {
			return r, true
		}
	}
	return Revision{}, false
}

// standing are the revisions of a history but those that a later rollback undid, also one
// that failed: a person decided against them.
func standing(history []Revision) iter.Seq[Revision] {
	return func(yield func(Revision) bool) {
		undoes := math.MaxInt
		for _, r := range history {
			if r.Number > undoes {
				continue
			}
			if r.RollbackTo > 0 {
				undoes = r.RollbackTo
			}
			if !yield(r) {
				return
			}
		}
	}
}

// Target is where a rollback without a number goes.
type Target struct {
	Revision
	// Undone is the last apply: what the rollback undoes.
	Undone Revision
	// There: the last revision has the target's content already.
	There bool
	// Further is the next good revision with another content before the target; its
	// Number is 0 if there is none.
	Further Revision
}

// Describe says what the rollback of an inventory does.
func (t Target) Describe(namespace, name string, commands remedy.Commands) string {
	if !t.There {
		return fmt.Sprintf("rolling back to revision %d, the last good one before revision %d, which is undone", t.Number, t.Undone.Number)
	}
	text := fmt.Sprintf("already at revision %d: only what differs from it is applied", t.Number)
	if t.Further.Number > 0 {
		text += "; further back: " + commands.Rollback(namespace, name, strconv.Itoa(t.Further.Number))
	}
	return text
}

// RollbackTarget is the revision that a rollback without a number goes to: it undoes
// the last apply, whatever became of that, however often it is repeated. So the target
// is the last good revision before the last apply, with another content, and none that
// a rollback before that apply undid. history has the newest first; same says whether
// two revisions have the same content. The second value is false if there is no such
// revision.
func RollbackTarget(history []Revision, same func(a, b Revision) bool) (Target, bool) {
	last := slices.IndexFunc(history, func(r Revision) bool { return r.Command != Rollback })
	if last < 0 {
		return Target{}, false
	}
	if i := slices.IndexFunc(history[:last], func(r Revision) bool { return r.Undid > history[last].Number }); i >= 0 { // the inventory object that knew of it was lost
		undone := Revision{Number: history[i].Undid, Result: Interrupted}
		last = slices.IndexFunc(history, func(r Revision) bool { return r.Number < undone.Number })
		history = slices.Insert(slices.Clone(history), last, undone)
	}
	t := Target{Undone: history[last]}
	for r := range standing(history[last:]) {
		switch {
		case r.Number == t.Undone.Number, !r.Good():
		case t.Number == 0 && !same(r, t.Undone):
			t.Revision = r
			t.There = last > 0 && history[0].Good() && same(history[0], r)
		case t.Number > 0 && !same(r, t.Revision):
			t.Further = r
			return t, true
		}
	}
	return t, t.Number > 0
}

// SameDigest says whether two revisions have the same digest. The same content has
// different ones where different keys, or versions of brine, made them.
func SameDigest(a, b Revision) bool { return a.Digest == b.Digest }

// NoTarget says why a history has no revision to go back to, or to compare with, and
// which of its revisions may be chosen: those are no good ones. before is the number
// before which it is looked for, 0 for all.
func NoTarget(history []Revision, before int) string {
	for _, r := range history {
		if r.Good() || before > 0 && r.Number >= before {
			continue
		}
		why := map[string]string{NotReady: "applied, but not all of its objects got ready", Partial: "a partial run"}[r.Result]
		return fmt.Sprintf("revision %d does not count: it is %s", r.Number, cmp.Or(why, r.Result))
	}
	return "the history has no other revision"
}

// Kept are the numbers of the revisions that a limit keeps: the newest, the last
// good one, and those that a rollback without a number goes to and undoes. The apply of
// which there is no revision is in history, too: else the last two would be others.
func Kept(history []Revision, limit int) map[int]bool {
	kept := map[int]bool{}
	newest := bundle.Where(history, Revision.IsKept)
	for _, r := range newest[:min(limit, len(newest))] {
		kept[r.Number] = true
	}
	if r, ok := LastGood(history); ok {
		kept[r.Number] = true
	}
	if t, ok := RollbackTarget(history, SameDigest); ok {
		kept[t.Number], kept[t.Undone.Number] = true, true // without the second, the next rollback would go elsewhere
	}
	return kept
}

// What a revision keeps, and its encoding.
