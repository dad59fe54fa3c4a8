package read

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"brine/bundle/sls"
)

// The real bundles are beside the repository, not in it.
func sharedBundles(t testing.TB) string {
	t.Helper()
	dir := filepath.Join("..", "..", "..", "shared", "bundles")
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		if os.Getenv("BRINE_TEST_REQUIRED") == "1" {
			t.Fatalf("no bundles at %s, and BRINE_TEST_REQUIRED=1", dir)
		}
		t.Skipf("SKIPPED: no bundles at %s", dir)
	}
	return dir
}

// Every document of the real bundles is read without a problem; the slots that
// Salt left in their charts of dex and loki ask for the digest of a Secret that
// is not in the bundle, which is told.
func TestReadRealBundles(t *testing.T) {
	dir := sharedBundles(t)
	kind := regexp.MustCompile(`(?m)^kind: `)
	for name, want := range map[string]struct{ objects, slots int }{
		"metalk8s-new": {101, 2},
		"metalk8s-old": {55, 2},
		"unready":      {14, 0},
	} {
		t.Run(name, func(t *testing.T) {
			folder := filepath.Join(dir, name)
			b, err := Bundle(context.Background(), Options{Files: []string{folder}})
			if err != nil {
				t.Fatal(err)
			}
			if err := sls.FillSlots(b, nil); err != nil {
				t.Fatal(err)
			}
			for _, p := range b.Warnings {
				if !strings.Contains(p.Message, "__slot__") || p.Source.Line == 0 {
					t.Error(p)
				}
			}
			if len(b.Warnings) != want.slots {
				t.Errorf("%d warnings, want %d: %v", len(b.Warnings), want.slots, b.Warnings)
			}

			files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
			if err != nil {
				t.Fatal(err)
			}
			filled, documents := t.TempDir(), 0
			for _, file := range files {
				text, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				documents += len(kind.FindAll(text, -1))
				text = bytes.ReplaceAll(text, []byte("__slot__:salt:"), []byte("filled "))
				if err := os.WriteFile(filepath.Join(filled, filepath.Base(file)), text, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			b, err = Bundle(context.Background(), Options{Files: []string{filled}})
			if err != nil {
				t.Fatal(err)
			}
			if err := Resolve(b, Resolver{Namespace: "default"}); err != nil {
				t.Fatal(err)
			}
			if len(b.Objects) != want.objects || documents != want.objects {
				t.Errorf("%d objects of %d documents, want %d", len(b.Objects), documents, want.objects)
			}
			if len(b.Warnings) != 1 || !strings.Contains(b.Warnings[0].Message, "cluster-scoped") {
				t.Errorf("warnings %v, want one that counts the cluster-scoped objects", b.Warnings)
			}
		})
	}
}
