// Command brine makes a Kubernetes cluster match a bundle that Salt rendered.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"

	"brine/bundle/apply"
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
		for sig := range signals {
			if context.Cause(ctx) != nil { // the second one does not ask
				os.Exit(128 + int(sig.(syscall.Signal))) //nolint:forcetypeassert // all of them are
			}
			if sig == syscall.SIGTERM {
				cancel(apply.ErrTerminated)
			} else {
				cancel(apply.ErrInterrupted)
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
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err := p.stop(); err != nil {
		fmt.Fprintf(s.err, "brine: %v\n", err)
	}
	if err == nil {
		return apply.ExitOK
	}
	code, told := exitCodeOf(err)
	var late *unprinted
	switch {
	case told:
	case errors.As(err, &late):
		fmt.Fprintf(s.err, "brine: %v\n", err)
	default:
		refuse(s, cmd, args, code, err)
	}
	return code
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
