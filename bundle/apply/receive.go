package apply

import (
	"errors"
	"fmt"
	"time"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/cluster/answers"
	"brine/bundle/order"
	"brine/bundle/plan"
	"brine/bundle/ready"
	"brine/bundle/report"
	"brine/bundle/write"
)

func (e *scheduler) retried(n *node, err error, attempt int) {
	n.Result.Reason = ""
	n.reason = "is sent again after " + answers.Message(err)
	n.Uncertain = n.Uncertain || !answers.Refused(err)
	e.Record.Emit(report.Retrying{Object: n.Result, Error: err.Error(), Attempt: attempt})
}

func (e *scheduler) noticed(m any) {
	switch m := m.(type) {
	case cluster.Seen:
		e.lastSeen[m.ID.GroupKind] = time.Now()
		if n := e.byID[m.ID]; n != nil {
			n.watched, n.checked = true, time.Now()
			if m.Gone {
				if n.isAwaited() && n.Latest != nil && m.Live.GetUID() == n.Latest.GetUID() && !older(n, m.Live) {
					n.Latest = m.Live // how it was when it went
				}
				e.relapse(n, m.Live, true)
				e.confirm(n) // it may have lost the label that the watch goes by
				break
			}
			e.observe(n, m.Live, false)
			e.relapse(n, m.Live, false)
		}
	case cluster.Synced:
		// Objects that the watch should have seen, and has not, are read.
		e.read(m.Resource, e.awaited(func(n *node) bool {
			return !n.watched && n.resource.GVR == m.Resource.GVR && (m.Namespace == "" || m.Namespace == n.ID.Namespace)
		}), nil)
	case cluster.Broken:
		e.broken(m)
	}
}

func (e *scheduler) acted(n *node, w write.Outcome) {
	n.resource = w.Resource
	n.Result.ActedAt = e.Record.Seconds()
	e.reported = time.Now()
	for _, warning := range w.Warnings {
		e.Record.Warn(bundle.Name(n.ID) + ": " + warning)
	}
	n.Result.Claims = w.Claims
	if w.Err != nil && e.ended != nil && answers.Cancelled(w.Err) {
		w.Err = fmt.Errorf("%w: the server had not answered: whether it was stored is unknown", e.ended)
		n.Uncertain = true
	}
	if w.Err != nil {
		n.Result.Error = w.Err.Error()
		e.Record.Explain(w.Err)
		var notOwned *write.NotOwned
		n.Refused = w.Stored == nil && (answers.Refused(w.Err) || errors.As(w.Err, &notOwned))
		n.Result.Unknown = n.Uncertain || w.Wrote || !n.Refused && answers.MayBeStored(w.Err)
		e.Record.Fail(n.Result.About(w.Err.Error()))
		e.lose(n, w.Action, w.Err.Error())
		return
	}
	n.Result.Action = w.Action
	n.stored, n.Latest = w.Stored, w.Stored
	if w.Stored != nil {
		n.UID = w.Stored.GetUID()
	}
	n.Fingerprint, n.HasFingerprint = w.Fingerprint, w.HasFingerprint
	if n.Deletes() {
		if w.Reason != "" {
			n.Reason, n.Result.Reason = w.Reason, w.Reason
		}
		if w.Action == plan.Detached && n.Action == plan.Pruned {
			e.follow(n)
		}
		e.Record.Emit(report.Acted{Object: n.Result})
		n.applied = true
		e.meet(n, order.Applied)
		if w.Gone {
			e.settle(n)
			return
		}
		e.wait(n, ready.Status{State: ready.NotReady, Reason: "is being deleted"})
		return
	}
	if n.Migration != nil || len(w.Claims) > 0 {
		n.Reason, n.Result.Reason = w.Reason, w.Reason
	}
	if w.Before != nil {
		n.Live = w.Before
		d := e.Record.Secrets.Diff(w.Before, n.stored)
		n.Result.Diff, n.Result.Changes = d.Unified, d.Changes
	}
	e.Record.Emit(report.Acted{Object: n.Result})
	n.applied = true
	e.meet(n, order.Applied)
	e.assess(n, n.stored)
}

// follow makes stay what an object needs that was to be deleted, and is detached
// after all.
func (e *scheduler) follow(n *node) {
	n.Action = plan.Detached
	e.Plan.Guard.Keep(n.ID, n.Live)
	for _, edge := range e.dependents[n.index] {
		if d := edge.node; d.state == blocked && d.Follows(n.Step, edge.need) {
			d.Follow(n.Step, edge.need.Why())
			e.follow(d)
		}
	}
}

// send has loop do something.
func (e *scheduler) send(do func()) {
	select {
	case e.messages <- do:
	case <-e.over:
	}
}
