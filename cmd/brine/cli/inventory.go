package cli

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"brine/bundle/cluster"
	"brine/bundle/report"
	"brine/cmd/brine/output"
	"brine/inventory/admin"
)

func newInventory(s Streams) *cobra.Command {
	cmd := &cobra.Command{Use: "inventory", Short: "List, repair, split, merge and rename inventories"}
	cmd.AddCommand(newInventoryList(s), newOrphans(s), newRepair(s), newSplit(s), newMerge(s), newAdopt(s), newRename(s))
	return cmd
}

// survey is a command that reads inventories of a namespace or of the cluster.
func survey[T any](s Streams, cmd *cobra.Command, what string, read func(ctx context.Context, c *cluster.Client, namespace, version string) (T, error), show func(io.Writer, string, T) error, code func(T) int) *cobra.Command {
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
		found, err := read(cmd.Context(), client, p.conn.GivenNamespace(), version())
		if err != nil {
			return failed(err)
		}
		return printed("print the "+what, show(s.Out, format, found), code(found))
	}
	return cmd
}

func newInventoryList(s Streams) *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List the inventories of the cluster, or of a namespace"}
	return survey(s, cmd, "inventories", admin.ListInventories, output.Inventories, func(l *admin.List) int { return l.ExitCode })
}

func newOrphans(s Streams) *cobra.Command {
	cmd := &cobra.Command{Use: "orphans", Short: "Find objects that carry the annotation of an inventory that does not list them"}
	return survey(s, cmd, "orphans", admin.FindOrphans, output.Orphans, func(o *admin.Orphans) int { return o.ExitCode })
}

func newRepair(s Streams) *cobra.Command {
	r, allKinds := &writingOptions{}, false
	cmd := &cobra.Command{
		Use: "repair --inventory NAMESPACE/NAME", Short: "Find the members of a damaged inventory by their label, and add them to it", Args: cobra.NoArgs,
	}
	r.place.flags(cmd, "", writeContact, writeRetry)
	r.idFlag(cmd)
	r.flags(cmd, "search")
	cmd.Flags().BoolVar(&allKinds, "all-kinds", false, "search all kinds that can be listed")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		where, client, err := r.reach(cmd.Context(), s, cluster.Options{})
		if err != nil {
			return err
		}
		repaired, err := admin.RepairInventory(cmd.Context(), client, admin.RepairOptions{
			Inventory: where, Version: version(), DryRun: r.dryRun != report.None, AllKinds: allKinds, LockTimeout: r.lockTimeout,
			Report: s.warn,
		})
		if err != nil {
			return failed(err)
		}
		return printed("print the repair", output.Repair(s.Out, r.format, repaired), repaired.ExitCode)
	}
	return cmd
}
