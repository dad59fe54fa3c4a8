package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"brine/bundle/cluster"
	"brine/bundle/inspect"
	"brine/bundle/report"
	"brine/cmd/brine/output"
	"brine/cmd/brine/output/wording"
	"brine/inventory"
	"brine/inventory/store"
)

type diffOptions struct {
	inspectOptions
	in       input
	detailed bool
	verbose  bool
}

func newDiff(s Streams) *cobra.Command {
	d := &diffOptions{}
	cmd := &cobra.Command{
		Use:   "diff [REVISION [REVISION]] [-f BUNDLE] --inventory NAMESPACE/NAME",
		Short: "Show what changes between two revisions, or from a revision to a bundle",
		Args:  cobra.MaximumNArgs(2),
	}
	d.flags(cmd, readRetry)
	d.in.flags(cmd)
	outputFlag(cmd, &d.format, "text, json or html", "text", "json", "html")
	cmd.Flags().BoolVar(&d.detailed, "detailed-exitcode", false, "exit with 2 if there are changes")
	cmd.Flags().BoolVarP(&d.verbose, "verbose", "v", false, "show long objects that were added or removed whole")
	cmd.ValidArgsFunction = fromCluster(d.conn, d.revisions)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 2 && len(d.in.Files) > 0 || len(args) == 0 && len(d.in.Files) == 0 {
			return errors.New("diff: give two revisions, one revision and -f BUNDLE, or one of both")
		}
		return d.run(cmd, s, args)
	}
	return cmd
}

func (d *diffOptions) run(cmd *cobra.Command, s Streams, args []string) error {
	ctx := cmd.Context()
	inv, _, err := d.open(ctx, s, cluster.Options{})
	if err != nil {
		return err
	}
	from, revision, err := d.side(ctx, inv, args, 0)
	if err != nil {
		return err
	}
	to := inspect.Side{Name: "bundle " + strings.Join(d.in.Files, ", ")}
	if len(d.in.Files) == 0 {
		if to, _, err = d.side(ctx, inv, args, 1); err != nil {
			return err
		}
	} else {
		namespace := cmp.Or(revision.Namespace, d.conn.Namespace())
		if cmd.Flags().Changed("namespace") {
			namespace = d.conn.Namespace()
		}
		if to.Bundle, err = d.in.read(ctx, s); err != nil {
			return err
		}
		if err := inspect.Comparable(ctx, inv, to.Bundle, revision, namespace); err != nil {
			return failed(err)
		}
	}
	where := placeOf(inv)
	result := inspect.Compare(ctx, from, to, report.Header{Command: "diff", Inventory: where, Detailed: d.detailed})
	err = output.Finished(s.printing(wording.Options{Format: d.format, Diff: true, Verbose: d.verbose}), result)
	return printed("print the changes", err, result.ExitCode)
}

// side is the revision that the nth argument names, or the last one.
func (d *diffOptions) side(ctx context.Context, inv *store.Inventory, args []string, n int) (inspect.Side, *inventory.Content, error) {
	number := inv.Last().Number
	if n < len(args) {
		var err error
		if number, err = revisionNumber("diff", args[n]); err != nil {
			return inspect.Side{}, nil, err
		}
	}
	if number == 0 {
		return inspect.Side{}, nil, fmt.Errorf("inventory %s/%s has no revision", inv.Namespace, inv.Name)
	}
	content, err := inv.LoadRevision(ctx, number)
	if err != nil {
		return inspect.Side{}, nil, failed(err)
	}
	return inspect.Side{Name: fmt.Sprintf("revision %d", number), Bundle: content.Bundle}, content, nil
}

// revisionNumber is an argument that names a revision.
func revisionNumber(command, arg string) (int, error) {
	number, err := strconv.Atoi(arg)
	if err != nil || number < 1 {
		return 0, fmt.Errorf("%s %s: the revision is not a number: brine history lists the revisions", command, arg)
	}
	return number, nil
}
