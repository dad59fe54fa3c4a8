package bundle

import (
	"slices"
	"strings"
)

// Nearest is the known name that is a small slip away from name, or "".
func Nearest(name string, known []string) string {
	best, least := "", 1+min(3, (len(name)+1)/3)
	for _, k := range slices.Sorted(slices.Values(known)) {
		if len(k)-len(name) >= least || len(name)-len(k) >= least {
			continue // it is a letter away for each that is missing
		}
		if d := distance(strings.ToLower(name), strings.ToLower(k)); d < least {
			best, least = k, d
		}
	}
	return best
}

// distance counts the letters to change, add, leave out or swap with the next
// one to get from a to b.
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
