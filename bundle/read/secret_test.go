package read

import (
	"strings"
	"testing"
)

// No problem or warning of reading a bundle quotes the value of a Secret,
// wherever the text says that it is one.
func TestReadingQuotesNoSecret(t *testing.T) {
	const big, octal, word = "12345678901234567890123", "0123456", "hunter2-in-clear"
	for name, text := range map[string]string{
		"a number":            "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: {pin: 123456}",
		"a large number":      "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: {pin: " + big + "}",
		"an octal number":     "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {pin: " + octal + "}",
		"a tag":               "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {pin: !" + word + " x}",
		"a bad boolean":       "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {pin: !!bool " + word + "}",
		"kind from a merge":   "x: &base {apiVersion: v1, kind: Secret}\n<<: *base\nmetadata: {name: a}\ndata: {pin: " + big + "}",
		"kind in quotes":      "apiVersion: v1\n\"kind\": \"Secret\"\nmetadata: {name: a}\ndata: {pin: " + big + "}",
		"kind behind":         "data: {pin: " + big + "}\nmetadata: {name: a}\napiVersion: v1\nkind: Secret",
		"in a list":           "apiVersion: v1\nkind: SecretList\nitems: [{metadata: {name: a}, data: {pin: " + big + "}}]",
		"in a List":           "apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: Secret, metadata: {name: a}, data: {pin: " + big + "}}]",
		"in a custom one":     "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: a}\nspec: {template: {kind: Secret, data: {pin: " + big + "}}}",
		"JSON":                `{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "data": {"pin": ` + big + `}}`,
		"Salt's":              "a:\n  metalk8s_kubernetes.object_present:\n  - manifest: {apiVersion: v1, kind: Secret, metadata: {name: a}, data: {pin: " + big + "}}",
		"Salt's, no function": "a: " + word + "\nb:\n  metalk8s_kubernetes.object_present:\n  - manifest: {apiVersion: v1, kind: Secret, metadata: {name: a}, data: {}}",
		"quoted elsewhere":    "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {pin: " + word + "}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\ndata: {x: !" + word + " y}",
		"no kind":             "apiVersion: v1\nmetadata: {name: a}\nstringData: {pin: " + big + "}",
		"no kind, and a tag":  "apiVersion: v1\nKind: Secret\nmetadata: {name: a}\nstringData: {pin: !" + word + " x}",
		"kind in lower case":  "apiVersion: v1\nkind: secret\nmetadata: {name: a}\nstringData: {pin: " + big + "}",
		"kind from Jinja":     "apiVersion: v1\nkind: \"{{ kind }}\"\nmetadata: {name: a}\nstringData: {pin: " + big + "}",
		"a kind that has one": "apiVersion: example.com/v1\nkind: MySecret\nmetadata: {name: a}\nspec: {pin: " + big + "}",
		"Salt's text":         `{"local": "Create secret:\n  x.object_present:\n    - manifest: {kind: Secret, stringData: {pin: ` + word + `}}\n\""}`,
		"Salt's text, a line": `{"local": "Create secret: {x.object_present: [{manifest: {kind: Secret, stringData: {pin: ` + word + `}}}]}"}`,
		"Salt's text, JSON":   `{"local": "{\"kind\": \"Secret\", \"stringData\": {\"pin\": \"` + word + `\"}}"}`,
		"Salt's texts":        `{"local": ["apiVersion: v1\nkind: Secret\nstringData: {pin: ` + word + `}\n"]}`,
		"Salt's, keys quoted": `{"local": "\"apiVersion\": v1\n\"kind\": Secret\nstringData: {pin: ` + word + `}"}`,
		"Salt's, a body":      `{"local": {"a": "pin: ` + word + `.x", "b": {"k.object_present": [{"manifest": {"apiVersion": "v1", "kind": "Secret"}}]}}}`,
		"Salt's, a field":     `{"local": {"a": {"k.object_present": [{"manifest": {"apiVersion": "v1", "kind": "Secret"}}], "pin": "` + word + `"}}}`,
		"behind Salt's words": `{"local": ["Rendering SLS 'base:x' failed: Jinja error: no ` + word + `; line 3\n\n---\npin: ` + word + `", "Rendering SLS 'base:x' failed: expected tag '!` + word + `'"]}`,
		"not YAML":            "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {pin: *" + word + "}",
		"not YAML either":     "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData:\n  pin: \"" + word + "\n  other: x",
	} {
		t.Run(name, func(t *testing.T) {
			b, err := Bundle(t.Context(), Options{Files: []string{"-"}, Stdin: strings.NewReader(text), Partial: true})
			said := ""
			if err != nil {
				said = err.Error()
			}
			if b != nil {
				for _, w := range b.Warnings {
					said += w.Error()
				}
			}
			if said == "" && name != "an octal number" {
				t.Fatal("nothing is wrong with it")
			}
			for i, value := range []string{big, "1.2345678901234568e+22", "123456", octal, "42798", word} {
				if strings.Contains(said, value) {
					t.Errorf("value %d is in a message", i)
				}
			}
		})
	}
}
