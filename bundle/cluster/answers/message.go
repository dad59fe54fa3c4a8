package answers

import (
	"strings"

	"brine/bundle"
)

// longestValue is how much of a value of a field is still worth reading.
const longestValue = 120

// Message is the text of an error without the long values and the regular expressions that the
// server quotes in it: a Job whose template changed comes back as two kilobytes of Go.
func Message(err error) string {
	text := err.Error()
	for _, c := range CausesOf(err) {
		if short := withoutValue(c.Message); short != c.Message {
			text = strings.ReplaceAll(text, c.Message, short)
		}
	}
	return bundle.InWords(text)
}

// withoutValue takes a long value out of what field.Error (apimachinery's
// util/validation/field) says of one field: "Invalid value: VALUE: field is
// immutable", "Unsupported value: VALUE: …".
func withoutValue(message string) string {
	what, rest, ok := strings.Cut(message, " value: ")
	if !ok || strings.Contains(what, ":") {
		return message
	}
	for _, end := range []string{"}: ", "]: ", `": `} {
		at := strings.LastIndex(rest, end)
		if at < longestValue {
			continue
		}
		return what + " value: " + rest[at+len(end):]
	}
	return message
}

// FieldPaths are what may be paths of fields in a server's message: unknown
// field "spec.foo" (strict decoding), spec.replicas: Invalid value (field.Error).
func FieldPaths(message string) []string {
	var paths []string
	if _, rest, ok := strings.Cut(message, `unknown field "`); ok {
		path, _, _ := strings.Cut(rest, `"`)
		paths = append(paths, path)
	}
	for word := range strings.FieldsSeq(message) {
		if path, ok := strings.CutSuffix(word, ":"); ok && strings.ContainsAny(path, ".[") {
			paths = append(paths, strings.TrimPrefix(path, "[")) // the first of several
		}
	}
	return paths
}
