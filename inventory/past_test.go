package inventory

import (
	"slices"
	"strconv"
	"testing"
	"time"
)

// An inventory object that does not say what its runs saved is an old one, unless they were killed.
func TestIsBefore(t *testing.T) {
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		revision, last, begun int
		command               string
		time                  time.Time
		want                  bool
	}{
		"the last one":                         {revision: 3, last: 3},
		"its run was killed":                   {revision: 4, last: 3, command: "apply"},
		"its run was killed, and had begun":    {revision: 4, last: 3, begun: 4, command: "apply"},
		"a rollback of what was killed":        {revision: 5, last: 3, begun: 4, command: Rollback},
		"the same, and then the last one":      {revision: 5, last: 3, command: Rollback},
		"two applies later":                    {revision: 5, last: 3, command: "apply", want: true},
		"two runs of an older version later":   {revision: 5, last: 3},
		"three runs later":                     {revision: 6, last: 3, command: Rollback, want: true},
		"three runs later, and one is refused": {revision: 6, last: 3, begun: 4, want: true},
		"begun after another inventory's":      {revision: 6, last: 3, begun: 5, command: Rollback},
		"another inventory of the name":        {revision: 20, last: 3, command: "apply", time: noon.Add(-time.Hour)},
		"the object says of none":              {revision: 6, command: "apply"},
	} {
		r := Revision{Number: test.revision, Command: test.command, Time: test.time}
		if r.Time.IsZero() {
			r.Time = noon.Add(time.Minute)
		}
		l := Latest{Last: Revision{Number: test.last, Time: noon}, Begun: Revision{Number: test.begun}}
		if got := l.IsBefore(r); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// What a rollback undid that the inventory object does not know of, and no other inventory's.
func TestLeftBack(t *testing.T) {
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	last := Revision{Number: 3, Time: noon}
	left := Revision{Number: 4, Command: Rollback, RollbackTo: 1, Time: noon.Add(time.Minute)}
	before, named, apply := left, left, left
	before.Time, named.Number, apply.RollbackTo = noon.Add(-time.Minute), 3, 0
	for name, test := range map[string]struct {
		left, last Revision
		want       int
	}{"it is left": {left, last, 1}, "another inventory of the name": {before, last, 0}, "it is named": {named, last, 0}, "an apply is left": {apply, last, 0}, "the object says of none": {left, Revision{}, 0}} {
		if got := (Past{Latest: Latest{Last: test.last}, There: []Revision{test.left, {Number: 3, Command: Rollback, RollbackTo: 2, Time: noon}}}).LeftBack(); got != test.want {
			t.Errorf("%s: %d", name, got)
		}
	}
}

// A killed run leaves a revision that nothing names. The next apply begins with its number, and the
// next revision has the one after: what is left is no part of the history.
func TestIsLeftBefore(t *testing.T) {
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	begun := Revision{Number: 7, Digest: "A", Command: "apply", Time: noon, Result: NotKept}
	for name, test := range map[string]struct {
		revision Revision
		left     bool
	}{
		"a rollback before":                            {Revision{Since: KnownSince, Number: 7, Digest: "B", Command: Rollback, Time: noon.Add(-time.Minute)}, true},
		"in the same second":                           {Revision{Since: KnownSince, Number: 7, Digest: "B", Command: "apply", Time: noon}, true},
		"a rollback to what it applies":                {Revision{Since: KnownSince, Number: 7, Digest: "A", Command: Rollback, Time: noon}, true},
		"its own":                                      {Revision{Since: KnownSince, Number: 7, Digest: "A", Command: "apply", Time: noon.Add(time.Minute)}, false},
		"its own, though a clock was behind":           {Revision{Since: KnownSince, Number: 7, Digest: "A", Command: "apply", Time: noon.Add(-time.Minute)}, false},
		"that of an older version, in the same second": {Revision{Number: 7, Digest: "B", Command: Rollback, Time: noon}, false},
		"that of an older version, after it":           {Revision{Number: 7, Digest: "B", Time: noon.Add(time.Minute)}, false},
		"another one, whatever its time is":            {Revision{Since: KnownSince, Number: 6, Digest: "B", Time: noon.Add(-time.Minute)}, false},
	} {
		if got := test.revision.isLeftBefore(begun); got != test.left {
			t.Errorf("%s: %t", name, got)
		}
	}
	if (Revision{Number: 7, Time: noon}).isLeftBefore(Revision{}) {
		t.Error("nothing has begun")
	}
}

// What counts of the revisions that are there: 7 is what the object names, 8 has begun.
func TestPast(t *testing.T) {
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	at := func(n int, more func(*Revision)) Revision {
		r := Revision{Number: n, Digest: strconv.Itoa(n), Command: "apply", Result: "applied", Since: KnownSince, Time: noon.Add(time.Duration(n) * time.Minute)}
		if more != nil {
			more(&r)
		}
		return r
	}
	back := func(to int) func(*Revision) {
		return func(r *Revision) { r.Command, r.RollbackTo = Rollback, to }
	}
	begun := at(8, func(r *Revision) { r.Result = Interrupted })
	says := Latest{Last: at(7, nil), Begun: begun}
	older := []Revision{at(7, nil), at(6, nil)}
	for name, test := range map[string]struct {
		Latest
		there                 []Revision // besides 7 and 6
		saved, runs, standing []int
		undoes, beyond        int // what the run that begun undid, the newest run of which the object knows nothing
	}{
		"nothing has begun":                       {Latest: Latest{Last: at(7, nil)}, saved: []int{7, 6}, runs: []int{7, 6}, standing: []int{7, 6}},
		"an apply was killed":                     {Latest: says, saved: []int{7, 6}, runs: []int{8, 7, 6}, standing: []int{7, 6}},
		"it was killed with its revision written": {Latest: says, there: []Revision{at(8, nil)}, saved: []int{7, 6}, runs: []int{8, 7, 6}, standing: []int{7, 6}},
		"a rollback was killed":                   {Latest: Latest{Last: at(7, nil)}, there: []Revision{at(8, back(6))}, saved: []int{7, 6}, runs: []int{7, 6}, standing: []int{6}},
		"then an apply was killed":                {Latest: says, there: []Revision{at(8, back(6))}, saved: []int{7, 6}, runs: []int{8, 7, 6}, standing: []int{6}, undoes: 6},
		"the object says of none":                 {there: []Revision{at(8, nil)}, saved: []int{8, 7, 6}, runs: []int{8, 7, 6}, standing: []int{8, 7, 6}},
		"a backup was put back":                   {Latest: Latest{Last: at(7, nil)}, there: []Revision{at(10, nil), at(9, nil), at(8, nil)}, saved: []int{7, 6}, runs: []int{7, 6}, standing: []int{7, 6}, beyond: 10},
	} {
		p := Past{Latest: test.Latest, There: slices.Concat(test.there, older)}
		numbers := func(all []Revision) (n []int) {
			for _, r := range all {
				n = append(n, r.Number)
			}
			return n
		}
		runs := p.Runs()
		if saved, standing := numbers(p.Saved()), numbers(p.Standing()); !slices.Equal(saved, test.saved) || !slices.Equal(numbers(runs), test.runs) || !slices.Equal(standing, test.standing) {
			t.Errorf("%s: saved %v, runs %v, standing %v", name, saved, numbers(runs), standing)
		}
		if runs[0].RollbackTo != test.undoes || p.Beyond().Number != test.beyond {
			t.Errorf("%s: the last run goes on from %d; beyond: %d", name, runs[0].RollbackTo, p.Beyond().Number)
		}
	}
}
