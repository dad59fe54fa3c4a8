package diff

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle/bundletest"
)

const definition = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.com}
spec:
  group: example.com
  names: {kind: Thing, plural: things}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        description: a thing
        type: object
        properties:
          spec:
            type: object
            required: [size]
            properties:
              size: {type: integer, minimum: 1}
              mode: {type: string, enum: [a, b]}
              ports: {type: array, items: {type: object, properties: {port: {type: integer}}}}
`

func TestSchemas(t *testing.T) {
	for name, c := range map[string]struct {
		old, now string
		want     []string
		summary  string
		breaks   bool
	}{
		"nothing":            {"", "", nil, "nothing that a resource can see", false},
		"a description":      {"a thing", "some thing", nil, "1 description changed", false},
		"a field more":       {"mode: {type", "other: {type: string}\n              mode: {type", []string{"v1 spec.other: added (string)"}, "1 field added", false},
		"a field less":       {"              size: {type: integer, minimum: 1}\n", "", []string{"v1 spec.size: removed"}, "1 field removed", true},
		"a value less":       {"[a, b]", "[a]", []string{"v1 spec.mode: changed (enum [\"a\",\"b\"] → [\"a\"])"}, "1 field changed", true},
		"a value more":       {"[a, b]", "[a, b, c]", []string{"v1 spec.mode: changed (enum [\"a\",\"b\"] → [\"a\",\"b\",\"c\"])"}, "1 field changed", false},
		"no limit":           {", minimum: 1", "", []string{"v1 spec.size: changed (minimum 1 → none)"}, "1 field changed", false},
		"another limit":      {"minimum: 1", "minimum: 2", []string{"v1 spec.size: changed (minimum 1 → 2)"}, "1 field changed", true},
		"required":           {"[size]", "[size, mode]", []string{"v1 spec: changed (mode is required)"}, "1 field changed", true},
		"no longer required": {"required: [size]", "x-a: b", []string{"v1 spec: changed (x-a none → b; size is no longer required)"}, "1 field changed", false},
		"in a list":          {"port: {type: integer}", "port: {type: string}", []string{"v1 spec.ports[].port: changed (type integer → string)"}, "1 field changed", true},
		"not served":         {"served: true", "served: false", []string{"v1: changed (served true → false)"}, "version v1: changed (served true → false)", true},
		"another version":    {"name: v1\n", "name: v2\n", []string{"v1: removed", "v2: added"}, "version v1: removed, version v2: added", true},
	} {
		t.Run(name, func(t *testing.T) {
			s := Schemas(bundletest.Object(t, definition), bundletest.Object(t, strings.Replace(definition, c.old, c.now, 1)))
			var got []string
			for _, f := range s.Fields {
				got = append(got, f.String())
			}
			if !slices.Equal(got, c.want) || s.Summary() != c.summary || s.Breaks() != c.breaks {
				t.Errorf("%q, %q, breaks %v", got, s.Summary(), s.Breaks())
			}
		})
	}
	if s := Schemas(bundletest.Object(t, definition), nil); s != nil || s.Breaks() {
		t.Errorf("a deleted CRD: %+v", s)
	}
}

// A file in a ConfigMap is compared line by line, also where YAML would write it in
// one line; the values of other fields stay in the YAML.
func TestFilesOfConfigMaps(t *testing.T) {
	configMap := func(file, other string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"},
			"data": map[string]any{"app.yaml": file, "level": other, "same": "x\ny\n"},
		}}
	}
	for name, c := range map[string]struct {
		before, after *unstructured.Unstructured
		want          string
	}{
		"a file": {configMap("a: 1 \nb: 2\nc: 3\n", "info"), configMap("a: 1 \nb: 3\nc: 3\n", "info"),
			"--- live\n+++ applied\n@@ data[\"app.yaml\"] @@\n@@ -1,3 +1,3 @@\n a: 1 \n-b: 2\n+b: 3\n c: 3\n"},
		"JSON of one line": {configMap(`{"a":1,"b":[2]}`, "info"), configMap(`{"a":1,"b":[3]}`, "info"),
			"--- live\n+++ applied\n@@ data[\"app.yaml\"] @@\n@@ -1,6 +1,6 @@\n {\n   \"a\": 1,\n   \"b\": [\n-    2\n+    3\n   ]\n }\n"},
		"a word": {configMap("a: 1\n", "info"), configMap("a: 1\n", "debug"),
			"--- live\n+++ applied\n@@ -2,7 +2,7 @@\n data:\n   app.yaml: |\n     a: 1\n-  level: info\n+  level: debug\n   same: |\n     x\n     y\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got := Objects(c.before, c.after, nil).Unified
			if !strings.HasPrefix(got, "--- live\n+++ applied\n@@") || name != "a word" && got != c.want || name == "a word" && !strings.Contains(got, "-  level: info\n+  level: debug\n") {
				t.Errorf("%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// Where a schema names no other fields any more, the server takes out what is stored in them.
func TestOtherFields(t *testing.T) {
	some, whatever, none := map[string]any{"type": "object", "additionalProperties": map[string]any{"type": "string"}}, map[string]any{"type": "object", "additionalProperties": true}, map[string]any{"type": "object"}
	for _, c := range []struct {
		before, after map[string]any
		want          string
		breaks        bool
	}{
		{some, none, "v1 spec.labels: changed (other fields are no longer kept)", true}, {whatever, none, "v1 spec.labels: changed (other fields are no longer kept)", true},
		{none, some, "v1 spec.labels: changed (other fields are kept)", false}, {whatever, whatever, "", false},
	} {
		s, got := &SchemaChanges{}, ""
		if s.compare("v1", "spec.labels", c.before, c.after); len(s.Fields) > 0 {
			got = s.Fields[0].String()
		}
		if got != c.want || s.Breaks() != c.breaks {
			t.Errorf("%q, breaks %t", got, s.Breaks())
		}
	}
}
