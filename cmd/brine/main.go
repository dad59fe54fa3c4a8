// Command brine makes a Kubernetes cluster match a bundle that Salt rendered.
package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	"brine/bundle/report"
	"brine/bundle/run"
)

func main() {
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
				if time.Since(first) < time.Second {
					continue // timeout(1) sends to the process, and again to its group
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
	streams := streams{in: os.Stdin, out: os.Stdout, err: os.Stderr}
	os.Exit(execute(ctx, streams, os.Args[1:]))
}

// execute runs one command line and returns the process's exit code.
func execute(ctx context.Context, s streams, args []string) int {
	var p profile
	root := newRoot(s, &p)
	root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: calledAs(os.Args[0])}
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err := p.stop(); err != nil {
		s.warn(err.Error())
	}
	if err == nil {
		return report.ExitOK
	}
	code, reported := exitCodeOf(err)
	if signalled := run.SignalExit(ctx); signalled != 0 && !reported {
		code = signalled
	}
	var late *unprinted
	switch {
	case reported:
	case errors.As(err, &late):
		s.warn(err.Error())
	default:
		refuse(s, cmd, args, code, err)
	}
	return code
}

// calledAs is the command's name in help texts: kubectl runs the program
// kubectl-brine as its command "kubectl brine".
func calledAs(program string) string {
	name := strings.TrimSuffix(filepath.Base(filepath.ToSlash(program)), ".exe")
	if name == "kubectl-brine" {
		return "kubectl brine"
	}
	return "brine"
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
