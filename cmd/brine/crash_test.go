//go:build unix

package main_test

import (
	"bytes"
	"errors"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"brine/cmd/brine/clitest"
)

// A crash ends Go programs with 2: here that means that there are changes. SIGQUIT ends a
// program as a panic does.
func TestACrashIsNoExitCode(t *testing.T) {
	cmd := exec.Command(clitest.Binary(t), "check", "-f", "-")
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer input.Close()
	var out bytes.Buffer
	cmd.Stderr = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// More than a pipe holds: it reads, so it has begun. It waits for the rest.
	if _, err := io.WriteString(input, strings.Repeat("#\n", 64<<10)); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(syscall.SIGQUIT); err != nil {
		t.Fatal(err)
	}
	exit := &exec.ExitError{}
	if err := cmd.Wait(); !errors.As(err, &exit) {
		t.Fatal(err)
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() || status.Signal() != syscall.SIGABRT || status.CoreDump() {
		t.Errorf("it ended with %s", exit)
	}
	if !strings.Contains(out.String(), "SIGQUIT") {
		t.Errorf("it does not say why: %s", &out)
	}
}
