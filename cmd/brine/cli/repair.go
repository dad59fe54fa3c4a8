package cli

import (
	"time"

	"github.com/spf13/cobra"

	"brine/bundle/cluster"
	"brine/bundle/report"
	"brine/cmd/brine/output"
	"brine/inventory/admin"
)

// repairOptions are those of inventory repair.
type repairOptions struct {
	place
	format      string
	dryRun      report.DryRun
	allKinds    bool
	lockTimeout time.Duration
}

func newRepair(s Streams) *cobra.Command {
	r := &repairOptions{dryRun: report.None}
	cmd := &cobra.Command{
		Use: "repair --inventory NAMESPACE/NAME", Short: "Find the members of a damaged inventory by their label, and add them to it", Args: cobra.NoArgs,
	}
	r.flags(cmd, "", writeContact, writeRetry)
	r.idFlag(cmd)
	outputFlag(cmd, &r.format, "text or json", "text", "json")
	enumFlag(cmd, &r.dryRun, "dry-run", "", "none, or server: search, and write nothing", report.None, report.Server) // it needs a cluster
	cmd.Flags().BoolVar(&r.allKinds, "all-kinds", false, "search all kinds that can be listed")
	cmd.Flags().DurationVar(&r.lockTimeout, "lock-timeout", 0, lockTimeoutUsage)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		where, client, err := r.reach(cmd.Context(), s, cluster.Options{})
		if err != nil {
			return err
		}
		repaired, err := admin.RepairInventory(cmd.Context(), client, admin.RepairOptions{
			Inventory: where, Version: version(), DryRun: r.dryRun != report.None, AllKinds: r.allKinds, LockTimeout: r.lockTimeout,
			Report: s.warn,
		})
		if err != nil {
			return failed(err)
		}
		return printed("print the repair", output.Repair(s.Out, r.format, repaired), repaired.ExitCode)
	}
	return cmd
}
