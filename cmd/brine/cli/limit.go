package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"brine/bundle/report"
	"brine/bundle/shutdown"
)

// The defaults of --timeout: of commands that only read, and of all others.
const (
	readTime  = time.Minute
	writeTime = 10 * time.Minute
)

// readers are the commands that answer at once, unless something is wrong.
var readers = []string{"status", "history", "show", "get", "rbac", "images", "list", "orphans"}

// afterTime ends the usage of --timeout.
var afterTime = fmt.Sprintf(", plus up to %s of grace; 0 is none", report.Grace)

// limitTime gives every command its --timeout, and keeps it.
func limitTime(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		limitTime(sub)
	}
	if cmd.RunE == nil || cmd.Name() == "version" {
		return
	}
	if f := cmd.Flags(); f.Lookup("timeout") == nil {
		limit := writeTime
		if slices.Contains(readers, cmd.Name()) {
			limit = readTime
		}
		f.Duration("timeout", limit, "limit of the command"+afterTime)
	}
	do := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx, stop := shutdown.WithTimeout(cmd.Context(), timeOf(cmd))
		defer stop()
		cmd.SetContext(ctx)
		return inTime(ctx, func() error { return do(cmd, args) })
	}
}

// timeOf is the time that a command has.
func timeOf(cmd *cobra.Command) time.Duration {
	limit, _ := cmd.Flags().GetDuration("timeout")
	if wait, err := cmd.Flags().GetBool("wait"); err == nil && wait && !cmd.Flags().Changed("timeout") {
		return writeTime
	}
	return limit
}

// inTime does what a command does, and ends with it; at the latest when the grace after the
// end of its context is over, whatever holds it up.
func inTime(ctx context.Context, do func() error) error {
	done := make(chan error, 1)
	go func() { done <- do() }()
	var over <-chan time.Time
	for ended := ctx.Done(); ; {
		select {
		case err := <-done:
			return timedOut(ctx, err)
		case <-ended:
			ended, over = nil, time.After(report.Grace)
		case <-over:
			return &coded{code: report.ExitUnreachable, err: fmt.Errorf("%w, and the command did not end within %s after it: what it did last is unknown", context.Cause(ctx), report.Grace), unknown: true}
		}
	}
}

// timedOut is an error that says so where time ran out.
func timedOut(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	end := endOf(err)
	if err == nil || end.reported || end.late || !errors.Is(cause, report.ErrTimeout) || errors.Is(err, report.ErrTimeout) {
		return err
	}
	return &coded{code: end.code, err: fmt.Errorf("%w: %w", cause, err)}
}
