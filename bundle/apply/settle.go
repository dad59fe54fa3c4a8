package apply

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/order"
	"brine/bundle/plan"
	"brine/bundle/ready"
	"brine/bundle/report"
)

// How a node ends well: unchanged, ready, gone.

// dropReady finds the unchanged members that are ready, and does not keep their live
// objects: of thousands, they are most of the memory.
func (in *Input) dropReady() map[*plan.Step]version {
	isReady := map[*plan.Step]version{}
	for _, s := range in.Plan.Steps {
		if s.Action != plan.Unchanged || !s.Member || s.Completed || s.Blocked != "" || s.Live == nil || s.Live.GetDeletionTimestamp() != nil || ready.Completed(s.Live) {
			continue
		}
		if rules := in.Rules[s.ID]; ready.Waits(s.GVK, rules) {
			status := ready.Of(s.Live, rules, in.Hints)
			if status.State != ready.Ready || (status.Unseen || status.Unsaid) && !in.wasSettled(s) {
				continue
			}
			s.Reason = cmp.Or(s.Reason, status.Reason)
		}
		isReady[s], s.Live = versionOf(s.Live), nil
	}
	return isReady
}

// wasSettled says whether an earlier run has seen that a member is ready, or has waited long
// enough for what it says of itself.
func (in *Input) wasSettled(s *plan.Step) bool {
	return in.Writer.Inventory.Members[s.ID].Reconcile == "Succeeded"
}

// settleUnchanged settles an object that nothing has to be sent for; what is
// not ready yet is still waited for.
func (e *scheduler) settleUnchanged(n *node) {
	n.applied = true
	if n.Action != plan.Awaited {
		e.Record.Emit(report.Acted{Object: n.Result})
	}
	e.meet(n, order.Applied)
	if r, err := e.Client.Resource(n.GVK); err == nil {
		n.resource = r
	}
	if n.Completed || n.wasReady {
		e.settle(n)
		return
	}
	n.stored, n.Latest = n.Live, n.Live
	e.assess(n, n.Live)
}

// becameReady settles a ready object; a CRD whose resources wait for it only
// after its versions are served.
func (e *scheduler) becameReady(n *node, live *unstructured.Unstructured, status ready.Status) {
	n.Reason = cmp.Or(n.Reason, status.Reason)
	n.SeenCompleted = ready.Completed(live)
	if n.ID.GroupKind == bundle.CRDKind && n.Result.Action != plan.Unchanged && len(e.dependents[n.index]) > 0 {
		if n.probing {
			return
		}
		n.probing = true
		if e.ended != nil {
			e.settle(n)
			return
		}
		if n.state != waiting {
			e.set(n, waiting)
			n.since, n.checked = time.Now(), time.Now()
			n.because("its versions are not served yet")
		}
		e.probe(n)
		return
	}
	e.settle(n)
}

func (e *scheduler) probed(n *node, err error) {
	switch {
	case !n.isAwaited():
	case err != nil:
		e.settleNotReady(n, report.StateFailed, err.Error())
	default:
		e.settle(n)
	}
}

// settled counts an object of the plan that is done with.
func (e *scheduler) settled(n *node) {
	if n.Action != plan.Awaited && !n.relapsed {
		e.Record.Settled()
	}
}

// settle ends a node well: ready, or gone.
func (e *scheduler) settle(n *node) {
	news := n.isAwaited() || !n.Deletes() && n.Reason != "" && n.Reason != n.Result.Reason
	e.finish(n)
	if news {
		e.reported = time.Now()
		e.Record.Emit(report.BecameReady{Object: n.Result})
	}
	if !n.relapsed {
		e.meet(n, order.Ready)
	}
}

func (e *scheduler) finish(n *node) {
	e.set(n, finished)
	if n.Latest != nil {
		n.ready = versionOf(n.Latest)
	}
	n.stored, n.Latest = nil, nil // of thousands of objects, those that are done with are not kept
	if n.Member {                 // of others, the records ask who owned them
		n.Live = nil
	}
	e.settled(n)
	n.Result.ReadyAt = e.Record.Seconds()
	if !n.Deletes() {
		n.Result.Ready, n.Result.Reason = report.StateReady, n.Reason
	} else if n.Result.Action == plan.Pruned {
		n.Result.Reason = n.Reason
	}
}

// settleUnawaited settles an object that is not ready, and that nobody waits for:
// it holds up neither its dependents nor the run.
func (e *scheduler) settleUnawaited(n *node, status ready.Status) {
	e.finish(n)
	n.Result.Ready, n.Result.ReadyAt = "", 0
	n.Result.Reason = "not waited for: " + status.Reason
	e.Record.Emit(report.NotReady{Object: n.Result, Reason: n.Result.Reason})
	e.meet(n, order.Ready)
}

func (e *scheduler) settleNotReady(n *node, how, reason string) {
	if e.ended == nil && n.Action != plan.Awaited && e.idle(n) {
		e.settleUnawaited(n, ready.Status{Reason: reason})
		return
	}
	n.Result.Ready = how
	if n.Deletes() {
		n.Result.Ready = report.StateNotReady
	}
	e.lose(n, "", reason)
}

// servedTime bounds how long the versions of an established CRD may take to be
// served.
const servedTime = 30 * time.Second

// probe waits until the versions of a CRD are served: it is established a
// little before.
func (e *scheduler) probe(n *node) {
	resources := cluster.Defined(n.Object.Content)
	e.begin(func(ctx context.Context) {
		deadline := time.Now().Add(servedTime)
		for _, r := range resources {
			for pause := 25 * time.Millisecond; ; pause = min(2*pause, time.Second) {
				ok, err := e.Client.Serves(ctx, r.GVR)
				if ok {
					break
				}
				if time.Now().After(deadline) || !cluster.Sleep(ctx, pause) {
					e.send(func() {
						e.probed(n, fmt.Errorf("established, but %s is not served: %w", r.GVR, cmp.Or(err, cluster.WhyEnded(ctx), context.DeadlineExceeded)))
					})
					return
				}
			}
		}
		e.send(func() { e.probed(n, nil) })
	})
}
