package diff

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
)

// What changes in the schemas of a CRD.

// SchemaChange is what becomes of one field of a custom resource, or of a version.
type SchemaChange struct {
	Version string `json:"version" text:"name"`
	// Field is "spec.endpoints[].path"; "" is the version itself.
	Field string `json:"field,omitempty" text:"field"`
	// Action is added, removed or changed.
	Action string `json:"action" text:"name"`
	// Details are the parts of the field's schema that change: "type string → integer".
	Details  []string `json:"details,omitempty"`
	breaking bool
}

// SchemaChanges is what changes in what a CRD defines.
type SchemaChanges struct {
	Fields []SchemaChange `json:"fields"`
	// Descriptions is how many descriptions change, besides.
	Descriptions int `json:"descriptions,omitempty"`
}

// The actions of a SchemaChange.
const (
	fieldAdded   = "added"
	fieldRemoved = "removed"
	fieldChanged = "changed"
)

// Schemas compares what two versions of a CRD define; nil if one of them is not
// there, or is no CRD.
func Schemas(before, after *unstructured.Unstructured) *SchemaChanges {
	a, was := bundle.DefinitionOf(before)
	b, is := bundle.DefinitionOf(after)
	if !was || !is {
		return nil
	}
	s := &SchemaChanges{Fields: []SchemaChange{}}
	x, y := schemas(before), schemas(after)
	for _, v := range a.Versions {
		at := slices.IndexFunc(b.Versions, func(w bundle.DefinedVersion) bool { return w.Name == v.Name })
		switch {
		case at < 0:
			s.add(SchemaChange{Version: v.Name, Action: fieldRemoved, breaking: true})
			continue
		case v.Served != b.Versions[at].Served:
			s.add(SchemaChange{Version: v.Name, Action: fieldChanged, Details: []string{fmt.Sprintf("served %v → %v", v.Served, b.Versions[at].Served)}, breaking: v.Served})
		}
		if v.Storage != b.Versions[at].Storage {
			s.add(SchemaChange{Version: v.Name, Action: fieldChanged, Details: []string{fmt.Sprintf("storage %v → %v", v.Storage, b.Versions[at].Storage)}})
		}
		s.compare(v.Name, "", x[v.Name], y[v.Name])
	}
	for _, v := range b.Versions {
		if !slices.ContainsFunc(a.Versions, func(w bundle.DefinedVersion) bool { return w.Name == v.Name }) {
			s.add(SchemaChange{Version: v.Name, Action: fieldAdded})
		}
	}
	return s
}

func schemas(crd *unstructured.Unstructured) map[string]map[string]any {
	found := map[string]map[string]any{}
	for _, version := range bundle.Items[map[string]any](crd.Object, "spec", "versions") {
		found[bundle.At[string](version, "name")] = bundle.At[map[string]any](version, "schema", "openAPIV3Schema")
	}
	return found
}

func (s *SchemaChanges) add(c SchemaChange) { s.Fields = append(s.Fields, c) }

// compare compares the schemas of one field, and of all below it.
func (s *SchemaChanges) compare(version, path string, a, b map[string]any) {
	if equal(a, b) {
		return
	}
	if a["description"] != b["description"] {
		s.Descriptions++
	}
	c := SchemaChange{Version: version, Field: path, Action: fieldChanged}
	for _, key := range merged(a, b) {
		switch key {
		case "description", "properties", "items", "additionalProperties", "required":
			continue
		}
		if equal(a[key], b[key]) {
			continue
		}
		c.Details = append(c.Details, fmt.Sprintf("%s %s → %s", key, brief(a[key]), brief(b[key])))
		c.breaking = c.breaking || narrows(key, a[key], b[key])
	}
	before, after := bundle.Items[string](a, "required"), bundle.Items[string](b, "required")
	x, _ := a["properties"].(map[string]any)
	y, _ := b["properties"].(map[string]any)
	for _, name := range after {
		if _, was := x[name]; was && !slices.Contains(before, name) {
			c.Details, c.breaking = append(c.Details, name+" is required"), true
		}
	}
	for _, name := range before {
		if _, is := y[name]; is && !slices.Contains(after, name) {
			c.Details = append(c.Details, name+" is no longer required")
		}
	}
	if was, is := others(a), others(b); was != is { // what it does not name, the server takes out
		c.Details = append(c.Details, map[bool]string{true: "other fields are no longer kept", false: "other fields are kept"}[was])
		c.breaking = c.breaking || was
	}
	if len(c.Details) > 0 {
		if c.Field == "" {
			c.Field = "."
		}
		s.add(c)
	}
	for _, name := range merged(x, y) {
		at := strings.TrimPrefix(field(path, name), ".")
		old, was := x[name].(map[string]any)
		now, is := y[name].(map[string]any)
		switch {
		case was && is:
			s.compare(version, at, old, now)
		case was:
			s.add(SchemaChange{Version: version, Field: at, Action: fieldRemoved, breaking: true})
		default:
			needed := SchemaChange{Version: version, Field: at, Action: fieldAdded, breaking: slices.Contains(after, name) && x != nil}
			if kind, _ := now["type"].(string); kind != "" {
				needed.Details = append(needed.Details, kind)
			}
			if needed.breaking {
				needed.Details = append(needed.Details, "required")
			}
			s.add(needed)
		}
	}
	for _, of := range [][2]string{{"items", "[]"}, {"additionalProperties", "[*]"}} {
		old, was := a[of[0]].(map[string]any)
		now, is := b[of[0]].(map[string]any)
		if was && is {
			s.compare(version, path+of[1], old, now)
		}
	}
}

// others says whether an object may have fields that its schema does not name.
func others(schema map[string]any) bool {
	more := schema["additionalProperties"]
	return more != nil && more != false || schema["x-kubernetes-preserve-unknown-fields"] == true
}

// narrows says whether a field takes fewer values than before.
func narrows(key string, old, now any) bool {
	switch key {
	case "type", "format", "pattern", "maximum", "minimum", "maxLength", "minLength", "maxItems", "minItems", "x-kubernetes-validations", "oneOf", "anyOf", "not",
		"allOf", "multipleOf", "minProperties", "maxProperties":
		return now != nil
	case "exclusiveMinimum", "exclusiveMaximum":
		return now == true
	case "enum":
		is, _ := now.([]any)
		was, _ := old.([]any)
		return old == nil || slices.ContainsFunc(was, func(v any) bool { return !slices.ContainsFunc(is, func(w any) bool { return equal(v, w) }) }) && now != nil
	case "nullable", "x-kubernetes-preserve-unknown-fields", "x-kubernetes-int-or-string":
		return old == true
	}
	return false
}

func merged(a, b map[string]any) []string {
	keys := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(keys)
	return slices.Compact(keys)
}

func brief(v any) string {
	if v == nil {
		return "none"
	}
	text, _ := json.Marshal(v) // it comes from JSON
	if len(text) > 60 {
		return "…"
	}
	if s, ok := v.(string); ok && s != "" {
		return s
	}
	return string(text)
}

// Breaks says whether resources that were valid may lose something, or be invalid.
func (s *SchemaChanges) Breaks() bool {
	return s != nil && slices.ContainsFunc(s.Fields, func(c SchemaChange) bool { return c.breaking })
}

// Breaking are the changes by which resources may lose something.
func (s *SchemaChanges) Breaking() []string {
	return bundle.Each(bundle.Where(s.Fields, func(c SchemaChange) bool { return c.breaking }), SchemaChange.String)
}

// String is "v1: spec.size is removed".
func (c SchemaChange) String() string {
	what := c.Version
	if c.Field != "" {
		what += " " + c.Field
	}
	text := what + ": " + c.Action
	if len(c.Details) > 0 {
		text += " (" + strings.Join(c.Details, "; ") + ")"
	}
	return text
}

// Summary is "2 fields added, 1 removed, 3 changed; 40 descriptions changed".
func (s *SchemaChanges) Summary() string {
	counts := map[string]int{}
	var parts []string
	for _, c := range s.Fields {
		if c.Field == "" {
			parts = append(parts, "version "+c.String())
			continue
		}
		counts[c.Action]++
	}
	for _, action := range []string{fieldAdded, fieldRemoved, fieldChanged} {
		if n := counts[action]; n > 0 {
			parts = append(parts, bundle.Count(n, "field")+" "+action)
		}
	}
	if s.Descriptions > 0 {
		parts = append(parts, bundle.Count(s.Descriptions, "description")+" changed")
	}
	if len(parts) == 0 {
		return "nothing that a resource can see"
	}
	return strings.Join(parts, ", ")
}
