package plan

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/bundle/order"
	"brine/bundle/remedy"
)

// admissionGroup is that of what may be pruned first: policies, their bindings, and
// configurations of webhooks.
const admissionGroup = "admissionregistration.k8s.io"

// prunedFirst is the reason why what is applied waits for a deletion.
const prunedFirst = "it is pruned first"

// AdmissionNames are the names that denials by an admission policy, a binding of it, or
// a configuration of webhooks begin with.
func AdmissionNames(id bundle.ID, u *unstructured.Unstructured) (names []string) {
	if policy := bundle.At[string](u.Object, "spec", "policyName"); policy != "" {
		return []string{policy}
	}
	for _, webhook := range bundle.Items[map[string]any](u.Object, "webhooks") {
		names = append(names, fmt.Sprint(webhook["name"]))
	}
	return append(names, id.Name)
}

// Denier is the step that prunes what a denial names, nil if none does: a policy rather
// than a binding of it.
func (p *Plan) Denier(name string) (denier *Step) {
	for _, s := range p.Steps {
		if s.Action == Pruned && s.ID.GroupKind.Group == admissionGroup && name != "" && slices.Contains(AdmissionNames(s.ID, s.Live), name) && (denier == nil || !s.binds()) {
			denier = s
		}
	}
	return denier
}

// binds says whether the object is the binding of a policy.
func (s *Step) binds() bool { return strings.HasSuffix(s.ID.GroupKind.Kind, "PolicyBinding") }

// pruneFirst has the deletions that the user names, and those of a policy's bindings, come
// before every write. Only what decides about requests may go first, as only that may
// stand in the way of what replaces it.
func (in *Input) pruneFirst(p *Plan) (problems []bundle.Problem) {
	for _, word := range in.Options.PruneFirst {
		refuse := func(format string, args ...any) {
			problems = append(problems, bundle.Problem{Message: remedy.PruneFirst + "=" + word + ": " + fmt.Sprintf(format, args...)})
		}
		parts := strings.Split(word, "/")
		found := slices.ContainsFunc(p.Forget, func(id bundle.ID) bool { return isNamed(parts, id) }) // an earlier run was killed
		for _, s := range p.Steps {
			if !s.Deletes() || !isNamed(parts, s.ID) {
				continue
			}
			found = true
			switch {
			case s.ID.GroupKind.Group != admissionGroup:
				refuse("%s is no admission policy, no binding of one and no webhook configuration: nothing else may be pruned first", bundle.Name(s.ID))
			case s.Action != Pruned:
				refuse("%s is not pruned: %s", bundle.Name(s.ID), s.Reason)
			default:
				s.First = true
			}
		}
		switch {
		case found:
		case in.Chosen != nil:
			refuse("a partial run (%s) prunes nothing", remedy.Only)
		default:
			refuse("no member of inventory %s/%s that the bundle no longer has is named so", in.Inventory.Namespace, in.Inventory.Name)
		}
	}
	if len(in.Options.PruneFirst) > 0 {
		p.orderFirst()
	}
	return problems
}

// orderFirst has every write wait for the deletions that come first, which wait for
// nothing but each other.
func (p *Plan) orderFirst() {
	for _, s := range p.Steps {
		s.First = s.First || s.Action == Pruned && s.binds() && slices.ContainsFunc(p.Steps, func(policy *Step) bool {
			return policy.First && slices.Equal(AdmissionNames(s.ID, s.Live), []string{policy.ID.Name})
		})
	}
	for at, first := range p.Steps {
		if !first.First {
			continue
		}
		first.Needs = slices.DeleteFunc(first.Needs, func(need Need) bool { return !p.Steps[need.Step].First })
		for _, s := range p.Steps {
			if !s.Deletes() && s.Action != Unchanged && s.Blocked == "" {
				s.Needs = append(s.Needs, Need{Step: at, Want: order.Ready, Reason: prunedFirst})
			}
		}
	}
}
