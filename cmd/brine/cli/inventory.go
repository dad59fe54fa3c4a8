package cli

import (
	"context"

	"github.com/spf13/cobra"

	"brine/bundle/cluster"
	"brine/cmd/brine/output"
	"brine/inventory/admin"
)

func newInventory(s Streams) *cobra.Command {
	cmd := &cobra.Command{Use: "inventory", Short: "List, repair, split, merge and rename inventories"}
	cmd.AddCommand(newInventoryList(s), newOrphans(s), newRepair(s), newSplit(s), newMerge(s), newAdopt(s), newRename(s))
	return cmd
}

// survey is a command that reads inventories of a namespace or of the cluster.
func survey(s Streams, cmd *cobra.Command, show func(ctx context.Context, c *cluster.Client, namespace, format string) error) *cobra.Command {
	p, format := &place{}, ""
	p.conn = newConnection(cmd, readContact, readRetry)
	cmd.Flags().Lookup("namespace").Usage = "only this namespace (default: all)"
	outputFlag(cmd, &format, "text or json", "text", "json")
	cmd.Args = cobra.NoArgs
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		client, err := p.client(s, cluster.Options{})
		if err != nil {
			return err
		}
		return show(cmd.Context(), client, p.conn.GivenNamespace(), format)
	}
	return cmd
}

func newInventoryList(s Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use: "list", Short: "List the inventories of the cluster, or of a namespace",
	}
	return survey(s, cmd, func(ctx context.Context, c *cluster.Client, namespace, format string) error {
		l, err := admin.ListInventories(ctx, c, namespace, version())
		if err != nil {
			return failed(err)
		}
		return printed("print the inventories", output.Inventories(s.Out, format, l), l.ExitCode)
	})
}

func newOrphans(s Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use: "orphans", Short: "Find objects that carry the annotation of an inventory, but are in none",
	}
	return survey(s, cmd, func(ctx context.Context, c *cluster.Client, namespace, format string) error {
		o, err := admin.FindOrphans(ctx, c, namespace, version())
		if err != nil {
			return failed(err)
		}
		return printed("print the orphans", output.Orphans(s.Out, format, o), o.ExitCode)
	})
}
