package diff

import (
	"encoding/base64"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Redact replaces every value of the Secrets in object that occurs in text, a
// server's message, by "***": as written, decoded, base64 encoded, quoted, and
// the longer lines of values that have several. Values of three bytes and less
// are replaced only where they stand as a word of their own. Objects that hold
// no Secret leave the text as it is.
func Redact(text string, object *unstructured.Unstructured) string {
	if object == nil || text == "" {
		return text
	}
	var values []string
	collect(object.Object, func(v string) { values = append(values, forms(v)...) })
	// Longest first, so that no part of a value stays behind.
	slices.SortFunc(values, func(a, b string) int { return len(b) - len(a) })
	for _, v := range slices.Compact(values) {
		text = replaceValue(text, v)
	}
	return text
}

// collect gives each value of each Secret in v to take.
func collect(v any, take func(string)) {
	switch v := v.(type) {
	case map[string]any:
		if isSecret(v) {
			for _, s := range append(secretValues(v), secretValues(lastApplied(v))...) {
				take(s)
			}
			return
		}
		for _, w := range v {
			collect(w, take)
		}
	case []any:
		for _, w := range v {
			collect(w, take)
		}
	}
}

// forms are the ways in which a message may show a value.
func forms(v string) []string {
	raw := []string{v}
	if decoded, err := base64.StdEncoding.DecodeString(strings.TrimSpace(v)); err == nil {
		raw = append(raw, string(decoded))
	}
	var out []string
	for _, r := range raw {
		b := []byte(r)
		out = append(out, r, strings.TrimSpace(r), unquoted(r),
			base64.StdEncoding.EncodeToString(b), base64.RawStdEncoding.EncodeToString(b),
			base64.URLEncoding.EncodeToString(b), base64.RawURLEncoding.EncodeToString(b))
		for line := range strings.SplitSeq(r, "\n") {
			if line = strings.TrimSpace(line); len(line) >= 8 {
				out = append(out, line, unquoted(line))
			}
		}
	}
	return slices.DeleteFunc(out, func(s string) bool { return s == "" })
}

// unquoted is v as %q shows it, without the quotes.
func unquoted(v string) string {
	q := strconv.Quote(v)
	return q[1 : len(q)-1]
}

func replaceValue(text, v string) string {
	if len(v) > 3 {
		return strings.ReplaceAll(text, v, mask)
	}
	var b strings.Builder
	done := 0
	for {
		i := strings.Index(text[done:], v)
		if i < 0 {
			b.WriteString(text[done:])
			return b.String()
		}
		start, end := done+i, done+i+len(v)
		b.WriteString(text[done:start])
		if (start > 0 && wordByte(text[start-1])) || (end < len(text) && wordByte(text[end])) {
			b.WriteString(v)
		} else {
			b.WriteString(mask)
		}
		done = end
	}
}

func wordByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}
