package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"brine/bundle/report"
	"brine/cmd/brine/clitest"
)

// A plan that this version does not know is told from a file that is no plan.
func TestPlanOfAnotherFormat(t *testing.T) {
	path, file := filepath.Join(t.TempDir(), "plan.json"), clitest.BundleFile(t, clitest.ConfigMap("a"))
	for text, want := range map[string]string{
		`{"apiVersion":"brine.dev/v2","kind":"Plan","version":"v0.9.0"}`: "it is in format brine.dev/v2, which brine v0.9.0 wrote",
		`{"apiVersion":"v1","kind":"Plan"}`:                              "was not written by --plan-out",
		`{"apiVersion":"brine.dev/v1","kind":"Result"}`:                  "was not written by --plan-out",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		r := clitest.Offline(t, "apply", "-f", file, "--plan", path).Want(t, report.ExitBadBundle)
		if printed := r.Stdout + r.Stderr; !strings.Contains(printed, want) {
			t.Errorf("%s: it says %q, want %q", text, printed, want)
		}
	}
}

// The preview of a rollback does not replace the plan of an apply, which may be approved.
func TestARollbackSavesNoPlanInTheSecret(t *testing.T) {
	r := clitest.Offline(t, "rollback", "1", "--inventory", "a/b", "--dry-run=server", "--plan-out=secret").Want(t, report.ExitBadBundle)
	if printed := r.Stdout + r.Stderr; !strings.Contains(printed, "--plan-out=secret is for brine preview") {
		t.Errorf("it says %q", printed)
	}
}
