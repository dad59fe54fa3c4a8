package review

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"brine/bundle"
	"brine/bundle/plan"
)

// What was looked for, what could not be, and the pods that come.

// Unchecked is what could not be looked for, and why.
type Unchecked struct {
	What string `json:"what"`
	Why  string `json:"why"`
}

const unread = "no cluster was read"

// Absence names a type of risks where it is said that there is none.
func (t Type) Absence() string {
	return map[Type]string{
		Removed: "SLS and files that are gone", Data: "deleted data", Deleted: "deleted workloads and Services", Recreated: "recreated objects", Missing: "pods that name what is not there",
		Restart: "restarting pods", Rights: "wider rights", Privileges: "new privileges on nodes", Webhook: "new or changed webhooks and admission policies",
		Network: "changed Services or routes", API: "APIs that lose fields or versions", Conflict: "fields taken from other managers",
		Unverified: "objects about which the server could not be asked",
	}[t]
}

// unchecked notes that something could not be looked for: risks of these types may be
// there although none was found.
func (r *reviewer) unchecked(what, why string, types ...Type) {
	r.open = append(r.open, types...)
	r.skipped = append(r.skipped, Unchecked{what, why})
}

// limits notes what the review could not look at.
func (r *reviewer) limits() {
	var failed, unknown, gone []string
	active := false
	for _, c := range r.changes {
		if custom := !bundle.IsBuiltIn(c.ID.GroupKind.Group); custom && (c.Action == plan.Pruned || c.Action == plan.Recreated && !c.Orphans) {
			gone = append(gone, plain(c.ID))
		}
		switch c.Action {
		case plan.Unchanged:
			continue
		case plan.Failed, plan.Skipped:
			failed = append(failed, plain(c.ID))
		case plan.Created, plan.Configured, plan.Recreated:
			if c.After == nil {
				unknown = append(unknown, plain(c.ID))
			}
		}
		active = true
	}
	if !active {
		return
	}
	after := []Type{Missing, Restart, Rights, Privileges, Webhook, Network, API}
	if len(failed) > 0 {
		r.unchecked("what would become of "+bundle.Some(failed, shownFields), "the dry run failed, or they are skipped", append(after, Recreated)...)
	}
	if len(unknown) > 0 {
		r.unchecked("what "+bundle.Some(unknown, shownFields)+" would be", "the server did not say", after...)
	}
	if len(gone) > 0 {
		r.unchecked("what goes with "+bundle.Some(gone, shownFields), "their controllers decide", Data, Deleted)
	}
	if r.cluster.Unread {
		types := []Type{Conflict, Unverified}
		if !slices.ContainsFunc(r.changes, func(c *Change) bool { return c.Before != nil }) {
			types = append(types, Data, Deleted, Recreated, Restart, Network, API)
		}
		r.unchecked("what is on the cluster: pods, PodDisruptionBudgets, resources of CRDs, fields of other managers", unread, types...)
	}
	if r.cluster.BudgetsUnknown != "" {
		r.unchecked("PodDisruptionBudgets", r.cluster.BudgetsUnknown)
	}
	for id, n := range r.cluster.Counts {
		if n.Unknown != "" {
			r.unchecked("how many objects "+plain(id)+" has", n.Unknown)
		}
	}
	for i := range r.grants {
		g := &r.grants[i]
		if why := r.cluster.Unknown[roleOf(g.by)]; g.unknown != "" {
			if why == "" {
				why = map[bool]string{true: unread, false: "it is neither in the bundle nor on the cluster"}[r.cluster.Unread]
			}
			r.unchecked("what "+g.unknown+" allows", why)
		}
	}
	slices.SortFunc(r.skipped, func(a, b Unchecked) int {
		return cmp.Or(strings.Compare(a.What, b.What), strings.Compare(a.Why, b.Why))
	})
	r.skipped = slices.Compact(r.skipped)
	r.clear = append(r.clear, bundle.Where(Types, func(t Type) bool {
		return t != Share && !slices.Contains(r.open, t) && !slices.ContainsFunc(r.found, func(risk Risk) bool { return risk.Type == t })
	})...)
}

// Start is pods that there are not yet.
type Start struct {
	Object bundle.Reference `json:"object"`
	// Pods is how many; 0 where the nodes of the cluster decide.
	Pods int `json:"pods"`
	// Note says what the number is of, where it is not the replicas of a new workload.
	Note string `json:"note,omitempty"`
}

// starts are the pods that come with new workloads, or with more replicas.
func (r *reviewer) starts() []Start {
	var found []Start
	for _, c := range r.changes {
		if c.After == nil || c.Action != plan.Created && c.Action != plan.Configured {
			continue
		}
		s := Start{Object: bundle.ReferTo(c.ID)}
		spec := bundle.At[map[string]any](c.After.Object, "spec")
		switch gk := c.ID.GroupKind; {
		case c.Action == plan.Configured:
			was, is := replicas(c.Before), replicas(c.After)
			if s.Pods = is - was; s.Pods <= 0 {
				continue
			}
			s.Note = fmt.Sprintf("scales from %s to %d", plural(was, "pod", "pods"), is)
		case gk == bundle.PodKind:
			s.Pods = 1
		case gk == bundle.DaemonSetKind:
			s.Note = "one on each node that it selects"
		case gk == bundle.JobKind:
			s.Pods, s.Note = orOne(spec, "parallelism"), "a Job"
		case isWorkload(gk):
			if s.Pods = orOne(spec, "replicas"); s.Pods == 0 {
				s.Note = "no replicas"
			}
		default:
			continue
		}
		if nodes := r.nodes[c.ID]; nodes != "" && c.Action == plan.Created {
			s.Note = strings.TrimPrefix(s.Note+"; "+nodes, "; ")
		}
		found = append(found, s)
	}
	return found
}

// orOne is a number of pods that is written, or the server's default.
func orOne(object map[string]any, path ...string) int {
	if n, given := bundle.Integer(object, path...); given {
		return n
	}
	return 1
}
