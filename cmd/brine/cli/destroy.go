package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"brine/bundle"
	"brine/bundle/report"
	"brine/bundle/run"
)

func newDestroy(s Streams) *cobra.Command {
	r := &runOptions{}
	cmd := &cobra.Command{Use: "destroy [NAMESPACE/]INVENTORY", Short: "Delete all objects of an inventory, and the inventory"}
	r.flags(cmd)
	r.argument(cmd)
	r.dryRunFlag(cmd)
	r.askFlag(cmd, func(result *report.Result) string {
		return fmt.Sprintf("Delete %s and the %s?", bundle.Count(result.Summary.Pruned, "object"), inventoryOf(result))
	})
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		o := r.settle()
		o.Mode = run.Destroy
		var err error
		o.Inventory, err = r.where("")
		return r.run(cmd, s, task{o, err, func(context.Context, *run.Options) (*bundle.Bundle, error) { return &bundle.Bundle{}, nil }})
	}
	return cmd
}
