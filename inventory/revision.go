package inventory

import "time"

// Revision is a bundle that was applied.
type Revision struct {
	Number  int       `json:"number"`
	Digest  string    `json:"digest"` // of the bundle
	Time    time.Time `json:"time"`
	Who     string    `json:"who,omitempty"`
	JobID   string    `json:"jid,omitempty"` // Salt's
	Result  string    `json:"result"`        // applied, not-ready, failed, interrupted
	Objects int       `json:"objects"`
	Parts   int       `json:"parts"`
	Version string    `json:"version"` // of brine
}
