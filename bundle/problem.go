package bundle

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Problem is an error in a bundle, or a warning about one. All
// problems of a bundle are found and reported at once.
type Problem struct {
	Source Source
	ID     ID     // of the object, as far as it is known
	Path   string // of the field, like "spec.template.spec.containers[0].image"
	// Message says what is wrong and what to do about it.
	Message string
}

// InWords takes the regular expressions out of apimachinery's messages
// (util/validation, RegexError): what they say is there in words before.
func InWords(message string) string {
	return quotedSyntax().ReplaceAllStringFunc(message, func(s string) string {
		if strings.HasPrefix(s, ",") { // after the examples
			return ")"
		}
		return ""
	})
}

var quotedSyntax = Pattern(`(?: \(|, )regex used for validation is '[^']*'\)`)

// Error is one line: "file:line: kind namespace/name: path: message".
func (p Problem) Error() string {
	s := p.Source.String()
	if p.ID != (ID{}) {
		s = join(s, Name(p.ID))
	}
	return join(join(s, p.Path), p.Message)
}

func join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + ": " + b
}

// Problems is the error of a bundle that cannot be used: everything that is
// wrong with it, sorted by file and line.
type Problems []Problem

// Error is one line a problem.
func (ps Problems) Error() string {
	return strings.Join(Each(ps, Problem.Error), "\n")
}

// Unwrap gives the problems one by one, so that errors.As finds a Problem.
func (ps Problems) Unwrap() []error {
	return Each(ps, func(p Problem) error { return p })
}

// Err is ps as an error, sorted and without repetitions; nil when there is none.
func (ps Problems) Err() error {
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

// ProblemsOf are the problems that an error is made of.
func ProblemsOf(err error) []Problem {
	if problems, ok := errors.AsType[Problems](err); ok {
		return problems
	}
	if err != nil {
		return []Problem{{Message: err.Error()}}
	}
	return nil
}

// Warn adds a warning, once.
func (b *Bundle) Warn(p Problem) {
	if !slices.Contains(b.Warnings, p) {
		b.Warnings = append(b.Warnings, p)
	}
}

// WarnOnce adds one warning for all with the same message, and counts them.
func (b *Bundle) WarnOnce(same []Problem) {
	counts := map[string]int{}
	for _, p := range same {
		counts[p.Message]++
	}
	for _, p := range same {
		if n := counts[p.Message]; n > 0 {
			counts[p.Message] = 0
			if n > 1 {
				p.Message += fmt.Sprintf(" (%s; this is the first)", Count(n, "object"))
			}
			b.Warn(p)
		}
	}
}

// Count is "1 object", "2 objects", "3 dependencies".
func Count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	if before, ok := strings.CutSuffix(what, "y"); ok {
		return fmt.Sprintf("%d %sies", n, before)
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Clip is a text, or its first characters where it is longer than most.
func Clip(text string, most int) string {
	if r := []rune(text); len(r) > most {
		return string(r[:most]) + "…"
	}
	return text
}

// Some are the first n of names, and the number of the others.
func Some(names []string, n int) string {
	if len(names) <= n {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:n], ", "), len(names)-n)
}
