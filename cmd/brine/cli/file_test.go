package cli_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"brine/bundle/report"
	"brine/cmd/brine/clitest"
)

const plainConfigMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: default}\ndata: {key: value}\n"

func writeTo(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestReportIsPrivateAndComplete(t *testing.T) {
	bundle := writeTo(t, filepath.Join(t.TempDir(), "a.yaml"), plainConfigMap)
	write := func(path string) clitest.Outcome {
		return clitest.Command(t.Context(), nil, "apply", "-f", bundle, "--name=inv", "--dry-run=client", "--report", path, "-o", "json")
	}
	for _, before := range []string{"", "older"} {
		folder := t.TempDir()
		path := filepath.Join(folder, "report.html")
		if before != "" {
			writeTo(t, path, before)
		}
		write(path).Want(t, 0)
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("the report's mode is %v (%v), want 0600", info.Mode(), err)
		}
		if text, err := os.ReadFile(path); err != nil || !strings.Contains(string(text), "</html>") {
			t.Errorf("it is not whole: %v", err)
		}
		if files, _ := os.ReadDir(folder); len(files) != 1 {
			t.Errorf("%d files are in the folder", len(files))
		}
	}
	folder := t.TempDir()
	target := writeTo(t, filepath.Join(folder, "target.html"), "mine")
	for name, set := range map[string]func(string) error{
		"link": func(path string) error { return os.Symlink(target, path) },
		"FIFO": func(path string) error { return syscall.Mkfifo(path, 0o600) },
	} {
		path := filepath.Join(folder, name+".html")
		if err := set(path); err != nil {
			t.Fatal(err)
		}
		write(path).Want(t, report.ExitBadBundle).Prints(t, "--report")
	}
	if text, err := os.ReadFile(target); err != nil || string(text) != "mine" {
		t.Errorf("what the link leads to is now %q (%v)", text, err)
	}
}

// A FIFO that nobody writes to, and a standard input that says nothing, end
// with the first signal, and with --timeout.
func TestReadingEndsWithASignal(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo.yaml")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	defer func() { // who opens it is let go
		if f, err := os.OpenFile(fifo, os.O_RDWR, 0); err == nil {
			_ = f.Close()
		}
	}()
	for _, file := range []string{fifo, "-"} {
		for _, command := range []string{"apply", "preview", "check", "rbac"} {
			silent, w := io.Pipe()
			ctx, cancel := context.WithCancelCause(t.Context())
			cancel(report.ErrTerminated)
			args := []string{command, "-f", file}
			if command != "check" {
				args = append(args, "--name=inv")
			}
			if command == "apply" || command == "preview" {
				args = append(args, "-o=json", "--server=https://127.0.0.1:1")
			}
			got := clitest.Command(ctx, silent, args...).Want(t, report.ExitTerminated)
			if (command == "apply" || command == "preview") && (got.Result == nil || got.Result.Interrupted != "SIGTERM") {
				t.Errorf("%s -f %s prints no result that says SIGTERM:\n%s", command, file, got.Stdout)
			}
			_ = w.Close()
		}
	}
	silent, w := io.Pipe()
	defer w.Close()
	clitest.Command(t.Context(), silent, "apply", "-f", "-", "--name=inv", "--timeout=100ms", "--dry-run=client", "-o=json").
		Want(t, report.ExitBadBundle).Prints(t, "time ran out after 100ms")
}
