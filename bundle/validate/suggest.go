package validate

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
)

// unknownField says that the schema has no field at path, and which one may
// have been meant.
func (v *compiled) unknownField(path string) string {
	parent, name := split(path)
	s := v.structural
	for i, step := range parent {
		if s == nil || step == "metadata" && (i == 0 || s.XEmbeddedResource) {
			return unknownMessage(name, metadataFields)
		}
		s = descend(s, step)
	}
	var names []string
	if s != nil {
		for k := range s.Properties {
			names = append(names, k)
		}
	}
	return unknownMessage(name, names)
}

// metadataFields are those that people write.
var metadataFields = []string{"annotations", "finalizers", "generateName", "labels", "name", "namespace", "ownerReferences"}

func descend(s *schema.Structural, step string) *schema.Structural {
	if _, err := strconv.Atoi(step); err == nil && s.Items != nil {
		return s.Items
	}
	if p, ok := s.Properties[step]; ok {
		return &p
	}
	if s.AdditionalProperties != nil {
		return s.AdditionalProperties.Structural
	}
	return nil
}

// split takes "spec.ports[0].name" apart: spec, ports, 0 and name.
func split(path string) (parent []string, name string) {
	all := strings.FieldsFunc(path, func(r rune) bool { return r == '.' || r == '[' || r == ']' })
	if len(all) == 0 {
		return nil, ""
	}
	return all[:len(all)-1], all[len(all)-1]
}

func unknownMessage(name string, known []string) string {
	message := fmt.Sprintf("unknown field %q", name)
	if best := nearest(name, known); best != "" {
		return message + fmt.Sprintf("; did you mean %q?", best)
	}
	return message
}

// nearest is the known name that is a small slip away from name, or "".
func nearest(name string, known []string) string {
	slices.Sort(known)
	best, least := "", 1+min(3, (len(name)+1)/3)
	for _, k := range known {
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
