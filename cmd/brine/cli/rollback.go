package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"brine/bundle"
	"brine/bundle/report"
	"brine/bundle/run"
	"brine/cmd/brine/values"
	"brine/inventory"
	"brine/inventory/store"
)

// rollbackOptions are those of rollback.
type rollbackOptions struct {
	changeOptions
	revision int              // 0 undoes the last apply
	undoes   inventory.Latest // which is one of these
}

func newRollback(s Streams) *cobra.Command {
	r := &rollbackOptions{}
	cmd := &cobra.Command{
		Use: "rollback [REVISION] --inventory NAMESPACE/NAME", Short: "Undo the last apply, or apply a revision of an inventory again", Args: cobra.MaximumNArgs(1),
	}
	r.flags(cmd)
	r.dryRunFlag(cmd)
	r.askFlag(cmd, func(result *report.Result) string {
		return fmt.Sprintf("Apply revision %d to the %s?", r.revision, inventoryOf(result))
	})
	cmd.ValidArgsFunction = fromCluster(r.conn, r.revisions)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 1 && args[0] != "last-good" {
			var err error
			if r.revision, err = revisionNumber("rollback", args[0]); err != nil {
				return err
			}
		}
		o, err := r.settle(s, "")
		o.Mode = run.Rollback
		if err == nil && r.planOut == values.InSecret {
			err = fmt.Errorf("--plan-out=%s is for brine preview: the plan that it would replace may be an approved one of an apply, and no command carries out that of a rollback", values.InSecret)
		}
		return r.run(cmd, s, task{o, err, func(ctx context.Context, o *run.Options) (*bundle.Bundle, error) { return r.read(ctx, s, o) }})
	}
	return cmd
}

// read reads the revision as a bundle.
func (r *rollbackOptions) read(ctx context.Context, s Streams, o *run.Options) (*bundle.Bundle, error) {
	inv, _, err := r.open(ctx, s, r.cluster)
	if err != nil {
		return nil, err
	}
	number, err := r.number(ctx, s, inv)
	if err != nil {
		return nil, err
	}
	content, err := inv.LoadRevision(ctx, number)
	if err != nil {
		return nil, failed(err)
	}
	o.Revision, o.Undoes, o.RevisionOptions, o.Sources = number, r.undoes, content.Options, content.Sources
	o.Namespace, o.Planning.NamespaceNamed = cmp.Or(content.Namespace, o.Namespace), true
	return content.Bundle, nil
}

// number is the revision to apply. Which one a rollback without a number chose is said
// before anything is sent.
func (r *rollbackOptions) number(ctx context.Context, s Streams, inv *store.Inventory) (int, error) {
	if r.revision != 0 {
		return r.revision, nil
	}
	target, err := inv.RollbackTarget(ctx)
	if errors.Is(err, store.ErrNoTarget) {
		return 0, err
	}
	if err != nil {
		return 0, failed(err)
	}
	s.warn(target.Describe(inv.Namespace, inv.Name, inv.Commands()))
	r.revision, r.undoes = target.Number, inv.Latest() // who was asked about it gets it
	return target.Number, nil
}
