package ready

import (
	"errors"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
)

// Rules are one object's own, from its annotations.
type Rules struct {
	// Timeout is nil where the object has none, and 0 for no limit but the
	// run's.
	Timeout *time.Duration
	// StatusTimeout is how long to wait for a first status; nil where the object does
	// not say.
	StatusTimeout *time.Duration

	readyWhen, failedWhen *expression
}

// Compile reads an object's annotations, before anything is written. It returns
// nil where there are none, and one problem for each that is wrong.
func Compile(o *bundle.Object) (*Rules, []bundle.Problem) {
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
	read(bundle.Timeout, func(text string) (err error) {
		rules.Timeout, err = duration(text)
		return err
	})
	read(bundle.StatusTimeout, func(text string) (err error) {
		rules.StatusTimeout, err = duration(text)
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
	return failed("failed-when holds: %s", r.failedWhen.text), true
}

// ready is what ready-when makes of live; usual is what it would be without.
func (r *Rules) ready(live *unstructured.Unstructured, usual Status) (Status, bool) {
	if r == nil || r.readyWhen == nil {
		return Status{}, false
	}
	holds, why := r.readyWhen.holds(live)
	if holds {
		return Status{State: Ready}, true
	}
	reason := "ready-when does not hold: " + r.readyWhen.text
	if why != "" {
		reason = "ready-when: " + why
	}
	if usual.State != Ready {
		reason += "; " + usual.Reason
	}
	if usual.State == Failed {
		return failed("%s", reason), true
	}
	return notReady("%s", reason), true
}
