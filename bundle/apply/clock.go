package apply

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"brine/bundle"
	"brine/bundle/plan"
	"brine/bundle/ready"
	"brine/bundle/report"
)

// What time decides: what is read again, what has not changed for too long, what still has no status.

// An object that no watch has seen for this long is read, a few at a time.
const (
	distrust    = 20 * time.Second
	distrustful = 4
)

// clock watches the time: each object's, and the heartbeat's. The run's is its
// context's.
func (e *scheduler) clock() {
	now := time.Now()
	asked := 0
	stuck := stuck{e: e, now: now}
	for _, n := range e.awaited(nil) {
		// A watch may hang without an error, behind a proxy that lost its server.
		if now.Sub(n.checked) > distrust && now.Sub(e.lastSeen[n.ID.GroupKind]) > distrust && asked < distrustful && !n.polled {
			n.checked = now
			asked++
			e.read(n.resource, []*node{n}, nil)
		}
		if n.state == waiting && e.statusOverdue(n, now) {
			continue
		}
		if n.rules != nil && n.rules.Timeout != nil && *n.rules.Timeout > 0 && now.Sub(n.since) > *n.rules.Timeout {
			e.settleNotReady(n, report.StateNotReady, fmt.Sprintf("not ready after %s: %s", *n.rules.Timeout, n.reason))
		} else if limit := stuck.after(n); limit > 0 {
			e.settleNotReady(n, report.StateNotReady, fmt.Sprintf("not ready, and unchanged for %s: %s", limit, n.reason))
		}
	}
	stuck.ask()
	if e.Heartbeat > 0 && now.Sub(e.reported) > e.Heartbeat {
		e.reported = now
		if pending := e.pending(); len(pending) > 0 {
			e.Record.Emit(report.Heartbeat{Pending: pending})
		}
	}
}

func (e *scheduler) pending() []report.Pending {
	var pending []report.Pending
	for _, n := range e.nodes {
		switch n.state {
		case waiting, failing:
			pending = append(pending, report.Pending{Object: n.ID, Reason: n.reason, Since: n.since})
		case acting:
			pending = append(pending, report.Pending{Object: n.ID, Reason: cmp.Or(n.reason, "waits for the server's answer"), Since: e.Record.Begin.Add(time.Duration(n.Result.StartedAt * float64(time.Second)))})
		}
	}
	slices.SortStableFunc(pending, func(a, b report.Pending) int { return a.Since.Compare(b.Since) })
	return pending
}

func (n *node) noteChange(live *unstructured.Unstructured) {
	n.seen = time.Now()
	if n.Latest == nil || !sameButTimes(n.Latest.Object, live.Object) {
		n.changed = n.seen
	}
}

// sameButTimes: a controller that only says that it still lives changes nothing.
func sameButTimes(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		for name := range b {
			_, had := a[name]
			ok = ok && (had || isVersion(name))
		}
		for name := range a {
			ok = ok && (isVersion(name) || sameButTimes(a[name], b[name]))
		}
		return ok
	case []any:
		b, ok := b.([]any)
		ok = ok && len(a) == len(b)
		for i := range a {
			ok = ok && sameButTimes(a[i], b[i])
		}
		return ok
	case string:
		b, ok := b.(string)
		return ok && (a == b || isTime(a) && isTime(b))
	}
	return a == b
}

func isVersion(field string) bool { return field == "resourceVersion" || field == "managedFields" }

func isTime(s string) bool {
	_, err := time.Parse(time.RFC3339, s)
	return err == nil
}

// stuck looks, at one moment, for objects that are not ready and do not change any more.
type stuck struct {
	e    *scheduler
	now  time.Time
	open map[*node]bool // whether something that it needs is in progress
	late map[schema.GroupVersionResource][]*node
}

// after is how long n has not changed, if it is not waited for any longer; otherwise 0.
// A watch may be behind, so that its object is read before that.
func (s *stuck) after(n *node) time.Duration {
	limit := s.e.FailAfter
	if n.rules != nil && n.rules.FailAfter != nil {
		limit = *n.rules.FailAfter
	}
	if limit == 0 || n.state != waiting || n.Deletes() || n.probing || s.now.Sub(n.changed) <= limit || s.awaits(n) {
		return 0
	}
	if n.seen.After(n.changed.Add(limit)) {
		return limit
	}
	if s.now.Sub(n.checked) > time.Second {
		n.checked = s.now
		if s.late == nil {
			s.late = map[schema.GroupVersionResource][]*node{}
		}
		s.late[n.resource.GVR] = append(s.late[n.resource.GVR], n)
	}
	return 0
}

// ask reads those that no watch has seen of late.
func (s *stuck) ask() {
	for _, nodes := range s.late {
		s.e.read(nodes[0].resource, nodes, nil)
	}
}

// awaits says whether something is in progress that n waits for: its first status, or
// what it needs. What has failed is not.
func (s *stuck) awaits(n *node) bool {
	if n.Latest != nil && !n.statusBy.IsZero() && ready.Of(n.Latest, n.rules, s.e.Hints).State == ready.Ready {
		return true
	}
	open, known := s.open[n]
	if known {
		return open
	}
	if s.open == nil {
		s.open = map[*node]bool{}
	}
	for _, on := range s.e.needs(n) {
		if open = on.state < failing || s.awaits(on); open {
			break
		}
	}
	s.open[n] = open
	return open
}

// A custom resource that was just written has no status until its controller comes to it, or
// one without the condition Ready that others of its kind have. That says nothing yet, and for
// many kinds never will: it is waited for, for a bounded time.
const (
	firstStatus      = 5 * time.Second  // where nobody knows whether there will be one
	firstStatusKnown = 30 * time.Second // where another object of the kind has one
)

// said is what objects of a custom kind say of themselves.
type said struct {
	status, ready bool // one of them has a status, or a condition Ready
	readyColumn   bool // kubectl prints a condition Ready
	silent        bool // one that was waited for said nothing in time
}

type saidBy map[schema.GroupKind]*said

// whatIsSaid is what is known before a plan is carried out.
func whatIsSaid(p *plan.Plan) saidBy {
	all := saidBy{}
	for _, s := range p.Steps {
		if s.Live != nil {
			all.hear(s.ID.GroupKind, s.Live)
		}
		if s.Object != nil {
			if d, ok := bundle.DefinitionOf(s.Object.Content); ok && bundle.ReadyColumn(s.Object.Content) {
				all.of(d.Kind).readyColumn = true
			}
		}
	}
	return all
}

func (all saidBy) of(kind schema.GroupKind) *said {
	if all[kind] == nil {
		all[kind] = &said{}
	}
	return all[kind]
}

func (all saidBy) hear(kind schema.GroupKind, live *unstructured.Unstructured) {
	if custom(kind.Group) {
		k := all.of(kind)
		k.ready = k.ready || ready.SaysReady(live)
		k.status = k.status || k.ready || !ready.Of(live, nil, ready.Hints{}).Unseen
	}
}

// custom guesses whether a group is of CRDs: those of Kubernetes have no dot, or one name
// before k8s.io.
func custom(group string) bool {
	name, own := strings.CutSuffix(group, ".k8s.io")
	return strings.Contains(group, ".") && (!own || strings.Contains(name, "."))
}

// unsaid is what an object that counts as ready has not said yet; "" where nothing is missing.
// One that had a status without a condition Ready before is not to have one now.
func (e *scheduler) unsaid(n *node, status ready.Status) string {
	kind := e.said.of(n.ID.GroupKind)
	switch {
	case status.Unseen:
		return "status"
	case status.Unsaid && (kind.ready || kind.readyColumn) && (n.Live == nil || ready.SaysReady(n.Live) || ready.Of(n.Live, nil, e.Hints).Unseen):
		return "condition Ready"
	}
	return ""
}

// firstStatusTime is how long to wait for what an object that was written has not said.
func (e *scheduler) firstStatusTime(n *node, status ready.Status) time.Duration {
	kind := e.said.of(n.ID.GroupKind)
	switch {
	case n.Action == plan.Unchanged || n.Action == plan.Awaited:
		return 0
	case n.rules != nil && n.rules.StatusTimeout != nil:
		return *n.rules.StatusTimeout
	case !n.resource.Status || !custom(n.ID.GroupKind.Group) || kind.silent:
		return 0
	case status.Unseen && kind.status, kind.ready:
		return firstStatusKnown
	}
	return firstStatus
}

// awaitsStatus says whether an object that is ready for want of a status is to be waited
// for still, and waits for it.
func (e *scheduler) awaitsStatus(n *node, status ready.Status) bool {
	missing := e.unsaid(n, status)
	limit := e.firstStatusTime(n, status)
	if missing == "" || limit == 0 {
		return false
	}
	why := ready.Status{State: ready.NotReady, Reason: fmt.Sprintf("has no %s yet (counts as ready after %s without one)", missing, limit)}
	if n.state == waiting {
		e.progress(n, why)
	} else {
		e.wait(n, why)
	}
	if n.statusBy.IsZero() || n.missing != missing {
		n.statusBy, n.missing = time.Now().Add(limit), missing
	}
	return true
}

// statusOverdue ends the wait for what an object says of itself: who has not done so by now
// is not going to, for this object or another one of the kind.
func (e *scheduler) statusOverdue(n *node, now time.Time) bool {
	if n.statusBy.IsZero() || now.Before(n.statusBy) || n.Latest == nil {
		return false
	}
	status := ready.Of(n.Latest, n.rules, e.Hints)
	missing := e.unsaid(n, status)
	if status.State != ready.Ready || missing == "" {
		return false
	}
	if kind := e.said.of(n.ID.GroupKind); (!status.Unseen || !kind.status) && !kind.ready && (n.rules == nil || n.rules.StatusTimeout == nil) {
		kind.silent = true
	}
	if n.Reason == "" {
		n.Reason = fmt.Sprintf("no %s after %s, so it counts as ready", missing, now.Sub(n.since).Round(time.Second))
	}
	e.becameReady(n, n.Latest)
	return true
}
