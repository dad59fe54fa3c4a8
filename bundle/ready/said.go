package ready

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"brine/bundle"
)

// A custom resource that was just written has no status until its controller comes to it, or
// one without the condition Ready that others of its kind have. That says nothing yet, and for
// many kinds never will: it is waited for, for a bounded time.
const (
	FirstStatus      = 5 * time.Second  // where it is not known whether there will be one
	firstStatusKnown = 30 * time.Second // where another object of the kind has one
)

// What an object that counts as ready has not said yet.
const (
	NoStatus = "status"
	NoReady  = "condition Ready"
)

// Said is what objects of a custom kind say of themselves.
type Said struct {
	Status, Ready bool // one of them has a status, or a condition Ready
	ReadyColumn   bool // kubectl prints a condition Ready
	Silent        bool // one that was waited for said nothing in time
	Still         bool // one that was changed said nothing new in time
}

// SaidBy is what each kind says.
type SaidBy map[schema.GroupKind]*Said

// Of is what a kind says.
func (all SaidBy) Of(kind schema.GroupKind) *Said {
	if all[kind] == nil {
		all[kind] = &Said{}
	}
	return all[kind]
}

// Hear notes what an object says.
func (all SaidBy) Hear(kind schema.GroupKind, live *unstructured.Unstructured) {
	if Custom(kind.Group) {
		k := all.Of(kind)
		k.Ready = k.Ready || SaysReady(live)
		k.Status = k.Status || k.Ready || !Of(live, nil, Hints{}).Unseen
	}
}

// Defined notes what a CRD says about its kind.
func (all SaidBy) Defined(crd *unstructured.Unstructured) {
	if d, ok := bundle.DefinitionOf(crd); ok && bundle.ReadyColumn(crd) {
		all.Of(d.Kind).ReadyColumn = true
	}
}

// Custom guesses whether a group is of CRDs: those of Kubernetes have no dot, or one name
// before k8s.io.
func Custom(group string) bool {
	name, own := strings.CutSuffix(group, ".k8s.io")
	return strings.Contains(group, ".") && (!own || strings.Contains(name, "."))
}

// Missing is what an object that counts as ready has not said yet; "" where it is nothing.
func (s *Said) Missing(status Status) string {
	switch {
	case status.Unseen:
		return NoStatus
	case status.Unsaid && (s.Ready || s.ReadyColumn):
		return NoReady
	}
	return ""
}

// Time is how long after a write that is waited for; hasStatus: the resource has a status of
// its own.
func (s *Said) Time(group string, hasStatus bool, rules *Rules, status Status) time.Duration {
	switch {
	case rules != nil && rules.StatusTimeout != nil:
		return *rules.StatusTimeout
	case !hasStatus || !Custom(group) || s.Silent:
		return 0
	case status.Unseen && s.Status, s.Ready:
		return firstStatusKnown
	}
	return FirstStatus
}

// HasNo is the status of an object that is waited for, because it has not said something yet.
func HasNo(missing string, limit time.Duration) Status {
	return Status{State: NotReady, Reason: fmt.Sprintf("has no %s yet (counts as ready after %s without one)", missing, limit)}
}

// Since is the status of an object that was written at a time, as an apply would judge it that
// began to wait for it then.
func (s *Said) Since(written, now time.Time, group string, hasStatus bool, rules *Rules, status Status) Status {
	missing := s.Missing(status)
	limit := s.Time(group, hasStatus, rules, status)
	if status.State != Ready || missing == "" || now.Sub(written) >= limit {
		return status
	}
	no := HasNo(missing, limit)
	no.Rule = status.Rule
	return no
}
