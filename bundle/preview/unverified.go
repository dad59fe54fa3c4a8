package preview

import (
	"fmt"
	"maps"
	"regexp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/bundle/cluster/answers"
	"brine/bundle/diff"
	"brine/bundle/fields"
	"brine/bundle/plan"
)

// excused says why an error is not one of the bundle: a webhook that forbids dry
// runs or cannot be reached now, or something that the bundle makes before it
// gets to this object.
func (p *previewer) excused(s *plan.Step, err error) (string, bool) {
	text := err.Error()
	if answers.NoDryRun(err) {
		return text, true
	}
	if answers.WebhookFailed(err) {
		return "a webhook cannot be asked now: " + text, true
	}
	if first, ok := p.writer.PrunedFirst(err); ok {
		return fmt.Sprintf("%s, which is pruned first, denies it now", bundle.Name(first)), true
	}
	if !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) && !answers.NotServed(err) {
		return "", false
	}
	for _, need := range s.Needs {
		on := p.Plan.Steps[need.Step]
		if on.Live == nil && !on.Deletes() && on.Blocked == "" && names(text, on.ID.Name) {
			return fmt.Sprintf("%s is made first: %s", bundle.Name(on.ID), text), true
		}
	}
	return "", false
}

// names says whether a message names an object: as a word of its own.
func names(text, name string) bool {
	if name == "" {
		return false
	}
	return regexp.MustCompile(`(^|[^\w.-])` + regexp.QuoteMeta(name) + `($|[^\w.-])`).MatchString(text)
}

// guess is a step's result where the server cannot be asked: what is sent, laid
// over what is there, and without what is not sent any more.
func (p *previewer) guess(s *plan.Step, body []byte, why string) Result {
	r := Result{Action: s.Action, Reason: s.Reason, Verified: Unverified + why}
	sent, err := sentOf(s, body)
	if err != nil {
		return Result{Action: plan.Failed, Err: err}
	}
	if s.Live == nil {
		r.Stored = sent
		return r
	}
	merged, _ := overlay(fields.WithoutUnsent(s.Live, sent.Object), sent.Object).(map[string]any)
	r.Stored = &unstructured.Unstructured{Object: merged}
	if s.Action == plan.Configured && s.Migration == nil && diff.Equal(s.Live, r.Stored) {
		r.Action = plan.Unchanged
	}
	return r
}

// sentOf is what is sent of a step.
func sentOf(s *plan.Step, body []byte) (*unstructured.Unstructured, error) {
	body, err := s.Send(body, s.Live)
	if err != nil {
		return nil, err
	}
	return bundle.Decode(body)
}

// overlay lays what is sent over what is there: maps are merged, items of lists
// that have names by their names, everything else is replaced.
func overlay(live, sent any) any {
	switch sent := sent.(type) {
	case map[string]any:
		there, ok := live.(map[string]any)
		if !ok {
			return sent
		}
		out := maps.Clone(there)
		for k, v := range sent {
			out[k] = overlay(there[k], v)
		}
		return out
	case []any:
		there, ok := live.([]any)
		if !ok {
			return sent
		}
		out := make([]any, len(sent))
		for i, item := range sent {
			out[i] = overlay(counterpart(there, item, i), item)
		}
		return out
	}
	return sent
}

// counterpart is the live item that an item of a list stands for.
func counterpart(there []any, item any, i int) any {
	m, ok := item.(map[string]any)
	if !ok {
		return nil
	}
	if name, ok := m["name"]; ok {
		for _, t := range there {
			if same, ok := t.(map[string]any); ok && same["name"] == name {
				return t
			}
		}
		return nil
	}
	if i < len(there) {
		return there[i]
	}
	return nil
}
