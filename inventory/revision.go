package inventory

import "time"

// Revision is a bundle that was applied.
type Revision struct {
	Number  int       `json:"number"`
	Digest  string    `json:"digest"` // of the bundle
	Time    time.Time `json:"time"`
	Who     string    `json:"who,omitempty"`
	JobID   string    `json:"jid,omitempty"` // Salt's
	Result  string    `json:"result"`        // applied, partial, not-ready, failed
	Objects int       `json:"objects"`
	Parts   int       `json:"parts"`
	Version string    `json:"version"` // of brine
}

// Partial is the Result of a run of chosen objects that ended without an error.
const Partial = "partial"

// Good says whether the run ended without an error.
func (r Revision) Good() bool { return r.Result == "applied" }

// LastGood is the newest good revision of a history, which has the newest first.
func LastGood(history []Revision) (Revision, bool) {
	for _, r := range history {
		if r.Good() {
			return r, true
		}
	}
	return Revision{}, false
}

// Earlier is the revision that a rollback goes to by default: the newest good one
// that has another content than the last.
func Earlier(history []Revision, last Revision) (Revision, bool) {
	for _, r := range history {
		if r.Number < last.Number && r.Digest != last.Digest && r.Good() {
			return r, true
		}
	}
	return Revision{}, false
}

// Kept are the numbers of the revisions that a limit keeps: the newest, the last
// good one, and the one that a rollback goes to by default.
func Kept(history []Revision, limit int) map[int]bool {
	kept := map[int]bool{}
	for _, r := range history[:min(limit, len(history))] {
		kept[r.Number] = true
	}
	if len(history) == 0 {
		return kept
	}
	if r, ok := LastGood(history); ok {
		kept[r.Number] = true
	}
	if r, ok := Earlier(history, history[0]); ok {
		kept[r.Number] = true
	}
	return kept
}
