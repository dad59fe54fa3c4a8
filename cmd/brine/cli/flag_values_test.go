package cli_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"brine/bundle/report"
	"brine/cmd/brine/clitest"
)

// Values of flags are judged before the first request: the kubeconfig names no
// cluster, and that is not what is told.
func TestValuesOfFlags(t *testing.T) {
	file := clitest.BundleFile(t, clitest.ConfigMap("a"))
	folder := t.TempDir()
	for _, test := range []struct{ command, flag, value, allowed string }{
		{"apply", "timeout", "-5s", "cannot be negative"},
		{"apply", "retry-timeout", "-1s", "cannot be negative"},
		{"destroy", "lock-timeout", "-1m", "cannot be negative"},
		{"preview", "heartbeat", "-1s", "cannot be negative"},
		{"apply", "fail-after", "-1s", "cannot be negative: use 0, or one like 90s or 10m"},
		{"rollback", "fail-after", "3", "write it like 90s or 10m"},
		{"apply", "request-timeout", "foo", "write it like 90s or 10m; 0 is no limit"},
		{"status", "request-timeout", "-5s", "cannot be negative"},
		{"preview", "plan-lifetime", "-1h", "cannot be negative"},
		{"drift", "revision", "-1", "the number of a revision, for example 3"},
		{"apply", "timeout", "5", "write it like 90s or 10m"},
		{"apply", "parallel", "many", "invalid number"},
		{"apply", "quiet", "2", "true or false"},
		{"apply", "field-validation", "foo", "Strict, Warn or Ignore"},
		{"apply", "input-format", "yaml", "auto, manifests, high or low"},
		{"apply", "inventory-policy", "mine", "must-match, adopt-if-no-inventory or adopt-all"},
		{"apply", "validation", "never", "exit-early or skip-invalid"},
		{"apply", "verify", "", "changed or full"},
		{"rollback", "wait", "never", "ready or applied"},
		{"destroy", "cascade", "Orphan", "background, foreground or orphan"},
		{"apply", "dry-run", "true", "none, client or server"},
		{"apply", "output", "yaml", "text, json, events, html, github, gitlab, salt, salt-cmd or salt-events"},
		{"status", "output", "yaml", "text or json"},
		{"history", "output", "yaml", "text or json"},
		{"check", "output", "yaml", "text, json or dot"},
		{"version", "output", "yaml", "text or json"},
		{"apply", "history-limit", "-1", "0, which keeps none, or more"},
		{"apply", "max-prune", "200%", "from 0% to 100%"},
		{"apply", "max-prune", "abc", "a number of objects"},
		{"apply", "max-prune", "-1", "a number of objects"},
		{"destroy", "parallel", "-1", "at least 1"},
		{"apply", "inventory", "Bad_/x", "cannot be a namespace"},
		{"status", "inventory", "shop/Bad_", "cannot be the name of an inventory"},
		{"destroy", "inventory", "a/b/c", "NAMESPACE/NAME"},
		{"history", "inventory", "/b", "NAMESPACE/NAME"},
		{"apply", "name", "Bad_", "cannot be the name of an inventory"},
		{"apply", "namespace", "Bad_", "cannot be a namespace"},
		{"rbac", "namespace", "Bad_", "cannot be a namespace"},
		{"apply", "inventory-id", "a b", "alphanumeric"},
		{"check", "kubernetes-version", "1.99", "use 1."},
		{"apply", "report", filepath.Join(folder, "report.txt"), "must end in .html, .json, .md, .xml, .prom"},
		{"apply", "report", filepath.Join(folder, "none", "report.html"), "cannot be written: " + filepath.Join(folder, "none")},
		{"destroy", "report", "/dev/null/x.json", "cannot be written"},
		{"preview", "plan-out", folder, "it is a folder"},
	} {
		args := []string{test.command}
		if slices.Contains([]string{"apply", "preview", "check", "rbac"}, test.command) {
			args = append(args, "-f", file)
		}
		shown := "--" + test.flag + "=" + test.value
		variable := "BRINE_" + strings.ToUpper(strings.ReplaceAll(test.flag, "-", "_"))
		t.Run(test.command+" "+shown, func(t *testing.T) {
			s := clitest.Offline(t, append(args, "--"+test.flag+"="+test.value)...).Want(t, report.ExitBadBundle)
			if printed := s.Stderr + s.Stdout; !strings.Contains(printed, shown) || !strings.Contains(printed, test.allowed) {
				t.Errorf("it says %q, want %s and %q", printed, shown, test.allowed)
			}
			if test.value == "" {
				return // an empty variable is none
			}
			t.Setenv(variable, test.value)
			s = clitest.Offline(t, args...).Want(t, report.ExitBadBundle)
			if printed := s.Stderr + s.Stdout; !strings.Contains(printed, variable) || !strings.Contains(printed, test.allowed) {
				t.Errorf("from the environment it says %q, want %s and %q", printed, variable, test.allowed)
			}
		})
	}
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("looking left something behind: %v, %v", left, err)
	}

	s := clitest.Offline(t, "apply", "-f", file, "--parallel=-1", "--timeout=-1s", "-o", "json").Want(t, report.ExitBadBundle)
	if len(s.Result.Errors) != 2 {
		t.Errorf("not all of it is told at once: %v", s.Result.Errors)
	}
}

// A format in the environment is for the commands that have it.
func TestOutputFromTheEnvironment(t *testing.T) {
	t.Setenv("BRINE_OUTPUT", "salt")
	if s := clitest.Offline(t, "version").Want(t, 0); !strings.HasPrefix(s.Stdout, "brine v") {
		t.Errorf("version prints %q", s.Stdout)
	}
	clitest.Offline(t, "version", "-o", "salt").Want(t, report.ExitBadBundle)
	if s := clitest.Offline(t, "apply", "--name=x").Want(t, report.ExitBadBundle); !strings.Contains(s.Stdout, `"result":false`) {
		t.Errorf("apply prints %q", s.Stdout)
	}
}

// What an earlier step of a pipeline should have said, and did not, is no leave to do without it.
func TestEmptyVariablesThatGuard(t *testing.T) {
	file := clitest.BundleFile(t, clitest.ConfigMap("a"))
	for _, name := range []string{"BRINE_PLAN_DIGEST", "BRINE_MAX_PRUNE", "BRINE_ONLY", "BRINE_INVENTORY_ID", "BRINE_NO_PRUNE"} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, "")
			if s := clitest.Offline(t, "apply", "-f", file, "--name=x", "--dry-run=client").Want(t, report.ExitBadBundle); !strings.Contains(s.Stderr+s.Stdout, name+" is empty") {
				t.Errorf("%s%s", s.Stdout, s.Stderr)
			}
		})
	}
	t.Setenv("BRINE_CONTEXT", "")
	clitest.Offline(t, "apply", "-f", file, "--name=x", "--dry-run=client").Want(t, 0)
}

func TestGoodValuesOfFlags(t *testing.T) {
	file, folder := clitest.BundleFile(t, clitest.ConfigMap("a")), t.TempDir()
	old := filepath.Join(folder, "report.json")
	if err := os.WriteFile(old, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	clitest.Offline(t, "apply", "-f", file, "--timeout=0", "--retry-timeout=0", "--lock-timeout=0", "--heartbeat=0", "--fail-after=0", "--request-timeout=30", "--history-limit=0", "--parallel=1",
		"--max-prune=100%", "--inventory=a/b.c", "--inventory-id=B_1", "--kubernetes-version=v1.30.2", "--report="+old).Want(t, report.ExitUnreachable)
	clitest.Offline(t, "apply", "-f", file, "--max-prune=0", "--report="+filepath.Join(folder, "new.html"), "--dry-run=client").Want(t, 0)
}
