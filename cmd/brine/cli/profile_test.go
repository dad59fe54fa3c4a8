package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestProfileDir(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	var out, err bytes.Buffer
	if code := Run(t.Context(), Streams{In: strings.NewReader(""), Out: &out, Err: &err}, []string{"version", "--profile-dir", dir}); code != 0 {
		t.Fatal(code, err.String())
	}
	for _, name := range []string{"cpu.pprof", "heap.pprof", "allocs.pprof", "trace.out"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	out.Reset()
	if Run(t.Context(), Streams{In: strings.NewReader(""), Out: &out, Err: &err}, []string{"--help"}); strings.Contains(out.String(), "profile-dir") {
		t.Error("the flag is not hidden")
	}
}
