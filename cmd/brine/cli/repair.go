package cli

import (
	"github.com/spf13/cobra"

	"brine/bundle/cluster"
	"brine/bundle/report"
	"brine/cmd/brine/output"
	"brine/inventory/admin"
)

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
