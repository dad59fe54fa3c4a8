// Package ready says whether an object is ready: a live object and its rules come
// in, a Status with the reason goes out. Of, Deleted and Waits are pure. A Diagnosis
// reads from the cluster, through functions that it is given, why an object is not
// ready.
package ready

import (
	"fmt"
	"slices"
	"strings"

	"brine/bundle"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

// State is how far an object is.
type State string

// The states, as a Result shows them.
const (
	Ready    State = "ready"
	NotReady State = "not-ready" // on its way: nothing says that it failed
	Failed   State = "failed"    // reported immediately; some objects do recover from it
)

// Status is a State and what led to it.
type Status struct {
	State State
	// Reason is one line for people, never empty unless State is Ready:
	// "Available: 0/3; Progressing=False ProgressDeadlineExceeded: …". Of a
	// Ready object it is set where that is a surprise: "suspended".
	Reason string
	// Rule says which rule decided, and on which field, for people.
	Rule string
	// Gone: the object is not on the cluster.
	Gone bool
	// Unseen: it is Ready only because it has no status that says otherwise. Just
	// after a write its controller may not have come to it yet.
	Unseen bool
	// Unsaid: the general rule calls it Ready, and it has no condition Ready that says so.
	Unsaid bool
}

// Hints are facts about the cluster that an object does not hold itself.
type Hints struct {
	// WaitsForConsumer says whether a StorageClass binds its claims only when a
	// pod uses them (volumeBindingMode WaitForFirstConsumer). It is called
	// for every unbound claim that is read, so it must be quick. May be nil.
	WaitsForConsumer func(storageClass string) bool
}

// Of says whether live, an object with its whole status, is ready. The rules
// may be nil; a nil object is Gone.
//
// It follows cli-utils' kstatus, and differs where a deployment wants more: a
// Job has to complete, a LoadBalancer to have an address, a failed Pod has
// failed; and where kstatus would wait for what never comes: a claim's first
// consumer, a paused rollout, pods that are replaced only when somebody deletes
// them. An expression in brine.dev/ready-when stands instead of all that.
func Of(live *unstructured.Unstructured, rules *Rules, hints Hints) Status {
	if live == nil {
		return Status{State: NotReady, Reason: "does not exist", Gone: true}
	}
	o := object{live.Object}
	if o.text("metadata", "deletionTimestamp") != "" {
		if s, ok := expired(live, rules); ok {
			return s
		}
		s := notReady("%s", deleting(o))
		s.Rule = "metadata.deletionTimestamp"
		return s
	}
	if observed, ok := o.observed(); ok {
		if wanted, ok := o.number("metadata", "generation"); ok && observed < wanted {
			s := notReady("its controller has not yet seen generation %d (its status is of %d)", wanted, observed)
			s.Rule = "generation: status.observedGeneration"
			if rules.expressions() {
				return s
			}
			return unlessHeld(o, s)
		}
	}
	if s, ok := rules.failed(live); ok {
		return s
	}
	usual := builtIn(live, hints)
	if rules != nil && rules.runs && usual.State == Ready && usual.Reason == suspended.Reason {
		usual = notReady("suspended, which the bundle does not ask for")
	}
	if s, ok := rules.ready(live, usual); ok {
		return s
	}
	return unlessHeld(o, usual)
}

// Deleted is what became of an object that was deleted while it was waited
// for, and last its final state. A finished Job that Kubernetes removed after
// its ttlSecondsAfterFinished counts as what it was; everything else failed.
func Deleted(last *unstructured.Unstructured, rules *Rules) Status {
	if last == nil {
		return Status{State: Failed, Reason: "was deleted while it was waited for", Gone: true}
	}
	s, ok := expired(last, rules)
	switch {
	case ok:
	case Expires(last):
		s = failed("was deleted before its end was seen; it has ttlSecondsAfterFinished, so it may have finished")
	default:
		s = failed("was deleted while it was waited for")
	}
	s.Gone = true
	return s
}

// builtIn is the rule of the object's kind.
func builtIn(live *unstructured.Unstructured, hints Hints) Status {
	gk := live.GroupVersionKind().GroupKind()
	if nothingToWaitFor(gk) {
		return Status{State: Ready, Rule: stored(gk)}
	}
	rule, ok := kindRules[gk]
	if !ok {
		return generic(object{live.Object})
	}
	s := rule.of(object{live.Object}, hints)
	s.Rule = rule.name(gk)
	return s
}

// generic is kstatus' rule for kinds it does not know: Reconciling, Stalled and
// Ready; and what doubt finds. A condition may say which generation it is about (KEP-1623); one that
// is about an older one says nothing yet.
func generic(o object) Status {
	res, err := status.Compute(o.plain())
	if err != nil {
		return Status{State: Ready, Reason: "assumed ready, because its status has an unknown form: " + oneLine(err.Error())}
	}
	c, ok := o.condition("Ready")
	if stalled, is := o.condition("Stalled"); is && res.Status == status.FailedStatus {
		c, ok = stalled, true
	}
	if reconciling, is := o.condition("Reconciling"); is && reconciling.status == "True" {
		c, ok = reconciling, true
	}
	wanted, _ := o.number("metadata", "generation")
	if ok && c.generation > 0 && c.generation < wanted {
		s := notReady("its controller has not yet seen generation %d (condition %s is of %d)", wanted, c.kind, c.generation)
		s.Rule = "general: status.conditions[" + c.kind + "].observedGeneration"
		return s
	}
	if ok && c.kind == "Ready" && c.status != "True" && res.Status == status.CurrentStatus {
		res.Status = status.InProgressStatus // kstatus takes what it does not know for ready
	}
	if res.Status == status.CurrentStatus {
		if reason, field := doubt(o); reason != "" {
			s := notReady("%s", reason)
			s.Rule = "general: " + field
			return s
		}
		s := Status{State: Ready, Unseen: unseen(o), Unsaid: !ok, Rule: "general: nothing in its status speaks against it"}
		switch {
		case s.Unseen:
			s.Rule = "general: it has no status"
		case ok && c.status == "True":
			s.Rule = "general: status.conditions[" + c.kind + "]"
		}
		return s
	}
	reason := oneLine(res.Message)
	if ok {
		reason = c.String()
	}
	s := notReady("%s", reason)
	s.Rule = "general: kstatus"
	if ok {
		s.Rule = "general: status.conditions[" + c.kind + "]"
	}
	if res.Status == status.FailedStatus {
		s.State = Failed
	}
	return s
}

// deleting says what keeps an object that is being deleted.
func deleting(o object) string {
	s := "is being deleted"
	var finalizers []string
	for _, at := range [][]string{{"metadata", "finalizers"}, {"spec", "finalizers"}} {
		for _, f := range o.list(at...) {
			// A namespace always has this one; its conditions say more.
			if name, ok := f.(string); ok && name != "kubernetes" {
				finalizers = append(finalizers, name)
			}
		}
	}
	if len(finalizers) > 0 {
		s += ", finalizers: " + strings.Join(finalizers, ", ")
	}
	if o.text("kind") != "Namespace" {
		return s
	}
	for _, c := range o.conditions() {
		if c.status == "True" {
			s += "; " + c.String()
		}
	}
	return s
}

// Terminating says what keeps an object that is being deleted: conditions of a
// Namespace or CRD, and finalizers.
func Terminating(live *unstructured.Unstructured) string {
	reason := "is being deleted"
	for _, condition := range bundle.Items[map[string]any](live.Object, "status", "conditions") {
		if condition["status"] == "True" && (live.GetKind() == "Namespace" || condition["type"] == "Terminating") { // a CRD's
			reason += fmt.Sprintf("; %v: %v", condition["reason"], condition["message"])
		}
	}
	if finalizers := slices.Concat(live.GetFinalizers(), bundle.Items[string](live.Object, "spec", "finalizers")); len(finalizers) > 0 {
		reason += "; held by finalizers: " + strings.Join(finalizers, ", ")
	}
	return reason
}

func notReady(format string, args ...any) Status {
	return Status{State: NotReady, Reason: because(format, args)}
}

func failed(format string, args ...any) Status {
	return Status{State: Failed, Reason: because(format, args)}
}

func because(format string, args []any) string {
	if len(args) > 0 {
		format = fmt.Sprintf(format, args...)
	}
	if format = oneLine(format); format == "" {
		return "no reason given"
	}
	return format
}

// oneLine is s without line breaks and runs of blanks.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
