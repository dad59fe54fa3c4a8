package inventory

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A history is written with the newest revision last: "A applied, B failed".
func TestKeptRevisions(t *testing.T) {
	for _, test := range []struct {
		history string
		limit   int
		kept    string
		earlier int
	}{
		{"", 3, "[]", 0},
		{"A applied", 1, "[1]", 0},
		{"A applied, B applied, C applied", 2, "[2 3]", 2},
		{"A applied, B applied", 1, "[1 2]", 1},
		{"A applied, A failed", 1, "[1 2]", 0},
		{"A applied, A failed, B failed, C not-ready", 2, "[1 3 4]", 1},
		{"A applied, B applied, B failed, B applied, B failed", 2, "[1 4 5]", 1},
		{"A failed, B failed, C failed", 2, "[2 3]", 0},
	} {
		t.Run(test.history, func(t *testing.T) {
			var history []Revision
			for i, words := range strings.Split(test.history, ", ") {
				if digest, result, ok := strings.Cut(words, " "); ok {
					history = slices.Insert(history, 0, Revision{Number: i + 1, Digest: digest, Result: result})
				}
			}
			if got := fmt.Sprint(slices.Sorted(maps.Keys(Kept(history, test.limit)))); got != test.kept {
				t.Errorf("it keeps %s, want %s", got, test.kept)
			}
			if r, _ := RollbackTarget(history, SameDigest); r.Number != test.earlier {
				t.Errorf("a rollback goes to %d, want %d", r.Number, test.earlier)
			}
		})
	}
}

// A history is written with the newest revision last: "A applied, B failed, A applied 1"
// ends with a rollback to 1; "B applied:1" is an apply after one that is no revision.
func TestRollbackTarget(t *testing.T) {
	for _, test := range []struct {
		name, history           string
		target, undone, further int
		there                   bool
	}{
		{"nothing was applied", "", 0, 0, 0, false},
		{"the first apply", "A applied", 0, 1, 0, false},
		{"the last apply is undone", "A applied, B applied, C applied", 2, 3, 1, false},
		{"repeated after success", "A applied, B applied, C applied, B applied 2", 2, 3, 1, true},
		{"repeated many times", "A applied, B applied, C applied, B applied 2, B failed 2, B applied 2", 2, 3, 1, true},
		{"repeated after a failure", "A applied, B applied, C applied, B failed 2", 2, 3, 1, false},
		{"a failed apply", "A applied, B applied, C failed", 2, 3, 1, false},
		{"failed applies", "A applied, B failed, C not-ready", 1, 3, 0, false},
		{"an apply that was rolled back by itself", "A applied, B failed, A applied 1", 1, 2, 0, true},
		{"a partial apply", "A applied, B partial", 1, 2, 0, false},
		{"an apply after a rollback", "A applied, B applied, A applied 1, C applied", 3, 4, 0, false},
		{"an apply after a rollback that failed", "A applied, B applied, A failed 1, C applied", 1, 4, 0, false},
		{"an apply after a rollback by itself that failed", "A applied, B applied, C applied, B failed 2, D failed", 2, 5, 1, false},
		{"a rollback of a rollback", "A applied, B applied, A applied 1, B failed 2, C applied", 2, 5, 1, false},
		{"further back by number", "A applied, B applied, C applied, A applied 1", 2, 3, 1, false},
		{"the same content is not another", "A applied, B applied, B failed, B applied", 1, 4, 0, false},
		{"an apply of which nothing is kept", "A applied, B applied, A failed 1, C not-kept, A failed 1", 1, 4, 0, false},
		{"only rollbacks are left", "A applied 7, B applied 8", 0, 0, 0, false},
		{"none was good", "A not-ready, B not-ready", 0, 2, 0, false},
		{"an apply after a rollback that is no revision", "A applied, B applied, C applied:1", 1, 3, 0, false},
		{"applies after a rollback that is no revision", "A applied, B applied, C failed:1, D applied", 1, 4, 0, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, ok := RollbackTarget(written(test.history), SameDigest)
			if ok != (test.target > 0) || got.Number != test.target || got.Undone.Number != test.undone || got.Further.Number != test.further || got.There != test.there {
				t.Errorf("it goes to %d, undoes %d, further back is %d, there %t: %s", got.Number, got.Undone.Number, got.Further.Number, got.There, got.Describe("shop", "inv", ""))
			}
			kept := Kept(written(test.history), 1)
			trimmed := slices.DeleteFunc(written(test.history), func(r Revision) bool { return !kept[r.Number] })
			if got, _ := RollbackTarget(trimmed, SameDigest); got.Number != test.target {
				t.Errorf("after trimming to %v it goes to %d", kept, got.Number)
			}
		})
	}
}

func written(text string) []Revision {
	var history []Revision
	for i, words := range strings.Split(text, ", ") {
		word := strings.Fields(words)
		if len(word) < 2 {
			continue
		}
		result, passed, _ := strings.Cut(word[1], ":")
		r := Revision{Number: i + 1, Digest: word[0], Result: result, Command: "apply"}
		r.RollbackTo, _ = strconv.Atoi(passed)
		if len(word) > 2 {
			r.Command = Rollback
			r.RollbackTo, _ = strconv.Atoi(word[2])
		}
		history = slices.Insert(history, 0, r)
	}
	return history
}

// What a revision says once is not saved again, unless that would hide what came last.
func TestSays(t *testing.T) {
	applied := Revision{Number: 4, Digest: "a", Result: "applied", Command: "apply"}
	rolledBack, failed, some := applied, applied, applied
	rolledBack.Command, failed.Result, some.Result = Rollback, "failed", Partial
	before, since := Revision{Number: 3}, Revision{Number: 5}
	for name, test := range map[string]struct {
		last, next, begun Revision
		want              bool
	}{
		"the same again":                      {applied, applied, Revision{}, true},
		"another end":                         {applied, failed, Revision{}, false},
		"an apply that was killed since":      {applied, applied, since, true},
		"a rollback that undoes it":           {applied, rolledBack, since, false},
		"an apply of what a rollback applied": {rolledBack, applied, Revision{}, true},
		"the same, and one was killed before": {rolledBack, applied, before, false},
		"the same, and one was killed since":  {rolledBack, applied, since, false},
		"the rollback is repeated":            {rolledBack, rolledBack, before, true},
		"some of it again":                    {applied, some, Revision{}, true},
		"some of it, and one was killed":      {rolledBack, some, since, true},
		"some of it again, as before":         {some, some, Revision{}, true},
		"some of what failed":                 {failed, some, Revision{}, false},
		"some of another bundle":              {applied, Revision{Digest: "b", Result: Partial}, Revision{}, false},
	} {
		if got := test.last.Says(test.next, test.begun); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
