package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// usage is what one process took.
type usage struct {
	Seconds float64 `json:"seconds"`
	CPU     float64 `json:"cpu"`    // seconds, of user and system
	Memory  float64 `json:"memory"` // at its peak, MB
	Exit    int     `json:"exit"`
	Wrote   int64   `json:"wrote"` // bytes, to files and sockets
	Read    int64   `json:"read"`
}

// longest is how long a command may take.
const longest = 20 * time.Minute

// launch runs a command and measures it. It does so through a small process of
// its own, since Linux counts the memory of whoever starts a process to it
// (exec_mmap's setmax_mm_hiwater_rss), and this one here is not small.
func launch(ctx context.Context, stdout string, env, args []string) (usage, string, error) {
	self, err := os.Executable()
	if err != nil {
		return usage{}, "", err
	}
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	cmd := exec.CommandContext(ctx, self, append([]string{"launch", stdout}, args...)...)
	cmd.Env = append(os.Environ(), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 20 * time.Second
	var out, messages bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &messages
	err = cmd.Run()
	var u usage
	if jsonErr := json.Unmarshal(out.Bytes(), &u); jsonErr != nil {
		return u, messages.String(), errors.Join(fmt.Errorf("run %s", strings.Join(args, " ")), err, ctx.Err())
	}
	return u, messages.String(), nil
}

// launched is that small process: it prints a usage.
func launched(args []string, out io.Writer) error {
	if len(args) < 2 {
		return errors.New("launch FILE COMMAND...")
	}
	file, err := os.Create(args[0])
	if err != nil {
		return err
	}
	defer file.Close()
	cmd := exec.Command(args[1], args[2:]...)
	cmd.Stdout, cmd.Stderr = file, os.Stderr
	begin := time.Now()
	if err := cmd.Start(); err != nil {
		return err
	}
	wrote, read := passed(cmd.Process.Pid)
	err = cmd.Wait()
	seconds := time.Since(begin).Seconds()
	if cmd.ProcessState == nil {
		return err
	}
	u := usage{
		Seconds: seconds, Exit: cmd.ProcessState.ExitCode(),
		CPU:   (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds(),
		Wrote: wrote, Read: read,
	}
	if r, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		u.Memory = float64(r.Maxrss) / 1024 // Linux counts in KiB
	}
	return json.NewEncoder(out).Encode(u)
}

// passed waits until a process has ended, and says how many bytes it wrote and read. It is
// still to be waited for, as then Linux forgets them.
func passed(pid int) (wrote, read int64) {
	const byPID, exitedNotReaped = 1, 4 | 0x01000000 // waitid(2): P_PID, WEXITED|WNOWAIT
	for again := syscall.EINTR; again == syscall.EINTR; {
		_, _, again = syscall.Syscall6(syscall.SYS_WAITID, byPID, uintptr(pid), 0, exitedNotReaped, 0, 0)
	}
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid)) // without it there is no such column
	for line := range strings.Lines(string(text)) {
		_, _ = fmt.Sscanf(line, "wchar: %d", &wrote)
		_, _ = fmt.Sscanf(line, "rchar: %d", &read)
	}
	return wrote, read
}
