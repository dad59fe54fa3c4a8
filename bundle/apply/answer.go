package apply

import (
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// longestValue is how much of a value of a field is still worth reading.
const longestValue = 120

// shortened is the message of an error without the long values that the server
// quotes in it: a Job whose template changed comes back as two kilobytes of Go.
func shortened(err error) string {
	text := err.Error()
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return text
	}
	for _, c := range status.Status().Details.Causes {
		if short := withoutValue(c.Message); short != c.Message {
			text = strings.ReplaceAll(text, c.Message, short)
		}
	}
	return text
}

// withoutValue takes a long value out of what field.Error says of one field:
// "Invalid value: VALUE: field is immutable", "Unsupported value: VALUE: …".
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
