package write

import (
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/bundle/cluster/answers"
	"brine/bundle/fields"
	"brine/bundle/redact"
	"brine/bundle/remedy"
)

// conflictRounds is how often the server is asked about one version of an object.
const conflictRounds = 3

// settle applies a body to an object that is live. Where the server reports
// conflicts, the rules decide about them: the body is sent again without the
// fields that are left to their managers, and takes the others. leaves says what was left.
func (w *Writer) settle(t *target, live *unstructured.Unstructured, body []byte, apply func(body []byte, force bool) error) (leaves []string, _ error) {
	force := false
	for range conflictRounds {
		err := apply(body, force)
		reported := answers.FieldConflicts(err)
		if len(reported) == 0 || live == nil {
			return leaves, err
		}
		wanted, wrong := bundle.Decode(body)
		if wrong != nil {
			return leaves, wrong
		}
		conflicts := slices.Concat(bundle.Each(reported, func(c answers.Conflict) []fields.Conflict {
			return fields.ConflictsOf(c.Field, c.Name(), wanted.Object, live)
		})...)
		sent, left, taken, ok := w.Options.Conflicts.Settle(wanted.Object, conflicts)
		if !ok {
			secret := t.secret || redact.Holds(t.step.Object.Content) || redact.Holds(live) || redact.CopiesSecret(t.step.Object.Content.Object)
			return leaves, conflictError(err, conflicts, !secret)
		}
		if body, err = json.Marshal(sent); err != nil {
			return leaves, fmt.Errorf("encode what is to be applied: %w", err)
		}
		if len(left) > 0 {
			leaves = append(leaves, "leaves "+fields.Named(left, "to"))
		}
		force = force || len(taken) > 0 // who owned them is told by what was stored
	}
	return leaves, apply(body, force)
}

// conflictError is the server's refusal with what an operator needs to decide.
func conflictError(err error, conflicts []fields.Conflict, values bool) error {
	return &answer{err: err, text: fmt.Sprintf(
		"conflict: %s. Take the fields with %s, decide by manager with %s, move them with %s, leave them to others with %s, or remove them from the bundle (see %s)",
		fields.Explained(conflicts, values), remedy.ForceConflicts, remedy.Conflicts, remedy.TakeOverManagers, remedy.IgnoreFields, remedy.HelpConflict)}
}
