package ready

import (
	"errors"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"brine/bundle"
)

// Rules are those of one object: its own, from its annotations, and those of its kind.
type Rules struct {
	// Timeout is nil where the object has none, and 0 for no limit but the
	// run's.
	Timeout *time.Duration
	// StatusTimeout is how long to wait for a first status; nil where the object does
	// not say.
	StatusTimeout *time.Duration
	// FailAfter is how long it may stay as it is while it is not ready; nil where the
	// object does not say, 0 for as long as it is waited for.
	FailAfter *time.Duration

	// Skip: a run does not wait until the object is ready.
	Skip bool

	readyWhen, failedWhen *expression

	// runs: the bundle does not ask for a suspended Job, so somebody else holds it, for a while, as a queue does.
	runs bool
}

// When are the rules of an expression that stands for brine.dev/ready-when.
func When(text string, kind schema.GroupKind) (*Rules, error) {
	e, err := compile(text, kind.Kind == "Secret")
	return &Rules{readyWhen: e}, err
}

// compileOwn reads an object's annotations, before anything is written. It returns
// nil where there are none, and one problem for each that is wrong.
func compileOwn(o *bundle.Object) (*Rules, []bundle.Problem) {
	if o.Content == nil {
		return nil, nil
	}
	var rules Rules
	var found bool
	var problems []bundle.Problem
	annotations := o.Content.GetAnnotations()
	read := func(name string, parse func(text string) error) {
		text, ok := annotations[name]
		if !ok {
			return
		}
		if err := parse(text); err != nil {
			problems = append(problems, o.Problem("metadata.annotations["+name+"]", err.Error()))
			return
		}
		found = true
	}
	read(bundle.ReadyWhen, func(text string) (err error) {
		rules.readyWhen, err = compile(text, o.ID.GroupKind.Kind == "Secret")
		return err
	})
	read(bundle.FailedWhen, func(text string) (err error) {
		rules.failedWhen, err = compile(text, o.ID.GroupKind.Kind == "Secret")
		return err
	})
	read(bundle.Wait, func(text string) error {
		rules.Skip = text == bundle.WaitSkip // package read refuses other values
		return nil
	})
	read(bundle.Timeout, func(text string) (err error) {
		rules.Timeout, err = duration(text)
		return err
	})
	read(bundle.StatusTimeout, func(text string) (err error) {
		rules.StatusTimeout, err = duration(text)
		return err
	})
	read(bundle.FailAfter, func(text string) (err error) {
		rules.FailAfter, err = duration(text)
		return err
	})
	if !found {
		return nil, problems
	}
	return &rules, problems
}

func duration(text string) (*time.Duration, error) {
	d, err := time.ParseDuration(strings.TrimSpace(text))
	if err != nil {
		return nil, errors.New(`not a duration; write it like "90s", "10m" or "1h30m"; "0" is no limit but the run's own`)
	}
	if d < 0 {
		return nil, errors.New(`a duration cannot be negative; "0" is no limit but the run's own`)
	}
	return &d, nil
}

func (r *Rules) expressions() bool { return r != nil && (r.readyWhen != nil || r.failedWhen != nil) }

// failed is what failed-when makes of live, if it holds.
func (r *Rules) failed(live *unstructured.Unstructured) (Status, bool) {
	if r == nil || r.failedWhen == nil {
		return Status{}, false
	}
	// What cannot be evaluated, mostly a field that is not there yet, has not
	// failed.
	if holds, _ := r.failedWhen.holds(live); !holds {
		return Status{}, false
	}
	s := failed("%s holds: %s", r.failedWhen.named("failed-when"), r.failedWhen.text)
	s.Rule = r.failedWhen.rule("failed-when")
	return s, true
}

// ready is what ready-when makes of live; usual is what it would be without.
func (r *Rules) ready(live *unstructured.Unstructured, usual Status) (Status, bool) {
	if r == nil || r.readyWhen == nil {
		return Status{}, false
	}
	rule := r.readyWhen.rule("ready-when")
	holds, why := r.readyWhen.holds(live)
	if holds {
		return Status{State: Ready, Rule: rule}, true
	}
	name := r.readyWhen.named("ready-when")
	reason := name + " does not hold: " + r.readyWhen.text
	if why != "" {
		reason = name + ": " + why
	}
	if usual.State != Ready {
		reason += "; " + usual.Reason
	}
	s := notReady("%s", reason)
	if usual.State == Failed {
		s.State = Failed
	}
	s.Rule = rule
	return s, true
}
