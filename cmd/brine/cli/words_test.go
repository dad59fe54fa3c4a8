package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"brine/cmd/brine/clitest"
)

// Words that name nothing are bad usage, and the nearest known one is named.
func TestUnknownWords(t *testing.T) {
	for line, want := range map[string]string{
		"appyl":              `unknown command "appyl" for "brine": did you mean apply?`,
		"appyl -f x":         "did you mean apply?",
		"inventory lst":      `unknown command "lst" for "brine inventory": did you mean list?`,
		"inventory -n x lst": `unknown command "lst" for "brine inventory": did you mean list?`,
		"help nosuch":        `unknown command "nosuch" for "brine": brine --help lists them`,
		"help orderng":       "did you mean ordering?",
		"help inventory lst": "did you mean list?",
		"completion bsh":     "did you mean bash?",
	} {
		if s := clitest.Offline(t, strings.Fields(line)...).Want(t, 3); s.Stdout != "" || !strings.Contains(s.Stderr, want) {
			t.Errorf("%s: %q, and on stderr %q, want %q", line, s.Stdout, s.Stderr, want)
		}
	}
	for _, line := range []string{"", "help", "inventory", "help inventory", "help inventory list", "help ordering", "inventory list --help", "completion bash", "__complete inventory l", "--help"} {
		if s := clitest.Offline(t, strings.Fields(line)...).Want(t, 0); s.Stdout == "" {
			t.Errorf("%q prints nothing", line)
		}
	}
}

// Nothing to check or to apply is an error that names the input. One empty file among
// others is a warning.
func TestEmptyInputs(t *testing.T) {
	dir := t.TempDir()
	empty, full := filepath.Join(dir, "empty.yaml"), filepath.Join(dir, "full.yaml")
	for path, text := range map[string]string{empty: "# nothing\n---\n", full: strings.ReplaceAll(clitest.ConfigMap("a"), "{ns}", "shop")} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, command := range []string{"check", "apply --dry-run=client --name x", "apply --dry-run=client", "images"} {
		for _, input := range []string{empty, "-", dir + "/empty.*ml"} {
			s := clitest.Offline(t, append(strings.Fields(command), "-f", input)...).Want(t, 3)
			named := strings.Replace(input, "-", "standard input", 1)
			if input != "-" {
				named = input
			}
			if !strings.Contains(s.Stdout+s.Stderr, named) {
				t.Errorf("%s -f %s: %q, and on stderr %q", command, input, s.Stdout, s.Stderr)
			}
		}
	}
	for _, command := range []string{"check", "apply --dry-run=client --name x"} {
		clitest.Offline(t, append(strings.Fields(command), "-f", empty, "--allow-empty")...).Want(t, 0)
		clitest.Offline(t, append(strings.Fields(command), "-f", empty, "-f", full)...).Want(t, 0).Prints(t, empty+": is empty")
	}
}
