package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// marker is an environment variable that names the directory of the cluster a
// process belongs to. Pid files go stale and pids are used again; what a
// process was started with stays true, so /proc is the only register there is.
const marker = "BRINE_DEVCLUSTER_DIR"

// process is a running program of one cluster.
type process struct {
	pid  int
	name string // one of the cluster's programs
}

// processes finds the programs that run for the cluster in dir.
func processes(dir string) ([]process, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var found []process
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err == nil && belongs(pid, dir) {
			found = append(found, process{pid, nameOf(pid)})
		}
	}
	return found, nil
}

// belongs reports false for what has ended, too: a zombie has no environment.
func belongs(pid int, dir string) bool {
	env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	return err == nil && bytes.Contains(append([]byte{0}, env...), []byte("\x00"+marker+"="+dir+"\x00"))
}

// nameMarker is another one, that names the process.
const nameMarker = "BRINE_DEVCLUSTER_NAME"

func nameOf(pid int) string {
	env, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	for _, variable := range strings.Split(string(env), "\x00") {
		if name, ok := strings.CutPrefix(variable, nameMarker+"="); ok {
			return name
		}
	}
	return "unknown"
}

// endTimeout is how long the kernel may take to clear away a killed process.
const endTimeout = 10 * time.Second

// killAll ends every process of the cluster in dir and returns when they are
// gone. It does not ask them: nothing they hold outlives a reset, and a restart
// recovers as from a power cut.
func killAll(dir string) error {
	for {
		found, err := processes(dir)
		if err != nil || len(found) == 0 {
			return err
		}
		var handles []int
		for _, p := range found {
			if fd, ok := send(p.pid, dir, unix.SIGKILL); ok {
				handles = append(handles, fd)
			}
		}
		for _, fd := range handles {
			err = errors.Join(err, awaitEnd(fd))
		}
		if err != nil {
			return err
		}
	}
}

// send looks again once it has a handle on the process: from there on the pid
// cannot come to mean another one.
func send(pid int, dir string, signal unix.Signal) (handle int, ok bool) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return 0, false
	}
	if !belongs(pid, dir) || unix.PidfdSendSignal(fd, signal, nil, 0) != nil {
		unix.Close(fd)
		return 0, false
	}
	return fd, true
}

// awaitEnd waits for the process itself: its environment is gone from /proc
// before its ports are free.
func awaitEnd(handle int) error {
	defer unix.Close(handle)
	deadline := time.Now().Add(endTimeout)
	for {
		left := time.Until(deadline)
		if left <= 0 {
			return fmt.Errorf("a killed process is still there after %v", endTimeout)
		}
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(handle), Events: unix.POLLIN}}, int(left.Milliseconds())+1)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
		if n > 0 {
			return nil
		}
	}
}

// start runs a program in a session of its own, so that it outlives the terminal
// and the script that asked for it. The channel is closed when it ends.
func start(c *cluster, name string, args []string) (ended <-chan struct{}, err error) {
	binary, err := os.Executable()
	if err != nil {
		return nil, err
	}
	if c.Kubernetes != "" && strings.HasPrefix(name, "kube-") {
		binary = c.Kubernetes
	}
	log, err := os.Create(c.log(name))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(binary, append([]string{program(name)}, args...)...)
	cmd.Dir = c.Dir
	cmd.Env = append(os.Environ(), marker+"="+c.Dir, nameMarker+"="+name)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	done := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(done)
	}()
	return done, nil
}

// keepDescriptors stops what the caller left open (a lock, a pipe that someone
// waits on) from passing to processes that outlive it.
func keepDescriptors() {
	entries, _ := filepath.Glob("/proc/self/fd/*")
	for _, e := range entries {
		if fd, err := strconv.Atoi(filepath.Base(e)); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
}
