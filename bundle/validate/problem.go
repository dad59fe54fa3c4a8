package validate

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"brine/bundle"
)

// fieldProblem turns an error of the server's library into a Problem.
func fieldProblem(o *bundle.Object, err *field.Error) bundle.Problem {
	path := strings.TrimPrefix(err.Field, ".")
	if path == "<nil>" {
		path = ""
	}
	if err.Type == field.ErrorTypeRequired && err.Detail == "" {
		return o.Problem(path, "is required and missing")
	}
	if err.BadValue == nil && err.Type == field.ErrorTypeInvalid {
		return o.Problem(path, err.Detail)
	}
	// The schema's messages begin with the path once more.
	detail := strings.TrimPrefix(strings.TrimPrefix(err.Detail, err.Field), " in body ")
	detail = strings.Join(strings.Fields(detail), " ") // CEL draws on several lines
	value := fmt.Sprintf("%q", err.BadValue)
	if err.Type == field.ErrorTypeTypeInvalid && strings.HasSuffix(detail, ": "+value) {
		detail = strings.TrimSuffix(detail, ": "+value)
		if is, ok := err.BadValue.(string); ok && jsonTypes[is] {
			return o.Problem(path, fmt.Sprintf("%s, not %s", detail, err.BadValue))
		}
		return o.Problem(path, fmt.Sprintf("%s, which %s is not", detail, value))
	}
	if inner, after, ok := strings.Cut(detail, `" `); ok && path == "" && strings.HasPrefix(inner, `"`) { // "spec.x" must be so
		return o.Problem(inner[1:], after)
	}
	if of := reflect.Indirect(reflect.ValueOf(err.BadValue)); of.Kind() == reflect.Struct || of.Kind() == reflect.Slice && of.Type().Elem().Kind() == reflect.Struct {
		return o.Problem(path, detail) // of Go, meaningless to users
	}
	short := *err
	short.Detail = detail
	return o.Problem(path, short.ErrorBody())
}

// jsonTypes are what the schema validator gives as the bad value where it means
// the value's type.
var jsonTypes = map[string]bool{"null": true, "boolean": true, "integer": true, "number": true, "string": true, "array": true, "object": true}

// gotValue is how structured-merge-diff shows a value: as a Go pointer.
var gotValue = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^expected (\S+), got &value\..*$`) })

// typedProblems are those of an object that server-side apply cannot read.
func typedProblems(o *bundle.Object, err error) []bundle.Problem {
	var list typed.ValidationErrors
	if !errors.As(err, &list) {
		return []bundle.Problem{o.Problem("", err.Error())}
	}
	var problems []bundle.Problem
	for _, e := range list {
		message := gotValue().ReplaceAllString(e.ErrorMessage, "must be of type $1")
		problems = append(problems, o.Problem(strings.TrimPrefix(e.Path, "."), message))
	}
	return problems
}

// uncovered leaves out of coarse what fine has more exactly: a problem of the same
// field, or of one in it.
func uncovered(coarse, fine []bundle.Problem) []bundle.Problem {
	return slices.DeleteFunc(coarse, func(c bundle.Problem) bool {
		return slices.ContainsFunc(fine, func(f bundle.Problem) bool { return inside(f.Path, c.Path) })
	})
}

// inside says whether a field is another one, or in it.
func inside(path, other string) bool {
	rest, ok := strings.CutPrefix(path, other)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}
