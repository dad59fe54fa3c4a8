// Command brine makes a Kubernetes cluster match a bundle that Salt rendered.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/term"
	"k8s.io/klog/v2"

	"brine/bundle/report"
	"brine/cmd/brine/cli"
	_ "brine/cmd/brine/collector"
)

func main() {
	// A crash of a Go program ends with 2, which here means that there are changes: this one
	// ends with SIGABRT, and leaves no Secrets in a core file.
	debug.SetTraceback("crash")
	dropCores()
	// The libraries log to klog; what matters is in brine's own messages.
	klog.SetLogger(logr.Discard())

	ctx, cancel := context.WithCancelCause(context.Background())
	// A reader that went away, as `| head` does, must not kill a run half way.
	signal.Ignore(syscall.SIGPIPE)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		var first time.Time
		for sig := range signals {
			if !first.IsZero() { // the second one does not ask
				// One that comes at once, too: timeout(1) sends to the process, and again to
				// its group; Salt to the children of a job, and then to the job.
				if since := time.Since(first); since < time.Second || sig == syscall.SIGTERM && since < 5*time.Second {
					continue
				}
				os.Exit(128 + int(sig.(syscall.Signal))) //nolint:forcetypeassert // all of them are
			}
			first = time.Now()
			if sig == syscall.SIGTERM {
				cancel(report.ErrTerminated)
			} else {
				cancel(report.ErrInterrupted)
			}
		}
	}()
	terminal := term.IsTerminal(int(os.Stdin.Fd())) && term.IsTerminal(int(os.Stderr.Fd()))
	os.Exit(cli.Run(ctx, cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Terminal: terminal}, os.Args[1:]))
}
