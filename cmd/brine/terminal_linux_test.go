package main_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"brine/cmd/brine/clitest"
)

// terminal is a pseudo terminal: a person's end, and a program's.
func terminal(t *testing.T) (person, program *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("no pseudo terminal: %v", err)
	}
	t.Cleanup(func() { _ = person.Close() })
	n, err := unix.IoctlGetInt(int(person.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		t.Skipf("no pseudo terminal: %v", err)
	}
	return person, program
}

// The program itself asks where standard input and standard error are a terminal, and
// nowhere else.
func TestDestroyAsksOnATerminal(t *testing.T) {
	s := clitest.New(t)
	s.Apply(clitest.ConfigMap("a")).Want(t, 0)
	destroy := func() *exec.Cmd {
		return exec.CommandContext(t.Context(), clitest.Binary(t), "destroy", "--inventory", s.Inventory, "--kubeconfig", s.Kubeconfig, "-o", "json")
	}
	person, program := terminal(t)
	cmd := destroy()
	cmd.Stdin, cmd.Stderr = program, program
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = program.Close()
	var seen bytes.Buffer
	var answer sync.Once
	for buffer := make([]byte, 4096); ; {
		n, err := person.Read(buffer)
		if seen.Write(buffer[:n]); bytes.Contains(seen.Bytes(), []byte("[y/N]")) {
			answer.Do(func() { _, _ = person.WriteString("no\n") })
		}
		if err != nil { // the program ended
			break
		}
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 3 {
		t.Errorf("declined, the exit code is %d:\n%s", code, &seen)
	}
	s.Holds("ConfigMap a")

	_, program = terminal(t)
	cmd = destroy()
	cmd.Stdin = program // and not standard error
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	s.Holds()
}
