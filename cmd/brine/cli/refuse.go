package cli

import (
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"brine/bundle"
	"brine/bundle/order"
	"brine/bundle/report"
	"brine/bundle/run"
	"brine/cmd/brine/output"
	"brine/cmd/brine/output/salt"
	"brine/cmd/brine/output/wording"
)

// refuse reports that nothing was done: on stderr and, if a document was asked
// for, in one on stdout too. Salt takes text on stderr for changes, so its
// formats go to stdout only.
func refuse(s Streams, cmd *cobra.Command, args []string, code int, err error) {
	format := formatOf(args)
	switch {
	case slices.Contains([]string{salt.Format, salt.CommandFormat, salt.EventsFormat}, format):
		_, _ = s.Out.Write(salt.Error(format, code, report.Lines(err), endOf(err).unknown && !isDry(cmd)))
		return
	case cmd.Name() == "check" && format == "json":
		_ = output.Check(s.Out, format, &bundle.Bundle{}, &order.Graph{}, nil, bundle.ProblemsOf(err), false)
		format = "text"
	case !slices.Contains(output.Formats, format):
		format = "text"
	}
	printer := output.New(wording.Options{Format: format, Out: s.Out, Err: s.Err})
	o := run.Options{Header: report.Header{Command: cmd.Name(), DryRun: report.None}}
	if o.Command == "preview" || o.Command == "drift" {
		o.DryRun = report.Server
	}
	if f := cmd.Flags().Lookup("dry-run"); f != nil {
		o.DryRun = report.DryRun(f.Value.String())
	}
	run.Refuse(cmd.Context(), o, code, err, printer.Event)
	_ = printer.Close()
}

// isDry says whether a command writes nothing.
func isDry(cmd *cobra.Command) bool {
	f := cmd.Flags().Lookup("dry-run")
	return cmd.Name() == "preview" || cmd.Name() == "drift" || f != nil && f.Value.String() != string(report.None)
}

// shortOutput is -o among others of one letter that take no value: -vo=json.
var shortOutput = regexp.MustCompile(`^-[Rqvh]*o=?(.*)$`)

// formatOf is the format that a command line asks for. It reads the words
// themselves: where they cannot be parsed, somebody still waits for a document.
func formatOf(args []string) string {
	format := os.Getenv("BRINE_OUTPUT")
	for i, arg := range args {
		if arg == "--" {
			break
		}
		value, long := strings.CutPrefix(arg, "--output=")
		isShort := shortOutput.MatchString(arg)
		short := shortOutput.ReplaceAllString(arg, "$1")
		switch {
		case long:
			format = value
		case isShort && short != "":
			format = short
		case (isShort || arg == "--output") && i+1 < len(args):
			format = args[i+1]
		}
	}
	return format
}
