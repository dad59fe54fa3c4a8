package output

import (
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// What came since the flags were verified is not written to either.
func TestReportIsNotWrittenToLinksAndFIFOs(t *testing.T) {
	folder := t.TempDir()
	target := filepath.Join(folder, "target.html")
	if err := os.WriteFile(target, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, set := range map[string]func(string) error{
		"link": func(path string) error { return os.Symlink(target, path) },
		"FIFO": func(path string) error { return syscall.Mkfifo(path, 0o600) },
	} {
		path := filepath.Join(folder, name+".html")
		if err := set(path); err != nil {
			t.Fatal(err)
		}
		if err := WriteFile(path, 0o600, func(w io.Writer) error { _, err := w.Write([]byte("x")); return err }); err == nil {
			t.Errorf("a %s is written to", name)
		}
	}
	if text, err := os.ReadFile(target); err != nil || string(text) != "mine" {
		t.Errorf("the link's target holds %q (%v)", text, err)
	}
}
