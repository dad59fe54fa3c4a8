package cli_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"brine/bundle/report"
	"brine/cmd/brine/cli"
	"brine/cmd/brine/clitest"
)

// closed is a reader that went away.
type closed struct{}

func (closed) Write([]byte) (int, error) { return 0, os.ErrClosed }

// Reports are written also where the result cannot be printed: nobody would see that those of
// the run before are not of this one.
func TestReportsOfWhatCannotBePrinted(t *testing.T) {
	dir := t.TempDir()
	file, metrics := filepath.Join(dir, "bundle.yaml"), filepath.Join(dir, "brine.prom")
	for name, text := range map[string]string{file: strings.ReplaceAll(clitest.ConfigMap("a"), "{ns}", "shop"), metrics: "old\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var errs bytes.Buffer
	code := cli.Run(context.Background(), cli.Streams{In: strings.NewReader(""), Out: closed{}, Err: &errs},
		[]string{"apply", "--dry-run=client", "-f", file, "--name", "shop", "--report", metrics})
	text, err := os.ReadFile(metrics)
	if err != nil || !strings.Contains(string(text), "brine_exit_code{") {
		t.Errorf("the report is %q, %v", text, err)
	}
	if code != report.ExitFailed || !strings.Contains(errs.String(), "print the result: file already closed") {
		t.Errorf("exit code %d, %s", code, &errs)
	}
	// What went wrong before is still the exit code.
	code = cli.Run(context.Background(), cli.Streams{In: strings.NewReader(""), Out: closed{}, Err: &errs},
		[]string{"apply", "--dry-run=client", "-f", filepath.Join(dir, "none.yaml"), "--name", "shop", "-o", "json"})
	if code != report.ExitBadBundle {
		t.Errorf("exit code %d, %s", code, &errs)
	}
}
