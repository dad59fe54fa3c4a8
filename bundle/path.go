package bundle

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// HasText says whether any text in a value, but for the keys, is one of those.
func HasText(v any, one func(string) bool) bool {
	switch v := v.(type) {
	case map[string]any:
		for _, value := range v {
			if HasText(value, one) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, func(item any) bool { return HasText(item, one) })
	case string:
		return one(v)
	}
	return false
}

// Path is the way from an object down to a field.
type Path []Step

// Step is one field, or one item of a list.
type Step struct {
	Key   string
	Index int // in a list, counted from 0; -1 for a field
}

// Field is the path to a field of the mapping at p. It may change other paths
// that were made from p.
func (p Path) Field(key string) Path { return append(p, Step{Key: key, Index: -1}) }

// Item is the path to an item of the list at p, counted from 0.
func (p Path) Item(i int) Path { return append(p, Step{Index: i}) }

// Keys are the steps as text; of a list, the index.
func (p Path) Keys() []string {
	keys := make([]string, len(p))
	for i, s := range p {
		if keys[i] = s.Key; s.Index >= 0 {
			keys[i] = strconv.Itoa(s.Index)
		}
	}
	return keys
}

// String writes a path as kubernetes does: spec.containers[0].image,
// metadata.annotations[foo.bar/x].
func (p Path) String() string {
	var b strings.Builder
	for _, s := range p {
		switch {
		case s.Index >= 0:
			fmt.Fprintf(&b, "[%d]", s.Index)
		case s.Key == "" || strings.ContainsAny(s.Key, "./[] "):
			fmt.Fprintf(&b, "[%s]", s.Key)
		default:
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(s.Key)
		}
	}
	return b.String()
}
