package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"brine/bundle"
	"brine/bundle/apply"
	"brine/bundle/cluster"
)

func newStatus(s streams) *cobra.Command {
	r := &runFlags{}
	var format string
	cmd := &cobra.Command{
		Use: "status --inventory NAMESPACE/NAME", Short: "Show the objects of an inventory as they are now", Args: cobra.NoArgs,
	}
	cmd.Flags().StringVar(&r.inventory, "inventory", "", "NAMESPACE/NAME of the inventory")
	cmd.Flags().StringVar(&r.name, "name", "", "name of the inventory, in the kubeconfig's namespace")
	cmd.Flags().StringVarP(&format, "output", "o", "text", "text or json")
	conn := newConnection(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		where, err := r.where(conn)
		if err != nil {
			return &coded{apply.ExitBadBundle, err}
		}
		client, err := conn.client(cluster.Options{})
		if err != nil {
			return err
		}
		result, err := apply.Status(cmd.Context(), client, where, version())
		if err != nil {
			return &coded{apply.ExitCode(err), err}
		}
		if format == "json" {
			encoder := json.NewEncoder(s.out)
			encoder.SetIndent("", "  ")
			if err := encoder.Encode(result); err != nil {
				return fmt.Errorf("print the status: %w", err)
			}
		} else if err := printStatus(s, result); err != nil {
			return err
		}
		if result.ExitCode != apply.ExitOK {
			return &exit{result.ExitCode}
		}
		return nil
	}
	return cmd
}

func printStatus(s streams, result *apply.Result) error {
	w := tabwriter.NewWriter(s.out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "OBJECT\tREADY\tREASON")
	for _, o := range result.Objects {
		fmt.Fprintf(w, "%s\t%s\t%s\n", bundle.Name(o.ID()), o.Ready, strings.ReplaceAll(o.Reason, "\n", " "))
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("print the status: %w", err)
	}
	gone := 0
	for _, o := range result.Objects {
		if o.Ready == "gone" {
			gone++
		}
	}
	_, err := fmt.Fprintf(s.out, "inventory %s/%s (id %s): %d objects, %d ready, %d not ready, %d gone\n",
		result.Inventory.Namespace, result.Inventory.Name, result.Inventory.ID, len(result.Objects), result.Summary.Ready, result.Summary.NotReady, gone)
	if err != nil {
		return fmt.Errorf("print the status: %w", err)
	}
	return nil
}
