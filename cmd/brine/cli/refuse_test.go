package cli

import (
	"strings"
	"testing"
)

func TestFormatOfACommandLine(t *testing.T) {
	for line, want := range map[string]string{
		"apply -o salt":                          "salt",
		"apply -osalt-cmd --nonsense":            "salt-cmd",
		"apply --nonsense --output=salt-events":  "salt-events",
		"apply --output salt":                    "salt",
		"apply -o=salt":                          "salt",
		"apply -vqo json":                        "json",
		"apply -Ro=events":                       "events",
		"apply -o":                               "",
		"apply -no json":                         "",
		"apply -- -o salt":                       "",
		"apply -o salt -o json":                  "json",
		"apply --outputs salt":                   "",
		"status --name salt --kubeconfig=o=salt": "",
	} {
		if got := formatOf(strings.Fields(line)); got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
	t.Setenv("BRINE_OUTPUT", "salt-cmd")
	if got := formatOf([]string{"apply"}); got != "salt-cmd" {
		t.Errorf("from the environment: %q", got)
	}
}
