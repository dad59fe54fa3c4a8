package clitest

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"brine/bundle"
	"brine/bundle/plan"
	"brine/bundle/report"
)

// Outcome is what a command line did: its exit code, what it printed, and the
// document on stdout where there is one.
type Outcome struct {
	Exit           int
	Stdout, Stderr string
	Result         *report.Result
}

// Want fails the test when the exit code is another one.
func (s Outcome) Want(t testing.TB, exit int) Outcome {
	t.Helper()
	if s.Exit != exit {
		t.Fatalf("exit code %d, want %d:\n%s\n%s", s.Exit, exit, s.Stderr, Clip(s.Stdout))
	}
	return s
}

// Prints fails the test when the words are not in what was printed.
func (s Outcome) Prints(t testing.TB, words ...string) Outcome {
	t.Helper()
	for _, w := range words {
		quoted, _ := json.Marshal(w)
		if !strings.Contains(s.Stdout+s.Stderr, w) && !strings.Contains(s.Stdout, strings.Trim(string(quoted), `"`)) {
			t.Errorf("it does not say %q:\n%s\n%s", w, s.Stderr, Clip(s.Stdout))
		}
	}
	return s
}

// Clip is the beginning of a long text.
func Clip(text string) string { return text[:min(len(text), 8000)] }

// Object is the result of one object, named "Kind name", whatever its
// namespace; the test fails if there is none.
func (s Outcome) Object(t testing.TB, kind, name string) *report.ObjectResult {
	t.Helper()
	if s.Result != nil {
		for _, o := range s.Result.Objects {
			if o.Kind == kind && o.Name == name {
				return o
			}
		}
	}
	t.Fatalf("%s %s is not in the result:\n%s\n%s", kind, name, s.Stderr, Clip(s.Stdout))
	return nil
}

// Did fails the test unless just that was done to the object.
func (s Outcome) Did(t testing.TB, kind, name string, action plan.Action) *report.ObjectResult {
	t.Helper()
	o := s.Object(t, kind, name)
	if o.Action != action {
		t.Errorf("%s %s was %s (%s%s), want %s", kind, name, o.Action, o.Reason, o.Error, action)
	}
	return o
}

// Actions are what was done to each object.
func (s Outcome) Actions(t testing.TB) map[string]plan.Action {
	t.Helper()
	if s.Result == nil {
		t.Fatalf("there is no result:\n%s\n%s", s.Stderr, Clip(s.Stdout))
	}
	did := map[string]plan.Action{}
	for _, o := range s.Result.Objects {
		did[bundle.Name(o.ID())] = o.Action
	}
	return did
}

// SameActions fails the test unless both runs did the same, object by object.
func SameActions(t testing.TB, preview, apply Outcome) {
	t.Helper()
	want, got := preview.Actions(t), apply.Actions(t)
	for name := range got {
		if _, ok := want[name]; !ok {
			want[name] = "nothing"
		}
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if got[name] != want[name] {
			t.Errorf("%s: the preview reported %s, the apply did %s", name, want[name], got[name])
		}
	}
}

// AllVerified fails the test unless a server has verified every object.
func (s Outcome) AllVerified(t testing.TB) Outcome {
	t.Helper()
	for _, o := range s.Result.Objects {
		if o.Verified == "" || strings.HasPrefix(o.Verified, "not verified") {
			t.Errorf("no server has verified %s: %s %q", bundle.Name(o.ID()), o.Action, o.Verified)
		}
	}
	return s
}
