package review

import (
	"fmt"

	"brine/bundle"
	"brine/bundle/diff"
	"brine/bundle/plan"
)

// Fits is what a CRD that changes means for the resources that are there, and that the
// bundle does not contain. Each line names a resource, and the field.
type Fits struct {
	// Lost are fields that go with the next write. Invalid is what every write is refused
	// for, Later what a write that changes the field is refused for.
	Lost, Invalid, Later []string
	// Unknown is why nothing is known.
	Unknown string
}

// schemaChanges are those of a CRD in more than descriptions; nil if there are none.
func schemaChanges(c *Change) *diff.SchemaChanges {
	if c.Action != plan.Configured || c.ID.GroupKind != bundle.CRDKind {
		return nil
	}
	if s := diff.Schemas(c.Before, c.After); s != nil && len(s.Fields) > 0 {
		return s
	}
	return nil
}

// api is about a CRD whose schema changes: what resources lose, and which do not fit.
func (r *reviewer) api(c *Change) {
	s, f := schemaChanges(c), r.cluster.Fits[c.ID]
	if s == nil {
		return
	}
	if f.Unknown != "" {
		r.unchecked("whether the resources of "+plain(c.ID)+" fit its new schema", f.Unknown, API)
	}
	var details []string
	list := func(lines []string, what string) {
		for i, line := range lines {
			if i == shownFields {
				details = append(details, fmt.Sprintf("and %d more: %s", len(lines)-i, what))
				return
			}
			details = append(details, line+": "+what)
		}
	}
	list(f.Lost, "the field is lost with the next write")
	list(f.Invalid, "every write of it is refused")
	list(f.Later, "the server lets it pass until that field changes (Kubernetes 1.30 and later)")
	switch {
	case s.Breaks():
		r.add(API, c, 0, append(s.Breaking(), details...), "%s; %s on the cluster", s.Summary(), r.count(c.ID, "resource", "resources"))
	case len(details) > 0:
		r.add(API, c, 0, details, "%s; resources on the cluster do not fit", s.Summary())
	}
}
