package bundle

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Problems is the error of a bundle that cannot be used: everything that is
// wrong with it, sorted by file and line.
type Problems []Problem

// Error is one line a problem.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap gives the problems one by one, so that errors.As finds a Problem.
func (ps Problems) Unwrap() []error {
	errs := make([]error, len(ps))
	for i, p := range ps {
		errs[i] = p
	}
	return errs
}

// err is ps as an error, sorted and without repetitions; nil when there is none.
func (ps Problems) err() error {
	if len(ps) == 0 {
		return nil
	}
	return ps.Sorted()
}

// Sorted puts problems in the order of files and lines, each once.
func (ps Problems) Sorted() Problems {
	slices.SortStableFunc(ps, func(a, b Problem) int {
		return cmp.Or(
			cmp.Compare(a.Source.File, b.Source.File), cmp.Compare(a.Source.Line, b.Source.Line),
			cmp.Compare(a.Path, b.Path), cmp.Compare(a.Message, b.Message))
	})
	return slices.Compact(ps)
}

// path is the way from an object down to a field.
type path []step

type step struct {
	key   string
	index int // in a list, counted from 0; -1 for a key
}

func (p path) at(key string) path { return append(p, step{key: key, index: -1}) }
func (p path) nth(i int) path     { return append(p, step{index: i}) }

// keys are the steps as text; of a list, the index.
func (p path) keys() []string {
	keys := make([]string, len(p))
	for i, s := range p {
		if keys[i] = s.key; s.index >= 0 {
			keys[i] = strconv.Itoa(s.index)
		}
	}
	return keys
}

// String writes a path as kubernetes does: spec.containers[0].image,
// metadata.annotations[foo.bar/x].
func (p path) String() string {
	var b strings.Builder
	for _, s := range p {
		switch {
		case s.index >= 0:
			fmt.Fprintf(&b, "[%d]", s.index)
		case s.key == "" || strings.ContainsAny(s.key, "./[] "):
			fmt.Fprintf(&b, "[%s]", s.key)
		default:
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(s.key)
		}
	}
	return b.String()
}
