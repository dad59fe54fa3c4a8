package cli

import (
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/report"
	"brine/cmd/brine/output/wording"
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
		Long: `Finds the members of an inventory again, after one of its ConfigMaps was deleted,
damaged or replaced by an old one. Such an inventory stops every run with exit code 1.

All objects are listed that carry the label applyset.kubernetes.io/part-of of the
inventory, of the kinds that the inventory lists; of all kinds with --all-kinds, or
where the inventory object itself is missing. Those that carry the annotation
config.k8s.io/owning-inventory too, and are not controlled by another object, become
members again. No object is changed or deleted.

If a kind cannot be listed, what was found is added, the exit code is 1, and the
inventory stays damaged: repair it again with more rights. To give up what was not
found, remove the annotation brine.dev/inventory-overflow-parts from its ConfigMap.`,
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
		return printed("print the repair", printRepair(s, r.format, repaired), repaired.ExitCode)
	}
	return cmd
}

func printRepair(s Streams, format string, r *admin.Repair) error {
	if format == "json" {
		return wording.JSON(s.Out, r)
	}
	for _, d := range r.Damage {
		fmt.Fprintf(s.Out, "damage: %s\n", wording.Line(d))
	}
	w := tabwriter.NewWriter(s.Out, 0, 4, 2, ' ', 0)
	for _, o := range r.Added {
		fmt.Fprintf(w, "added\t%s\n", wording.Line(bundle.Name(o.ID())))
	}
	for _, o := range r.NotAdded {
		fmt.Fprintf(w, "not added\t%s\t%s\n", wording.Line(bundle.Name(o.ID())), wording.Line(o.Reason))
	}
	for _, k := range r.NotSearched {
		fmt.Fprintf(w, "not searched\t%s\t%s\n", wording.Line(k.Kind), wording.Line(k.Reason))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	state := map[bool]string{true: "it is whole", false: "it stays damaged: not all kinds could be searched"}[r.ExitCode == report.ExitOK]
	if r.DryRun {
		state = "nothing was changed (--dry-run)"
	}
	_, err := fmt.Fprintf(s.Out, "inventory %s/%s (id %s): %s held, %d added; %s\n",
		r.Inventory.Namespace, r.Inventory.Name, wording.Line(r.Inventory.ID), bundle.Count(r.Members, "member"), len(r.Added), state)
	return err
}
