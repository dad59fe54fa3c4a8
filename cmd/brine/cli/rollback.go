package cli

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"brine/bundle"
	"brine/bundle/run"
	"brine/inventory"
	"brine/inventory/store"
)

// rollbackOptions are those of rollback.
type rollbackOptions struct {
	changeOptions
	revision int // 0 is the last one that was another than the present
	lastGood bool
}

func newRollback(s Streams) *cobra.Command {
	r := &rollbackOptions{}
	cmd := &cobra.Command{
		Use: "rollback [REVISION] --inventory NAMESPACE/NAME", Short: "Apply an earlier revision of an inventory again, by default the one before the last", Args: cobra.MaximumNArgs(1),
		Long: `Applies an earlier revision of an inventory again: the one with a number of brine
history, by default the newest good one that differs from the present one. "last-good" is
the newest one that was applied without an error. That may be the present one, if an
upgrade was refused, and then nothing changes.`,
	}
	r.flags(cmd)
	r.dryRunFlag(cmd)
	cmd.ValidArgsFunction = fromCluster(r.conn, r.revisions)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if r.lastGood = len(args) == 1 && args[0] == "last-good"; len(args) == 1 && !r.lastGood {
			var err error
			if r.revision, err = revisionNumber("rollback", args[0]); err != nil {
				return err
			}
		}
		o, err := r.settle("")
		return r.run(cmd, s, task{o, err, func(ctx context.Context, o *run.Options) (*bundle.Bundle, error) { return r.read(ctx, s, o) }})
	}
	return cmd
}

// read reads the revision as a bundle.
func (r *rollbackOptions) read(ctx context.Context, s Streams, o *run.Options) (*bundle.Bundle, error) {
	inv, err := r.load(ctx, s, r.cluster)
	if err != nil {
		return nil, err
	}
	number, err := r.number(ctx, inv)
	if err != nil {
		return nil, err
	}
	content, err := inv.LoadRevision(ctx, number)
	if err != nil {
		return nil, failed(err)
	}
	o.Revision, o.RevisionOptions = number, content.Options
	o.Namespace = cmp.Or(content.Namespace, o.Namespace)
	return content.Bundle, nil
}

func (r *rollbackOptions) number(ctx context.Context, inv *store.Inventory) (int, error) {
	if r.revision != 0 {
		return r.revision, nil
	}
	history, err := inv.History(ctx)
	if err != nil {
		return 0, failed(err)
	}
	if r.lastGood {
		good, ok := inventory.LastGood(history)
		if !ok {
			return 0, fmt.Errorf("inventory %s/%s has no revision that was applied without an error: there is nothing to go back to", inv.Namespace, inv.Name)
		}
		return good.Number, nil
	}
	if earlier, ok := inventory.Earlier(history, inv.Last()); ok {
		return earlier.Number, nil
	}
	return 0, fmt.Errorf("inventory %s/%s has no earlier revision that was applied without an error: choose one that brine history lists", inv.Namespace, inv.Name)
}
