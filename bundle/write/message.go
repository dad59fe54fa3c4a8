package write

import (
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/bundle/cluster/answers"
	"brine/bundle/fields"
	"brine/bundle/plan"
	"brine/bundle/remedy"
	"brine/bundle/takeover"
)

// Explain adds to the server's answer what the user can do: the remedy of a
// conflict or of a denial, the line of a field.
func (w *Writer) Explain(s *plan.Step, err error) error {
	if conflict, ok := errors.AsType[*answer](err); ok {
		return conflict
	}
	if reported := answers.FieldConflicts(err); len(reported) > 0 { // where there was no object before
		return conflictError(err, bundle.Each(reported, func(c answers.Conflict) fields.Conflict { return fields.Conflict{Field: c.Field, Manager: c.Name()} }), false)
	}
	text := answers.Message(err)
	if field, others := left(s.Object, s.Live, err); others {
		text += fmt.Sprintf(" (%s is not in the bundle, and another field manager owns it on the cluster: %s=MANAGER removes it)", field, remedy.TakeOverManagers)
	} else if field != "" {
		text += fmt.Sprintf(" (%s is not in the bundle; the object on the cluster has it, and a server-side apply leaves it there)", field)
	} else if hint := lineOf(s.Object, text); hint != "" {
		text += " (" + hint + ")"
	}
	if denier := w.denier(err); denier != nil && !denier.First {
		text = strings.TrimRight(text, ".") + fmt.Sprintf(". %s is a member that the bundle no longer has: %s=%s/%s prunes it before anything is applied", bundle.Name(denier.ID), remedy.PruneFirst, denier.ID.GroupKind.Kind, denier.ID.Name)
	}
	return &answer{text: text, err: err}
}

func (w *Writer) denier(err error) *plan.Step {
	policy, webhook := answers.DeniedBy(err)
	return w.Plan.Denier(policy + webhook)
}

// PrunedFirst is the object that denied a request of a dry run, and that the run itself
// prunes before.
func (w *Writer) PrunedFirst(err error) (bundle.ID, bool) {
	if denier := w.denier(err); denier != nil && denier.First {
		return denier.ID, true
	}
	return bundle.ID{}, false
}

// answer is a server's answer as it is shown; the error itself is kept for
// errors.As.
type answer struct {
	text string
	err  error
}

func (a *answer) Error() string { return a.text }

func (a *answer) Unwrap() error { return a.err }

// lineOf finds the line of a field that the server names.
func lineOf(o *bundle.Object, text string) string {
	for _, path := range answers.FieldPaths(text) {
		if line := o.Line(path); line > o.Source.Line {
			return fmt.Sprintf("%s is at %s:%d", path, o.Source.File, line)
		}
	}
	return ""
}

// stays is a field of the live object for which the server refuses an apply, though the
// bundle does not have it, and that belongs to nobody: so no apply takes it away.
func stays(o *bundle.Object, live *unstructured.Unstructured, err error) string {
	if field, others := left(o, live, err); !others {
		return field
	}
	return ""
}

// left is a field of the live object for which the server refuses an apply, though the bundle
// does not have it, and whether another field manager owns it. A Deployment keeps the rollingUpdate
// that the server filled in when its strategy becomes Recreate; where kubectl created it, that owns it.
// A webhook or policy may refuse for a while only.
func left(o *bundle.Object, live *unstructured.Unstructured, err error) (field string, others bool) {
	policy, webhook := answers.DeniedBy(err)
	if live == nil || !apierrors.IsInvalid(err) || policy+webhook != "" {
		return "", false
	}
	for _, cause := range answers.CausesOf(err) {
		path := strings.Split(cause.Field, ".")
		_, there, _ := unstructured.NestedFieldNoCopy(live.Object, path...)
		if _, given, _ := unstructured.NestedFieldNoCopy(o.Content.Object, path...); given || !there {
			return "", false
		}
		field, others = cause.Field, others || takeover.Others(live, path)
	}
	return field, others
}

func needsRecreate(s *plan.Step, err error) error {
	return fmt.Errorf("%w. To have it deleted and created again, annotate it with %s: %s (or %s, which keeps its pods and other dependents), or use %s=%s (see %s)", err, bundle.OnImmutable, bundle.Recreate, bundle.Orphan, remedy.Recreate, s.ID.GroupKind, remedy.HelpImmutable)
}
