package main_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"brine/cmd/brine/clitest"
)

// A command that needs little memory is hardly interrupted to collect it, unless GOGC
// says so.
func TestCollectorStartsLate(t *testing.T) {
	t.Parallel()
	var documents []string
	for i := range 1000 {
		documents = append(documents, fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: map-%d}\ndata: {key: value}\n", i))
	}
	file := filepath.Join(t.TempDir(), "bundle.yaml")
	if err := os.WriteFile(file, []byte(strings.Join(documents, "---\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	collections := func(env ...string) int {
		cmd := exec.Command(clitest.Binary(t), "check", "-f", file)
		cmd.Env = append(append(os.Environ(), "GODEBUG=gctrace=1"), env...)
		var messages bytes.Buffer
		cmd.Stderr = &messages
		if err := cmd.Run(); err != nil {
			t.Fatalf("%v: %s", err, messages.String())
		}
		return strings.Count("\n"+messages.String(), "\ngc ")
	}
	if late, usual := collections(), collections("GOGC=100"); late > 5 || usual < 2*late {
		t.Errorf("%d collections, and %d with GOGC=100", late, usual)
	}
}
