package clitest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// built is in the temporary folder that Main removes.
var built = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "brine-binary-*")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "brine")
	out, err := exec.Command("go", "build", "-o", path, "brine/cmd/brine").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build brine: %w\n%s", err, out)
	}
	return path, nil
})

// Binary is brine itself, for tests that kill it.
func Binary(t testing.TB) string {
	t.Helper()
	path, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return path
}
