package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/cmd/brine/output/wording"
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
		return show(cmd.Context(), client, *p.conn.flags.Namespace, format)
	}
	return cmd
}

func newInventoryList(s Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use: "list", Short: "List the inventories of the cluster, or of a namespace",
		Long: `Lists the inventories of the cluster, or with -n of a namespace: the number of
members, when the last run that writes began, its revision and result, the version of
brine that wrote the inventory, and the run that holds the lock. Inventories of other
tools that use the format of cli-utils are listed too, with the version "-". Without a
history there is no result.

The exit code is 1 if an inventory is damaged, or if the state of a lock is unknown.`,
	}
	return survey(s, cmd, func(ctx context.Context, c *cluster.Client, namespace, format string) error {
		l, err := admin.ListInventories(ctx, c, namespace, version())
		if err != nil {
			return failed(err)
		}
		return printed("print the inventories", printInventories(s, format, l), l.ExitCode)
	})
}

func printInventories(s Streams, format string, l *admin.List) error {
	if format == "json" {
		return wording.JSON(s.Out, l)
	}
	w := tabwriter.NewWriter(s.Out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "INVENTORY\tMEMBERS\tLAST RUN\tREVISION\tRESULT\tVERSION\tLOCKED BY")
	for i := range l.Inventories {
		inv := &l.Inventories[i]
		ran, revision, result, lock := "-", "-", "-", "-"
		if inv.LastRun != nil {
			ran = inv.LastRun.Format(time.RFC3339)
		}
		if inv.Revision != nil {
			revision, result = strconv.Itoa(inv.Revision.Number), inv.Revision.Result
		}
		if inv.Lock != nil {
			lock = inv.Lock.Holder
			if inv.Lock.Ended {
				lock += " (ended)"
			}
		}
		fmt.Fprintf(w, "%s/%s\t%d\t%s\t%s\t%s\t%s\t%s\n", inv.Namespace, inv.Name, inv.Members, ran, revision,
			wording.Line(result), wording.Line(orDash(inv.Version)), wording.Line(lock))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for i := range l.Inventories {
		inv := &l.Inventories[i]
		for _, d := range inv.Damage {
			fmt.Fprintf(s.Out, "damage of %s/%s: %s\n", inv.Namespace, inv.Name, wording.Line(d))
		}
		for _, u := range inv.Unknown {
			fmt.Fprintf(s.Out, "unknown of %s/%s: %s\n", inv.Namespace, inv.Name, wording.Line(u))
		}
	}
	_, err := fmt.Fprintln(s.Out, bundle.Count(len(l.Inventories), "inventory"))
	return err
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

func newOrphans(s Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use: "orphans", Short: "Find objects that carry the annotation of an inventory, but are in none",
		Long: `Finds objects that carry the annotation config.k8s.io/owning-inventory of an inventory
that does not list them: no run prunes them, and destroy leaves them. The metadata of
all objects is listed, of all kinds, in the cluster or with -n in a namespace. Objects
that another object controls do not count, because controllers copy annotations.

"brine inventory repair --all-kinds" adds the orphans of an inventory to it that still
carry its label. "brine inventory adopt" makes members of them in any inventory.

The exit code is 2 if there are orphans, and 1 if a kind could not be listed, or an
inventory is damaged: its objects are unknown then.`,
	}
	return survey(s, cmd, func(ctx context.Context, c *cluster.Client, namespace, format string) error {
		o, err := admin.FindOrphans(ctx, c, namespace, version())
		if err != nil {
			return failed(err)
		}
		return printed("print the orphans", printOrphans(s, format, o), o.ExitCode)
	})
}

func printOrphans(s Streams, format string, o *admin.Orphans) error {
	if format == "json" {
		return wording.JSON(s.Out, o)
	}
	w := tabwriter.NewWriter(s.Out, 0, 4, 2, ' ', 0)
	list := func(what string, orphans []admin.Orphan) {
		for i := range orphans {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", what, wording.Line(bundle.Name(orphans[i].ID())), wording.Line(orphans[i].Inventory), wording.Line(orphans[i].Reason))
		}
	}
	list("orphan", o.Orphans)
	list("unknown", o.Unknown)
	for _, k := range o.NotSearched {
		fmt.Fprintf(w, "not searched\t%s\t\t%s\n", wording.Line(k.Kind), wording.Line(k.Reason))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	parts := []string{bundle.Count(len(o.Orphans), "orphan")}
	if n := len(o.Unknown); n > 0 {
		parts = append(parts, bundle.Count(n, "object")+" unknown")
	}
	if n := len(o.NotSearched); n > 0 {
		parts = append(parts, bundle.Count(n, "kind")+" not searched")
	}
	_, err := fmt.Fprintln(s.Out, strings.Join(parts, ", "))
	return err
}
