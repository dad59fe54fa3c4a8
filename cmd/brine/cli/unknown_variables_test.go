package cli_test

import (
	"strings"
	"testing"

	"brine/cmd/brine/clitest"
)

// A variable that is misspelt would be a guard that is missing.
func TestUnknownVariables(t *testing.T) {
	file := clitest.BundleFile(t, clitest.ConfigMap("a"))
	for _, c := range []struct{ name, value, want string }{
		{"BRINE_MAX_PRUNES", "5", "warning: the variable BRINE_MAX_PRUNES sets no flag, and is ignored: did you mean BRINE_MAX_PRUNE (--max-prune)?"},
		{"BRINE_timeout", "5s", "did you mean BRINE_TIMEOUT (--timeout)?"},
		{"BRINE_SOMETHING_ELSE", "hush", "BRINE_SOMETHING_ELSE sets no flag, and is ignored: each is named after a flag"},
		{"BRINE_MAX_PRUNE", "5", ""}, // a flag of another command
		{"BRINE_MAX_PRUNES", "", ""},
		{"BRINE_PROFILE_DIR_", "", ""},
		{"BRINE_CACHE_DIR", t.TempDir(), ""},
		{"BRINE_JID", "2026", ""},
		{"BRINE_TEST_ANYTHING", "yes", ""},
		{"BRINE_SERVICE_HOST", "10.0.0.1", ""},
		{"BRINE_PORT_80_TCP_ADDR", "10.0.0.1", ""},
		{"BRINE_WEB_SERVICE_PORT_HTTP", "80", ""},
		{"BRINES", "x", ""},
	} {
		t.Run(c.name+"="+c.value, func(t *testing.T) {
			t.Setenv(c.name, c.value)
			s := clitest.Offline(t, "check", "-f", file).Want(t, 0)
			if !strings.Contains(s.Stderr, c.want) || c.want == "" && strings.Contains(s.Stderr, "variable") || strings.Contains(s.Stderr, "hush") {
				t.Errorf("stderr is %q, want %q", s.Stderr, c.want)
			}
		})
	}
}
