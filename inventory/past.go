package inventory

import (
	"encoding/json"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"brine/bundle"
)

// The history, and what the inventory object says of it: either may be older than the other.

// Latest is what an inventory object says of its last runs: the last revision, and what has begun
// since.
type Latest struct{ Last, Begun Revision }

// Run is the last one of all.
func (l Latest) Run() Revision {
	if l.Begun.Number > l.Last.Number {
		return l.Begun
	}
	return l.Last
}

// IsStill says whether no other run has ended, or begun, since: what had begun may have ended.
func (l Latest) IsStill(now Latest) bool {
	begun := l.Begun.Number == now.Begun.Number && l.Begun.Time.Equal(now.Begun.Time)
	ended := l.Begun.Number > l.Last.Number && now.Begun.Number == 0 && now.Last.Number == l.Begun.Number && now.Last.Digest == l.Begun.Digest
	return l.Last.Number == now.Last.Number && begun || ended
}

// IsBefore says whether an inventory object that says this is older than the run that made a revision, as
// a backup is that was put back. Runs that were killed leave two revisions at most that it does not
// name: an apply that of the number after the last one, its rollback that of the next.
func (l Latest) IsBefore(r Revision) bool {
	left := max(l.Last.Number+2, l.Begun.Number+1)
	if r.Command != "" && r.Command != Rollback {
		left = l.Last.Number + 1
	}
	return l.Last.Number > 0 && r.Number > left && r.Time.After(l.Last.Time) // else another inventory of the name had it, before
}

// Past is all that is known of an inventory's runs: what its object says of them, and the revisions
// that are there, whatever it says, the newest first.
type Past struct {
	Latest
	There []Revision
}

// HistoryOf are the revisions of which an inventory's Secrets say, the newest first.
func HistoryOf(secrets []metav1.PartialObjectMetadata) []Revision {
	var history []Revision
	for i := range secrets {
		var r Revision
		if json.Unmarshal([]byte(secrets[i].Annotations[RevisionInfo]), &r) == nil && r.Number > 0 {
			history = append(history, r)
		}
	}
	slices.SortFunc(history, func(a, b Revision) int { return b.Number - a.Number })
	return history
}

// Saved are the revisions that count, the newest first. One that the inventory object does not name
// was cut short.
func (p Past) Saved() []Revision {
	return bundle.Where(p.There, func(r Revision) bool {
		return p.Last.Number == 0 || r.Number <= p.Last.Number && !r.isLeftBefore(p.Begun)
	})
}

// Runs are these, and the apply of which there is no revision.
func (p Past) Runs() []Revision {
	history, begun := p.Saved(), p.Begun
	at, has := slices.BinarySearchFunc(history, begun.Number, func(r Revision, n int) int { return n - r.Number })
	if has || begun.Number == 0 { // has: an older version saved it, and does not know of what begins
		return history
	}
	if at < len(history) { // what has its number a rollback left, or the apply itself
		upTo := bundle.Where(p.There, func(r Revision) bool { return r.Number <= begun.Number })
		begun.RollbackTo = Past{Latest: Latest{Last: history[at]}, There: upTo}.LeftBack()
	}
	return slices.Insert(history, at, begun)
}

// Standing are the saved ones but what was undone by a rollback that the inventory object does not know.
func (p Past) Standing() []Revision {
	to := p.LeftBack()
	return bundle.Where(p.Saved(), func(r Revision) bool { return to == 0 || r.Number <= to })
}

// LeftBack is where a rollback went of which the inventory object does not know: it could not be
// written any more, or the run was killed. 0 is nowhere.
func (p Past) LeftBack() int {
	for _, r := range p.There {
		if p.Last.Number == 0 || r.Number <= p.Last.Number {
			break
		}
		if r.RollbackTo > 0 && !r.Time.Before(p.Last.Time) { // else another inventory of the name had it, before
			return r.RollbackTo
		}
	}
	return 0
}

// Beyond is the newest revision, where the inventory object is older than its run; its Number is 0 if it
// is not.
func (p Past) Beyond() Revision {
	if i := slices.IndexFunc(p.There, p.IsBefore); i >= 0 {
		return p.There[i]
	}
	return Revision{}
}

// isLeftBefore says whether a run that was killed left the revision before an apply began that has its
// number: the inventory object names a revision only after it is there. An older version, which does not
// know what has begun, saves its own with that number.
func (r Revision) isLeftBefore(begun Revision) bool {
	own := r.Digest == begun.Digest && r.Command == begun.Command
	return r.Number == begun.Number && r.Since != "" && !own && !r.Time.After(begun.Time)
}
