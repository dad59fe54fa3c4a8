package apply

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"brine/bundle/report"
)

// What time decides: what is read again, and the heartbeat.

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
		if n.doubted && now.Sub(n.since) > failureBefore {
			e.judge(n, n.Latest)
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

// pending is what is being waited for, longest first.
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
