package read

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

const plainConfigMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: default}\ndata: {key: value}\n"

func writeTo(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// readError is the error of reading one file or folder, "" without one.
func readError(t *testing.T, path string) string {
	t.Helper()
	b, err := Bundle(t.Context(), Options{Files: []string{path}})
	if err != nil {
		return err.Error()
	}
	if len(b.Objects) != 1 {
		t.Errorf("it has %d objects, want one", len(b.Objects))
	}
	return ""
}

func TestFoldersHoldRegularFiles(t *testing.T) {
	folder := t.TempDir()
	elsewhere := writeTo(t, filepath.Join(t.TempDir(), "elsewhere"), plainConfigMap)
	if err := os.Symlink(elsewhere, filepath.Join(folder, "link.yaml")); err != nil {
		t.Fatal(err)
	}
	if err := readError(t, folder); err != "" {
		t.Errorf("a link to a regular file: %s", err)
	}
	link := filepath.Join(t.TempDir(), "current")
	if err := os.Symlink(folder, link); err != nil {
		t.Fatal(err)
	}
	if err := readError(t, link); err != "" {
		t.Errorf("a link to the folder: %s", err)
	}
	if err := syscall.Mkfifo(filepath.Join(folder, "fifo.yaml"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := readError(t, folder); !strings.Contains(err, "fifo.yaml") || !strings.Contains(err, "not a regular file") {
		t.Errorf("a FIFO: %q", err)
	}
}

// A link to a folder is not followed, so what it holds would be missing: all but the ..data
// that Kubernetes makes where it mounts a ConfigMap.
func TestLinksToFoldersAreNotPassedOver(t *testing.T) {
	folder, elsewhere := t.TempDir(), t.TempDir()
	writeTo(t, filepath.Join(folder, "a.yaml"), plainConfigMap)
	link := func(name string) {
		if err := os.Symlink(elsewhere, filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	link("..data")
	if b, err := Bundle(t.Context(), Options{Files: []string{folder}, Recursive: true}); err != nil || len(b.Objects) != 1 {
		t.Errorf("..data: %v", err)
	}
	link("more")
	if err := readError(t, folder); err != "" {
		t.Errorf("folders are not asked for: %s", err)
	}
	_, err := Bundle(t.Context(), Options{Files: []string{folder}, Recursive: true})
	if err == nil || !strings.Contains(err.Error(), filepath.Join(folder, "more")+": this is a link to a folder") {
		t.Errorf("-R: %v", err)
	}
}

func TestFileThatIsTooLarge(t *testing.T) {
	path := writeTo(t, filepath.Join(t.TempDir(), "large.yaml"), plainConfigMap)
	if err := os.Truncate(path, 1<<40); err != nil {
		t.Skip(err) // it takes no room, where files may have holes
	}
	if err := readError(t, path); !strings.Contains(err, "large.yaml") || !strings.Contains(err, "larger than 256 MiB") {
		t.Errorf("it is read: %q", err)
	}
}
