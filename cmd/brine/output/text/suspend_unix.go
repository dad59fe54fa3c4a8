//go:build unix

package text

import (
	"os"
	"os/signal"
	"syscall"
)

// suspensions reports Ctrl-Z, so that the shell gets a clean terminal.
func suspensions() (<-chan os.Signal, func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGTSTP)
	return c, func() { signal.Stop(c) }
}

// suspend stops the process until it is continued.
func suspend() { _ = syscall.Kill(os.Getpid(), syscall.SIGSTOP) }
