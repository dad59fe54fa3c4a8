package clitest

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// RealBundle is a folder of ../shared/bundles; the test is skipped, aloud,
// where there is none.
func RealBundle(t testing.TB, name string) string {
	t.Helper()
	path := filepath.Join(Root(t), "..", "shared", "bundles", name)
	if _, err := os.Stat(path); err != nil {
		if os.Getenv("BRINE_TEST_REQUIRED") != "" {
			t.Fatalf("the real bundles are required: %v", err)
		}
		t.Skipf("SKIPPED: no real bundles: %v", err)
	}
	return path
}

// Root is the repository's folder.
func Root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	for err == nil {
		if _, missing := os.Stat(filepath.Join(dir, "go.mod")); missing == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			err = errors.New("there is no go.mod above the working directory")
		}
		dir = filepath.Dir(dir)
	}
	t.Fatal(err)
	return ""
}

// BundleFile writes a bundle, with {ns} replaced by shop.
func BundleFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bundle.yaml")
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, "{ns}", "shop")), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
