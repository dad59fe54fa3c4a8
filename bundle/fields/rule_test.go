package fields

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"brine/bundle"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"/spec/replicas":                "",
		"/metadata/annotations/a~1b~0c": "",
		"/metadata/name/x":              "",
		"":                              "the pointer is empty",
		"spec.replicas":                 "must begin with /",
		"/":                             "a part of it is empty",
		"/spec//replicas":               "a part of it is empty",
		"/spec/a~2":                     "~ is written ~0",
		"/spec/a*":                      "* stands for a whole key",
		"/apiVersion":                   "cannot be ignored: it identifies the object",
		"/metadata/name":                "cannot be ignored: it identifies the object",
		"/metadata/*":                   "it contains /metadata/name, which identifies the object",
		"/*":                            "it contains /apiVersion, which",
		"/metadata":                     "it contains /metadata/name",
		"/metadata/annotations":         "it contains /metadata/annotations/config.k8s.io~1owning-inventory, which marks",
		"/metadata/labels/applyset.kubernetes.io~1part-of":       "cannot be ignored: it marks the object",
		"/metadata/annotations/brine.dev~1ignore-fields":         "cannot be ignored: it is this very annotation",
		"/webhooks/*/clientConfig/caBundle":                      "",
		"/metadata/annotations/" + strings.Repeat("a~1", 100000): "",
	} {
		p, err := Parse(text)
		switch {
		case want == "" && (err != nil || p.String() != text):
			t.Errorf("%.50s is %.50s, %v", text, p, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

func TestReadRules(t *testing.T) {
	for text, want := range map[string]string{
		"- {kind: Deployment, fields: [/spec/replicas]}":          "",
		`[{"group": "", "name": "web-*", "fields": ["/data/*"]}]`: "",
		"a: [":                           "rules.yaml:1: it is not YAML",
		"- {kind: A, fields: [/a]}\n\tb": "rules.yaml:2: it is not YAML",
		"":                               "rules.yaml:1: it is not a list of rules",
		"rules: []":                      "rules.yaml:1: it is not a list of rules",
		"- a":                            "rules.yaml:1: a rule is a map",
		"- kind: A\n  field: [/a]":       `rules.yaml:2: unknown key "field": did you mean fields?`,
		"- kind: A":                      "rules.yaml:1: the rule has no fields",
		"- fields: [/a]\n- fields:\n  - /b\n  - /kind\n": "rules.yaml:4: /kind cannot be ignored",
		"- fields: /a":                                       "rules.yaml:1: fields is not a list of JSON pointers",
		"- fields: [[a]]":                                    "rules.yaml:1: the pointer is empty",
		"- kind: 1\n  fields: [/a]":                          "rules.yaml:1: kind is not text",
		"- kind: A\n  kind: B\n  fields: [/a]":               "rules.yaml:2",
		"- fields: [/a]\n---\n- fields: [/b]":                "rules.yaml:2: a file has one list of rules",
		"- &a {fields: [/a]}\n- *a":                          "",
		"\x00\xff":                                           "rules.yaml:1: it is not YAML",
		"- {kind: A, fields: [/a]}\n- {kind: B, fields: []}": "rules.yaml:2: fields is not a list",
	} {
		rules, err := ReadRules("rules.yaml", []byte(text))
		switch {
		case want == "" && (err != nil || len(rules) == 0):
			t.Errorf("%q: %v, %v", text, rules, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func TestRuleMatches(t *testing.T) {
	rules := func(text string) []Rule {
		all, err := ReadRules("r", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	web := bundle.ID{GroupKind: schema.GroupKind{Group: "apps", Kind: "Deployment"}, Namespace: "shop", Name: "web-1"}
	for text, want := range map[string]bool{
		"":                             true,
		"kind: Deployment":             true,
		"kind: deployment":             false,
		"group: apps":                  true,
		`group: ""`:                    false,
		"group: '*'":                   true,
		"name: web-*":                  true,
		"name: '*-1'":                  true,
		"name: w*b*1":                  true,
		"name: web":                    false,
		"name: web-1*1":                false,
		"namespace: shop, name: db":    false,
		"namespace: s*p, kind: Dep*nt": true,
	} {
		comma := ", "
		if text == "" {
			comma = ""
		}
		if r := rules(fmt.Sprintf("- {%s%sfields: [/a]}", text, comma)); r[0].matches(web) != want {
			t.Errorf("%s matches: %v", text, !want)
		}
	}
}

func FuzzReadRules(f *testing.F) {
	f.Add("- {kind: Deployment, fields: [/spec/replicas]}")
	f.Add("- &a {fields: [/a]}\n- *a")
	f.Fuzz(func(t *testing.T, text string) {
		rules, err := ReadRules("r", []byte(text))
		if err == nil && len(rules) == 0 {
			t.Error("neither rules nor a problem")
		}
		for _, r := range rules {
			for _, p := range r.Fields {
				if again, err := Parse(p.String()); err != nil || again.String() != p.String() {
					t.Errorf("%q is %q, %v", p, again, err)
				}
			}
		}
	})
}
