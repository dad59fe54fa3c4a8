package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// line runs a command line that needs no cluster, under another program's name.
func line(t *testing.T, program string, args ...string) string {
	t.Helper()
	name := os.Args[0]
	os.Args[0] = program
	defer func() { os.Args[0] = name }()
	var out, stderr bytes.Buffer
	if code := Run(t.Context(), Streams{In: strings.NewReader(""), Out: &out, Err: &stderr}, args); code != 0 || stderr.Len() > 0 {
		t.Fatalf("brine %v: exit code %d: %s", args, code, &stderr)
	}
	return out.String()
}

func TestVersionSaysCommitAndDate(t *testing.T) {
	release, commit, date = "v1.2.3", "0123456789abcdef0123456789abcdef01234567", "2026-11-21T19:00:00Z"
	defer func() { release, commit, date = "v0.3.0-dev", "", "" }()

	want := "brine v1.2.3 (commit 0123456789ab, 2026-11-21T19:00:00Z, " + runtime.Version() + ", " + runtime.GOOS + "/" + runtime.GOARCH + ")\n"
	if got := line(t, "brine", "version"); got != want {
		t.Errorf("brine version prints %q, want %q", got, want)
	}
	var v struct{ Kind, Version, Revision, Date string }
	if err := json.Unmarshal([]byte(line(t, "brine", "version", "-o", "json")), &v); err != nil {
		t.Fatal(err)
	}
	if v.Kind != "Version" || v.Version != release || v.Revision != commit || v.Date != date {
		t.Errorf("brine version -o json prints %+v", v)
	}
}

func TestVersionListsTheFlagsOfEachCommand(t *testing.T) {
	var v struct{ Flags map[string][]string }
	if err := json.Unmarshal([]byte(line(t, "brine", "version", "-o", "json")), &v); err != nil {
		t.Fatal(err)
	}
	for command, flag := range map[string]string{"apply": "max-prune", "destroy": "cascade", "status": "kubeconfig", "history show": "output"} {
		if !slices.Contains(v.Flags[command], flag) {
			t.Errorf("the flags of %s are %v, without %s", command, v.Flags[command], flag)
		}
	}
}

func TestFeaturesAreTheCommandsAndFormats(t *testing.T) {
	var v struct{ Features []string }
	if err := json.Unmarshal([]byte(line(t, "brine", "version", "-o", "json")), &v); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"apply", "destroy", "rollback", "inventory repair", "rbac", "version", "output=json", "output=html", "output=salt-cmd"} {
		if !slices.Contains(v.Features, want) {
			t.Errorf("the features %v do not contain %q", v.Features, want)
		}
	}
	if slices.Contains(v.Features, "help") || slices.Contains(v.Features, "annotations") || slices.Contains(v.Features, "inventory") {
		t.Errorf("a help topic is a feature: %v", v.Features)
	}
}

// kubectl runs a program called kubectl-brine as "kubectl brine".
func TestHelpOfTheKubectlPlugin(t *testing.T) {
	for program, want := range map[string]string{
		filepath.Join("usr", "bin", "kubectl-brine"): "kubectl brine apply -f BUNDLE [flags]",
		"kubectl-brine.exe":                          "kubectl brine apply -f BUNDLE [flags]",
		"brine":                                      "\n  brine apply -f BUNDLE [flags]",
	} {
		if help := line(t, program, "apply", "--help"); !strings.Contains(help, want) {
			t.Errorf("the help of %s has no %q:\n%s", program, want, help)
		}
	}
	if help := line(t, "kubectl-brine", "--help"); strings.Contains(help, "  brine [command]") || !strings.Contains(help, `"kubectl brine COMMAND --help"`) {
		t.Errorf("the plugin calls itself brine:\n%s", help)
	}
}
