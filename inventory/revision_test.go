package inventory

import (
	"fmt"
	"maps"
	"slices"
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
			var last Revision
			if len(history) > 0 {
				last = history[0]
			}
			if r, _ := Earlier(history, last); r.Number != test.earlier {
				t.Errorf("a rollback goes to %d, want %d", r.Number, test.earlier)
			}
		})
	}
}
