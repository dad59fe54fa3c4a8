// Package bundletest makes objects for tests from YAML.
package bundletest

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// Map is a YAML object, with numbers as client-go decodes them: int64 or float64.
func Map(t testing.TB, text string) map[string]any {
	t.Helper()
	var m map[string]any
	body, err := yaml.YAMLToJSON([]byte(text))
	if err == nil {
		err = json.Unmarshal(body, &m)
	}
	if err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	return m
}

// Object is nil for an empty text.
func Object(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	if strings.TrimSpace(text) == "" {
		return nil
	}
	return &unstructured.Unstructured{Object: Map(t, text)}
}

// Imports fails the test where the package in this folder, with all that it is made of, is of
// other packages of brine's than ours, or imports others than theirs, or one that opens
// connections. net/http is linked nevertheless: apimachinery's runtime and meta/v1 import it for
// its status codes. So is client-go, by cli-utils' package object, whose loader of kubectl's
// files brine does not call.
func Imports(t *testing.T, ours, theirs []string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", `{{with .Module}}{{if eq .Path "brine"}}{{$.ImportPath}} {{join $.Imports " "}}{{end}}{{end}}`, ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if !slices.Contains(ours, words[0]) {
			t.Errorf("it is made of %s, which is not in the list of what it may be made of", words[0])
		}
		for _, path := range words[1:] {
			host, _, _ := strings.Cut(path, "/")
			outside := strings.Contains(host, ".")
			if path == "net" || path == "net/http" || path == "os/exec" ||
				outside && !slices.ContainsFunc(theirs, func(allowed string) bool { return path == allowed || strings.HasPrefix(path, allowed+"/") }) {
				t.Errorf("it is made of %s, which imports %s: that is not in the list of what they may import", words[0], path)
			}
		}
	}
}
