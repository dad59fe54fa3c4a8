package diff

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// mostCompared is how many pairs of items are compared to align two lists. Longer
// lists are compared by place.
const mostCompared = 250_000

// item is one of a list that has no equal in the other list, at the same place in the
// order of those that have one.
type item struct {
	value any
	index int
	gap   int // how many items that are in both lists stand before it
}

// alignedChanges compares two lists whose items nothing identifies, such as the
// arguments of a container. An item that comes, goes or moves is one change, whatever
// that does to the places of the others.
func alignedChanges(out []Change, path string, a, b []any) []Change {
	before, after := unmatched(a, b)
	at := func(i item) string { return fmt.Sprintf("%s[%d]", path, i.index) }
	var found []Change
	pair := func(same func(x, y item) bool, add func(x, y item)) {
		before = slices.DeleteFunc(before, func(x item) bool {
			i := slices.IndexFunc(after, func(y item) bool { return same(x, y) })
			if i < 0 {
				return false
			}
			add(x, after[i])
			after = slices.Delete(after, i, i+1)
			return true
		})
	}
	moved := func(x, y item) {
		c := Change{Path: at(x), Old: x.value, New: y.value}
		if x.gap != y.gap {
			c.Moved = at(y)
		}
		found = append(found, c)
	}
	if len(before)*len(after) <= mostCompared {
		pair(func(x, y item) bool { return equal(x.value, y.value) }, moved)
		pair(func(x, y item) bool { return flag(x.value) != "" && flag(x.value) == flag(y.value) }, moved)
	}
	var come []item
	for _, x := range before {
		for len(after) > 0 && after[0].gap < x.gap {
			come, after = append(come, after[0]), after[1:]
		}
		if len(after) > 0 && after[0].gap == x.gap {
			found, after = changes(found, at(x), x.value, after[0].value), after[1:]
		} else {
			found = append(found, Change{Path: at(x), Old: x.value})
		}
	}
	here := map[string]int{}
	for i, c := range found {
		here[c.Path] = i
	}
	for _, y := range append(come, after...) {
		i, taken := here[at(y)]
		switch {
		case !taken:
			found = append(found, Change{Path: at(y), New: y.value})
		case found[i].New == nil: // one goes at this place, another one comes
			found[i].New = y.value
		default:
			found = append(found, Change{Path: fmt.Sprintf("%s[+%d]", path, y.index), New: y.value})
		}
	}
	slices.SortStableFunc(found, func(x, y Change) int { return cmp.Compare(place(x.Path, path), place(y.Path, path)) })
	return append(out, found...)
}

// place is the index of an item of the list at path.
func place(item, path string) (i int) {
	_, _ = fmt.Sscanf(item[len(path):], "[%d]", &i) // written above
	return i
}

// flag is "--name" of an argument "--name=value"; "" of anything else.
func flag(v any) string {
	s, _ := v.(string)
	name, _, ok := strings.Cut(s, "=")
	if !ok || !strings.HasPrefix(name, "-") {
		return ""
	}
	return name
}

// unmatched are the items of two lists that are not in their longest common
// subsequence.
func unmatched(a, b []any) (before, after []item) {
	head := 0
	for head < min(len(a), len(b)) && equal(a[head], b[head]) {
		head++
	}
	tail := 0
	for tail < min(len(a), len(b))-head && equal(a[len(a)-1-tail], b[len(b)-1-tail]) {
		tail++
	}
	x, y := a[head:len(a)-tail], b[head:len(b)-tail]
	if len(x)*len(y) > mostCompared {
		return items(x, head), items(y, head)
	}
	longest := make([][]int, len(x)+1) // of x[i:] and y[j:]
	for i := range longest {
		longest[i] = make([]int, len(y)+1)
	}
	for i, of := range slices.Backward(x) {
		for j, with := range slices.Backward(y) {
			longest[i][j] = max(longest[i+1][j], longest[i][j+1])
			if equal(of, with) {
				longest[i][j] = longest[i+1][j+1] + 1
			}
		}
	}
	gap := 0
	for i, j := 0, 0; i < len(x) || j < len(y); {
		switch {
		case i < len(x) && j < len(y) && longest[i][j] > max(longest[i+1][j], longest[i][j+1]):
			i, j, gap = i+1, j+1, gap+1
		case i < len(x) && (j == len(y) || longest[i+1][j] >= longest[i][j+1]):
			before = append(before, item{x[i], head + i, gap})
			i++
		default:
			after = append(after, item{y[j], head + j, gap})
			j++
		}
	}
	return before, after
}

// items are all of a list, as if nothing stood between them.
func items(list []any, from int) []item {
	out := make([]item, len(list))
	for i, v := range list {
		out[i] = item{v, from + i, 0}
	}
	return out
}
