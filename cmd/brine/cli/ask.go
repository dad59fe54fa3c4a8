package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"brine/bundle/report"
	"brine/bundle/run"
	"brine/cmd/brine/output"
	"brine/cmd/brine/output/wording"
)

// question is what a command asks a person before it writes; nil asks nothing.
type question struct {
	yes  bool // answered on the command line
	text func(*report.Result) string
}

var errDeclined = errors.New("the question was not answered with yes: nothing was changed")

// askFlag makes a command show what it will do, and ask, where a person sits at a terminal.
func (r *runOptions) askFlag(cmd *cobra.Command, text func(*report.Result) string) {
	r.question = &question{text: text}
	cmd.Flags().BoolVar(&r.question.yes, "yes", false, "do not ask; without a terminal on standard input and standard error it never asks")
}

// confirm asks, where there is somebody to ask and something to do. The error says why
// the command must not go on.
func (r *runOptions) confirm(ctx context.Context, s Streams, t task) error {
	if r.question == nil || r.question.yes || !s.Terminal || t.options.DryRun != report.None {
		return nil
	}
	t.options.DryRun, t.options.Detailed = report.Server, true
	o := wording.Options{Format: "text", Diff: t.options.Mode != run.Destroy, Quiet: r.quiet, Verbose: r.verbose, Heartbeat: t.options.Heartbeat}
	printer := output.New(Streams{Out: s.Err, Err: s.Err}.printing(o))
	result := r.result(ctx, t, printer)
	if err := printer.Close(); err != nil {
		return fmt.Errorf("show what will be done: %w", err)
	}
	switch result.ExitCode {
	case report.ExitOK: // nothing to do
		return nil
	case report.ExitChanges, report.ExitFailed: // who sees what fails may want the rest
		return ask(ctx, s, r.question.text(result))
	}
	what := "what would be done is unknown"
	if result.ExitCode == report.ExitBadBundle {
		what = "it would be refused"
	}
	return &coded{code: result.ExitCode, err: errors.New(what + ", as the messages above say: nothing was changed")}
}

// ask asks a question that only yes answers.
func ask(ctx context.Context, s Streams, text string) error {
	fmt.Fprintf(s.Err, "\n%s [y/N] ", wording.Line(text))
	answer := make(chan string, 1)
	go func() {
		line, err := bufio.NewReader(s.In).ReadString('\n')
		if err != nil { // the end of the input, in the line of the question
			fmt.Fprintln(s.Err)
		}
		answer <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case <-ctx.Done():
		fmt.Fprintln(s.Err)
		return fmt.Errorf("%w: %w", errDeclined, context.Cause(ctx))
	case word := <-answer:
		if word == "y" || word == "yes" {
			return nil
		}
	}
	return errDeclined
}

// inventoryOf names the inventory of a result, and its server.
func inventoryOf(r *report.Result) string {
	return fmt.Sprintf("inventory %s/%s on %s", r.Inventory.Namespace, r.Inventory.Name, r.Server)
}
