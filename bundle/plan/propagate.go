package plan

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"brine/bundle"
	"brine/bundle/order"
)

// deletedFirst begins the reason of an edge between deletions.
const deletedFirst = "must be deleted first: "

// Why is the reason of an edge without what is said of all edges between
// deletions.
func (n Need) Why() string { return strings.TrimPrefix(n.Reason, deletedFirst) }

// WantOf is what a step wants the one to be that it needs: applied, ready, deleted or gone.
func (n Need) WantOf(s *Step) string {
	if s.Deletes() && n.Timing && n.Want == order.Applied {
		return "deleted"
	}
	if s.Deletes() || n.Reason == prunedFirst {
		return "gone"
	}
	return n.Want.String()
}

// Outcome is how a step ended, as the steps that need it see it.
type Outcome struct {
	// Action is what was done. Skipped and Failed: nothing.
	Action Action
	// NotReady says why an object that was applied is not ready.
	NotReady string
}

// settled says whether nothing came of the step.
func (o Outcome) settled() bool { return o.Action == Failed || o.Action == Skipped }

// Allows says whether a step may be carried out although the one it needs came
// to nothing: an object may be deleted before one that the plan itself keeps,
// where the plan says so. Letting go of one deletes nothing. An owner is decided about again.
func (p *Plan) Allows(s *Step, need Need) bool {
	if !s.Deletes() {
		return false
	}
	on := p.Steps[need.Step]
	return s.Action == Detached && !need.Owner || on.Action == Skipped && !on.Kept && need.Weak || need.Timing && need.Want == order.Applied
}

// Because is the reason of a step that is skipped because of one that it needs.
func (s *Step) Because(on bundle.ID, need Need, o Outcome) string {
	if need.Owner {
		return fmt.Sprintf("it stays a member, as %s does, which owns it", bundle.Name(on))
	}
	why := "is not ready: " + o.NotReady
	switch {
	case o.Action == Failed:
		why = "failed"
	case o.Action == Skipped && s.Deletes():
		why = "was kept"
	case o.Action == Skipped:
		why = "was skipped"
	}
	if s.Deletes() {
		return fmt.Sprintf("kept: %s must be deleted first (%s), and %s", bundle.Name(on), need.Why(), why)
	}
	return fmt.Sprintf("needs %s %s (%s), which %s", bundle.Name(on), need.WantOf(s), need.Reason, why)
}

// Propagate skips the steps that need one which came to nothing, and every
// deletion once an object could not be applied. It changes the outcomes, which
// are in the steps' order, and returns the reasons of those that it skipped. What owns one that is not
// deleted is not deleted either.
func (p *Plan) Propagate(outcomes []Outcome) map[int]string {
	reasons := map[int]string{}
	skip := func(i int, reason string) {
		outcomes[i], reasons[i] = Outcome{Action: Skipped}, reason
	}
	p.skipNeedy(outcomes, skip)
	for p.skipOwners(outcomes, skip) {
		p.skipNeedy(outcomes, skip)
	}
	return reasons
}

// skipOwners says whether it skipped any.
func (p *Plan) skipOwners(outcomes []Outcome, skip func(int, string)) (skipped bool) {
	if p.Guard == nil || p.Guard.Options.Orphans {
		return false
	}
	stays := map[types.UID]bundle.ID{}
	for i, s := range p.Steps {
		if s.Action == Pruned && outcomes[i].settled() {
			for _, owner := range p.Guard.ownersOf(s.Live) {
				stays[owner] = s.ID
			}
		}
	}
	for i, s := range p.Steps {
		if s.Action == Pruned && !outcomes[i].settled() {
			if id, owns := stays[s.Live.GetUID()]; owns {
				skip(i, collected(id)+orOrphan)
				skipped = true
			}
		}
	}
	return skipped
}

func (p *Plan) skipNeedy(outcomes []Outcome, skip func(int, string)) {
	notApplied := 0
	for i, s := range p.Steps {
		switch {
		case s.Deletes() && notApplied > 0:
			if s.Action != Skipped {
				skip(i, NotApplied(notApplied))
			}
			continue
		case s.Action == Unchanged, outcomes[i].Action == Failed, s.Deletes() && outcomes[i].Action == Skipped:
		default:
			for _, need := range s.Needs {
				if on := outcomes[need.Step]; on.settled() && !p.Allows(s, need) {
					skip(i, s.Because(p.Steps[need.Step].ID, need, on))
					break
				}
			}
		}
		if !s.Deletes() && outcomes[i].settled() {
			notApplied++
		}
	}
}

// NotApplied is the reason to keep what would be pruned when some objects were
// not applied.
func NotApplied(count int) string {
	return fmt.Sprintf("kept, because %s could not be applied", bundle.Count(count, "object"))
}

// HoldsPruning is the reason to prune nothing yet, or "": the old stays until the new
// is applied and, if readiness counts, ready.
func (p *Plan) HoldsPruning(outcomes []Outcome, readiness bool) string {
	notApplied, notReady := 0, []string(nil)
	for i, s := range p.Steps {
		switch {
		case s.Deletes():
		case outcomes[i].settled():
			notApplied++
		case outcomes[i].NotReady != "":
			notReady = append(notReady, bundle.Name(s.ID))
		}
	}
	switch {
	case notApplied > 0:
		return NotApplied(notApplied)
	case len(notReady) == 0 || !readiness:
		return ""
	case len(notReady) == 1:
		return fmt.Sprintf("kept, because %s is not ready", notReady[0])
	}
	return fmt.Sprintf("kept, because %s and %s are not ready", notReady[0], bundle.Count(len(notReady)-1, "more object"))
}
