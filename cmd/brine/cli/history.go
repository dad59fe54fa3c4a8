package cli

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"brine/bundle/cluster"
	"brine/bundle/inspect"
	"brine/bundle/report"
	"brine/cmd/brine/output"
	"brine/inventory"
)

func newHistory(s Streams) *cobra.Command {
	cmd := &cobra.Command{Use: "history [[NAMESPACE/]INVENTORY]", Short: "List the revisions of an inventory that can be rolled back to"}
	cmd.AddCommand(newHistoryShow(s))
	return readingCommand(cmd, func(ctx context.Context, h *inspectOptions) error {
		inv, _, err := h.open(ctx, s, cluster.Options{})
		if err != nil {
			return err
		}
		past, err := inv.Past(ctx)
		if err != nil {
			return failed(err)
		}
		return printed("print the history", output.History(s.Out, h.format, placeOf(inv), past.Runs()), report.ExitOK)
	})
}

func newHistoryShow(s Streams) *cobra.Command {
	o := &inspectOptions{}
	cmd := &cobra.Command{
		Use: "show REVISION --inventory NAMESPACE/NAME", Short: "Show the objects of a revision, with masked Secrets", Args: cobra.ExactArgs(1),
	}
	o.flags(cmd, readRetry)
	outputFlag(cmd, &o.format, "text (YAML), json or html", "text", "json", "html")
	cmd.ValidArgsFunction = fromCluster(o.conn, o.revisions)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		number, err := revisionNumber("history show", args[0])
		if err != nil {
			return err
		}
		inv, _, err := o.open(cmd.Context(), s, cluster.Options{})
		if err != nil {
			return err
		}
		past, err := inv.Past(cmd.Context())
		if err != nil {
			return failed(err)
		}
		content, err := inv.LoadRevision(cmd.Context(), number)
		if err != nil {
			return failed(err)
		}
		info := inventory.Revision{Number: number}
		history := past.Saved()
		if at := slices.IndexFunc(history, func(r inventory.Revision) bool { return r.Number == number }); at >= 0 {
			info = history[at]
		}
		shows := inspect.Show(cmd.Context(), content, info, placeOf(inv))
		return printed("print the revision", output.Revision(s.Out, o.format, shows), report.ExitOK)
	}
	return cmd
}
