package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"brine/bundle"
	"brine/bundle/apply"
	"brine/bundle/report"
	"brine/cmd/brine/output"
	"brine/inventory"
	"brine/inventory/store"
)

func newHistory(s streams) *cobra.Command {
	cmd := &cobra.Command{Use: "history --inventory NAMESPACE/NAME", Short: "List the revisions of an inventory that can be rolled back to"}
	return inspect(cmd, func(ctx context.Context, r *runFlags, conn *connection) error {
		inv, err := r.load(ctx, s, conn)
		if err != nil {
			return err
		}
		history, err := inv.History(ctx)
		if err != nil {
			return &coded{apply.ExitCode(err), err}
		}
		return shown("print the history", printHistory(s, r.format, inv, history))
	})
}

func printHistory(s streams, format string, inv *store.Inventory, history []inventory.Revision) error {
	if format == "json" {
		if history == nil {
			history = []inventory.Revision{}
		}
		return output.JSON(s.out, map[string]any{
			"apiVersion": "brine.dev/v1", "kind": "History", "revisions": history,
			"inventory": report.Inventory{Namespace: inv.Namespace, Name: inv.Name, ID: inv.ID},
		})
	}
	w := tabwriter.NewWriter(s.out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "REVISION\tTIME\tRESULT\tOBJECTS\tWHO\tJID\tDIGEST")
	for _, r := range history {
		digest := r.Digest[:min(len(r.Digest), 19)]
		fmt.Fprintf(w, "%d\t%s\t%s\t%d\t%s\t%s\t%s\n", r.Number, r.Time.Format(time.RFC3339), output.Line(r.Result), r.Objects, output.Line(r.Who), output.Line(r.JobID), output.Line(digest))
	}
	return w.Flush()
}

func newRollback(s streams) *cobra.Command {
	r := &runFlags{}
	cmd := &cobra.Command{
		Use: "rollback [REVISION] --inventory NAMESPACE/NAME", Short: "Apply an earlier revision of an inventory again, by default the one before the last", Args: cobra.MaximumNArgs(1),
	}
	r.add(cmd, "rollback")
	conn := newConnection(cmd)
	cmd.ValidArgsFunction = fromCluster(conn, r.revisions(conn))
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		number := 0
		if len(args) == 1 {
			var err error
			if number, err = strconv.Atoi(args[0]); err != nil || number < 1 {
				return fmt.Errorf("rollback %s: the revision is a number, as brine history lists them", args[0])
			}
		}
		r.bundle = func(ctx context.Context) (*bundle.Bundle, error) { return r.revision(ctx, s, conn, number) }
		return r.run(cmd, s, conn)
	}
	return cmd
}

// revision reads a revision as a bundle; 0 is the last one that was another
// than the present.
func (r *runFlags) revision(ctx context.Context, s streams, conn *connection, number int) (*bundle.Bundle, error) {
	inv, err := r.load(ctx, s, conn)
	if err != nil {
		return nil, err
	}
	if number == 0 {
		history, err := inv.History(ctx)
		if err != nil {
			return nil, &coded{apply.ExitCode(err), err}
		}
		for _, revision := range history {
			if revision.Number < inv.Last().Number && revision.Digest != inv.Last().Digest && revision.Result == "applied" {
				number = revision.Number
				break
			}
		}
		if number == 0 {
			return nil, &coded{report.ExitBadBundle, errors.New("there is no earlier revision that was applied well, to roll back to; brine history lists them, and a number chooses any")}
		}
	}
	content, err := inv.LoadRevision(ctx, number)
	if errors.Is(err, store.ErrNoRevision) {
		return nil, &coded{report.ExitBadBundle, err}
	}
	if err != nil {
		return nil, &coded{apply.ExitCode(err), err}
	}
	r.content = content
	return content.Bundle, nil
}
