package lock

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// holderEnv makes this test binary a process that holds a lock, until it is
// killed.
const holderEnv = "BRINE_TEST_HOLDER"

func TestHolderProcess(t *testing.T) {
	if os.Getenv(holderEnv) == "" {
		t.Skip("the process of TestHolderIsDeadOnceItsProcessIs")
	}
	m := newRunFile()
	fmt.Println("holder " + m.holder())
	select {}
}

func TestHolderIsDeadOnceItsProcessIs(t *testing.T) {
	cmd := exec.Command(os.Args[0], "-test.run=^TestHolderProcess$")
	cmd.Env = append(os.Environ(), holderEnv+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	holder := ""
	for lines := bufio.NewScanner(out); holder == "" && lines.Scan(); {
		holder, _ = strings.CutPrefix(lines.Text(), "holder ")
	}
	if want := fmt.Sprintf("/pid-%d/", cmd.Process.Pid); !strings.Contains(holder, want) {
		t.Errorf("the holder is %q, without %s", holder, want)
	}
	if isDead(holder) {
		t.Error("it is dead while it lives")
	}
	if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if isDead(holder) {
		t.Error("it is dead while it is stopped")
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if !isDead(holder) {
		t.Error("it is not dead though it was killed")
	}
	forget(holder)
	if isDead(holder) {
		t.Error("its mark was not removed")
	}
}

// What could be a living process somewhere else, or out of our sight, is not
// dead.
// The files of runs that were killed go after a day, those of living runs never.
func TestFilesOfKilledRunsAreRemoved(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	file := func(name string, age time.Duration) string {
		path := runFilePath(name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		return setAge(t, path, age)
	}
	old, fresh, other := file(strings.Repeat("A", 26), 2*proofKept), file(strings.Repeat("B", 26), 0), file("notes", 2*proofKept)
	living := newRunFile()
	defer living.remove()
	setAge(t, living.file.Name(), 2*proofKept)
	newRunFile().remove()
	for path, there := range map[string]bool{old: false, fresh: true, other: true, living.file.Name(): true} {
		if _, err := os.Stat(path); (err == nil) != there {
			t.Errorf("%s is there: %v, want %v", path, err == nil, there)
		}
	}
}

func setAge(t *testing.T, path string, age time.Duration) string {
	t.Helper()
	if err := os.Chtimes(path, time.Time{}, time.Now().Add(-age)); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestHolderIsNotDeadWithoutProof(t *testing.T) {
	namespace, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		t.Skip(err)
	}
	host, _ := os.Hostname()
	boot := bootID()
	m := newRunFile()
	defer m.remove()
	loose := newRunFile() // a file that nobody has locked: a living run would have
	defer loose.remove()
	if err := syscall.Flock(int(loose.file.Fd()), syscall.LOCK_UN); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		holder string
		dead   bool
	}{
		"this process": {m.holder(), false},
		"no such process here, in an older format":      {fmt.Sprintf("%s/4194999/%s.%s.12345", host, boot, namespace), false},
		"no mark here: hidden, or on a clone":           {fmt.Sprintf("%s/pid-4194999/%s/%s", host, boot, "AAAAAAAAAAAAAAAAAAAAAAAAAA"), false},
		"another machine, or this one before it booted": {fmt.Sprintf("%s/pid-%d/%s/%s", host, os.Getpid(), "0000", loose.token), false},
		"a machine without a boot ID":                   {fmt.Sprintf("%s/pid-%d//%s", host, os.Getpid(), loose.token), false},
		"a path":                                        {fmt.Sprintf("%s/pid-1/%s/..", host, boot), false},
		"somebody's own idea of a holder":               {"me", false},
		"its mark is locked no more":                    {fmt.Sprintf("%s/pid-4194999/%s/%s", host, boot, loose.token), true},
	} {
		if got := isDead(c.holder); got != c.dead {
			t.Errorf("%s: dead %v, want %v (%s)", name, got, c.dead, c.holder)
		}
	}
}

// A mark that another user made proves nothing.
func TestMarkOfAnotherUserProvesNothing(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	m := newRunFile()
	defer m.remove()
	if err := syscall.Flock(int(m.file.Fd()), syscall.LOCK_UN); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(m.file.Name(), 65534, 65534); err != nil {
		t.Fatal(err)
	}
	if isDead(m.holder()) {
		t.Error("another user's file is believed")
	}
}
