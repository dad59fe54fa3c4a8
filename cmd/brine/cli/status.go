package cli

import (
	"context"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/report"
	"brine/bundle/run"
	"brine/cmd/brine/output"
)

func newStatus(s Streams) *cobra.Command {
	cmd := &cobra.Command{Use: "status --inventory NAMESPACE/NAME", Short: "Show the objects of an inventory as they are now"}
	return inspect(cmd, func(ctx context.Context, o *inspectOptions) error {
		where, client, err := o.reach(s, cluster.Options{RetryFor: inspectRetry})
		if err != nil {
			return err
		}
		result, err := run.Status(ctx, client, where, version())
		if err != nil {
			return failed(err)
		}
		return printed("print the status", printStatus(s, o.format, result), result.ExitCode)
	})
}

func printStatus(s Streams, format string, result *report.Result) error {
	if format == "json" {
		return output.JSON(s.Out, result)
	}
	w := tabwriter.NewWriter(s.Out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "OBJECT\tREADY\tREASON")
	gone := 0
	for _, o := range result.Objects {
		fmt.Fprintf(w, "%s\t%s\t%s\n", output.Line(bundle.Name(o.ID())), o.Ready, output.Line(o.Reason))
		if o.Ready == report.StateGone {
			gone++
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(s.Out, "inventory %s/%s (id %s): %s, %d ready, %d not ready, %d gone\n",
		result.Inventory.Namespace, result.Inventory.Name, output.Line(result.Inventory.ID), bundle.Count(len(result.Objects), "object"), result.Summary.Ready, result.Summary.NotReady, gone)
	return err
}
