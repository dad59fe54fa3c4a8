package bundle

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
)

func TestInWords(t *testing.T) {
	for name, messages := range map[string][]string{
		"label":      validation.IsDNS1123Label("A_"),
		"subdomain":  validation.IsDNS1123Subdomain("A_"),
		"older":      validation.IsDNS1035Label("A_"),
		"qualified":  validation.IsQualifiedName("/-"),
		"value":      validation.IsValidLabelValue("-"),
		"variable":   validation.IsEnvVarName("="),
		"wildcard":   validation.IsWildcardDNS1123Subdomain("A_"),
		"identifier": validation.IsCIdentifier("-"),
	} {
		for _, message := range messages {
			got := InWords(message)
			if strings.Contains(got, "regex") || strings.Count(got, "(") != strings.Count(got, ")") || len(got) < 20 {
				t.Errorf("%s: %q is %q", name, message, got)
			}
		}
	}
	if got := InWords(validation.RegexError("no", "x(y)?")); got != "no" {
		t.Errorf("without an example: %q", got)
	}
	if got := InWords("regex used for validation is mine"); got != "regex used for validation is mine" {
		t.Errorf("another text: %q", got)
	}
}
