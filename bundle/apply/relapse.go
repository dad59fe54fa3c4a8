package apply

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"brine/bundle"
	"brine/bundle/plan"
	"brine/bundle/ready"
	"brine/bundle/report"
)

// version is of an object, to be compared with later ones.
type version struct {
	uid      types.UID
	resource string
}

func versionOf(u *unstructured.Unstructured) version {
	return version{u.GetUID(), u.GetResourceVersion()}
}

// relapse waits again for an object that was ready, where a watch sees while others are waited
// for that it is not any more, or is gone: a pod without a probe is ready until its program ends.
// Whoever needs it has gone on; but the run does not prune, nor end well, while it is so, also where
// it has not changed the object, but what that needs. Objects that are not waited for, and CRDs and
// Jobs, which stay what they became, are left.
func (e *scheduler) relapse(n *node, live *unstructured.Unstructured, gone bool) {
	switch {
	case n.state != finished || n.Result.Ready != report.StateReady || n.Action == plan.Awaited || e.ended != nil || e.WaitApplied,
		n.rules != nil && n.rules.Skip, n.ID.GroupKind == bundle.CRDKind || n.ID.GroupKind == bundle.JobKind:
		return
	}
	order, err := resourceversion.CompareResourceVersion(live.GetResourceVersion(), n.ready.resource)
	switch {
	case gone && (live.GetUID() != n.ready.uid || n.ID.GroupKind == bundle.PodKind && bundle.At[string](live.Object, "status", "phase") == "Succeeded"), !gone && (err != nil || order <= 0): // what was before
		return
	case !gone && ready.Of(live, n.rules, e.Hints).State == ready.Ready:
		n.ready = versionOf(live) // it may be another object by now
		return
	}
	e.set(n, waiting)
	n.relapsed, n.stored, n.reason = true, live, ""
	n.Result.Ready, n.Result.ReadyAt = "", 0
	n.since, n.checked, n.changed = time.Now(), time.Now(), time.Now()
	if gone { // it is read: it may only have lost its label, or somebody has created it again
		n.stored, n.Latest, n.statusBy = nil, live, time.Time{}
		e.progress(n, ready.Status{Reason: "was deleted, or lost its label"})
		return
	}
	e.observe(n, live, false)
}
