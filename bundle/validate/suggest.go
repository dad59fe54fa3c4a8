package validate

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	"brine/bundle"
)

// unknownField is the message for a field that the schema does not have, and which one may
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
	if best := bundle.Nearest(name, known); best != "" {
		return message + fmt.Sprintf("; did you mean %q?", best)
	}
	return message
}
