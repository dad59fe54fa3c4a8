package lock

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A holder names a run in its Lease: HOST/pid-N/BOOT/TOKEN. The host and the
// process are for messages. The boot ID and the token prove that the run is dead:
// a file named after the token stands in this machine's temporary folder, and
// the run has it locked (flock) for as long as it lives, whoever may see its
// process in /proc. The kernel alone gives that lock up.
//
// What does not prove it: that there is no such process here. /proc may hide
// it (hidepid, ProtectProc), it may run in another PID namespace, or on a clone
// of this virtual machine, which has the same host name and boot ID.

type runFile struct {
	token string
	file  *os.File
}

// newRunFile makes and locks the file. Without one (a temporary folder that is read
// only) the run goes on: nobody can prove it dead then, so that its lease has to
// run out.
func newRunFile() *runFile {
	sweep()
	m := &runFile{token: rand.Text()}
	file, err := os.OpenFile(runFilePath(m.token), os.O_RDWR|os.O_CREATE|os.O_EXCL|noFollow, 0o600)
	if err != nil {
		return m
	}
	if err := flock(file); err != nil {
		_ = errors.Join(file.Close(), os.Remove(file.Name()))
		return m
	}
	m.file = file
	return m
}

func (m *runFile) remove() {
	if m.file != nil {
		_ = errors.Join(os.Remove(m.file.Name()), m.file.Close()) // it is in a temporary folder
		m.file = nil
	}
}

func runFilePath(token string) string { return filepath.Join(os.TempDir(), "brine-run-"+token) }

func (m *runFile) holder() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s/pid-%d/%s/%s", host, os.Getpid(), bootID(), m.token)
}

// bootID is of this start of this machine; "" where the kernel has none.
func bootID() string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(boot))
}

var tokens = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Z2-7]{26}$`) })

// isDead says whether it is proven that a holder's process has ended. False is
// not to say that it lives.
func isDead(holder string) bool {
	parts := strings.Split(holder, "/")
	return len(parts) == 4 && parts[2] != "" && parts[2] == bootID() && hasEnded(parts[3])
}

// hasEnded says whether it is proven that the run of a token has ended.
func hasEnded(token string) bool {
	if !tokens().MatchString(token) {
		return false
	}
	file, err := os.OpenFile(runFilePath(token), os.O_RDWR|noFollow|syscall.O_NONBLOCK, 0)
	if err != nil {
		return false // it may be somewhere that we cannot see
	}
	defer file.Close() //nolint:errcheck // nothing was written
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	// Another user could have put it there. Only root and we are believed.
	if uid, ok := owner(info); !ok || uid != 0 && uid != os.Geteuid() {
		return false
	}
	return flock(file) == nil
}

func forget(holder string) {
	if isDead(holder) {
		_ = os.Remove(runFilePath(holder[strings.LastIndexByte(holder, '/')+1:]))
	}
}

// proofKept is how long the file of a run that was killed stays: it is the proof for the
// next run on the same inventory, for which its Lease has run out long before.
const proofKept = 24 * time.Hour

// sweep removes the files of runs that were killed long ago, as before their lock was
// written: no Lease names those.
func sweep() {
	files, _ := filepath.Glob(runFilePath("*")) // the pattern is well-formed
	for _, path := range files {
		info, err := os.Lstat(path)
		if err == nil && time.Since(info.ModTime()) > proofKept && hasEnded(strings.TrimPrefix(filepath.Base(path), filepath.Base(runFilePath("")))) {
			_ = os.Remove(path)
		}
	}
}

// spoken is a holder for messages.
func spoken(holder string) string {
	parts := strings.Split(holder, "/")
	if len(parts) < 3 {
		return fmt.Sprintf("%q", holder)
	}
	return fmt.Sprintf("process %s on host %s", strings.TrimPrefix(parts[1], "pid-"), parts[0])
}
