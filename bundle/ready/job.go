package ready

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
)

// job is ready when it is complete. kstatus is content when it has started.
// One that is suspended does not run, so a run cannot wait for it; see Rules.runs.
func job(o object) Status {
	if s, ok := finished(o); ok {
		return s
	}
	if c, ok := o.condition("FailureTarget"); ok && c.status == "True" {
		return failed("%s", c.String()) // it ends its pods, and then says Failed
	}
	if o.flag("spec", "suspend") {
		return suspended
	}
	if o.text("status", "startTime") == "" {
		return notReady("not started")
	}
	wanted := o.count(o.count(1, "spec", "parallelism"), "spec", "completions")
	return notReady("running: %d of %d succeeded, %d active, %d failed", o.count(0, "status", "succeeded"), wanted,
		o.count(0, "status", "active"), o.count(0, "status", "failed"))
}

var suspended = Status{State: Ready, Reason: "suspended"}

// finished is a Job's end, if it has come to it.
func finished(o object) (Status, bool) {
	if c, ok := o.condition("Failed"); ok && c.status == "True" {
		return failed("%s", c.String()), true
	}
	if c, ok := o.condition("Complete"); ok && c.status == "True" {
		return Status{State: Ready}, true
	}
	return Status{}, false
}

// expired is the end of a Job that is removed, or has been, because its
// ttlSecondsAfterFinished is over.
func expired(u *unstructured.Unstructured, rules *Rules) (Status, bool) {
	if !Expires(u) {
		return Status{}, false
	}
	s, ok := finished(object{u.Object})
	if !ok {
		return Status{}, false
	}
	if by, ok := rules.failed(u); ok {
		return by, true
	}
	if by, ok := rules.ready(u, s); ok {
		s = by
	}
	if s.State == Ready && s.Reason == "" {
		s.Reason = "complete, removed after its ttlSecondsAfterFinished"
	}
	return s, true
}

// Ended says whether a live object is a Job that has completed, or failed.
func Ended(live *unstructured.Unstructured) bool {
	_, ended := finished(object{live.Object})
	return ended && live.GroupVersionKind().GroupKind() == bundle.JobKind
}

// Completed says whether a live object is a Job that has run to its end, and that
// its TTL removes.
func Completed(live *unstructured.Unstructured) bool {
	s, ok := finished(object{live.Object})
	return Expires(live) && ok && s.State == Ready
}

// Expires says whether an object is a Job that its TTL removes.
func Expires(u *unstructured.Unstructured) bool {
	_, ok := object{u.Object}.number("spec", "ttlSecondsAfterFinished")
	return ok && u.GroupVersionKind().GroupKind() == bundle.JobKind
}
