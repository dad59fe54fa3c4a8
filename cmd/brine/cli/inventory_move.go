package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/report"
	"brine/bundle/run"
	"brine/cmd/brine/output"
	"brine/cmd/brine/values"
	"brine/inventory/admin"
)

// The commands that move members between inventories: split, merge, rename, adopt.

// writingOptions are those of the commands that write inventories, and no objects' fields.
type writingOptions struct {
	place
	format      string
	dryRun      report.DryRun
	lockTimeout time.Duration
}

// flags adds them; reading is what a dry run does.
func (o *writingOptions) flags(cmd *cobra.Command, reading string) {
	o.dryRun = report.None
	outputFlag(cmd, &o.format, "text or json", "text", "json")
	enumFlag(cmd, &o.dryRun, "dry-run", "", "none, or server: "+reading+", and write nothing", report.None, report.Server) // it needs a cluster
	cmd.Flags().DurationVar(&o.lockTimeout, "lock-timeout", 0, lockTimeoutUsage)
}

// moveOptions are those of the commands that move members between inventories.
type moveOptions struct {
	writingOptions
	s            Streams
	to           string
	members      []string
	takeOverFrom []string
	input        input
}

func newMove(s Streams, cmd *cobra.Command) (*moveOptions, *cobra.Command) {
	o := &moveOptions{s: s}
	o.conn = newConnection(cmd, writeContact, writeRetry)
	o.flags(cmd, "read")
	cmd.ValidArgsFunction = fromCluster(o.conn, inventories)
	return o, cmd
}

func (o *moveOptions) toFlag(cmd *cobra.Command, name, usage string) {
	cmd.Flags().StringVar(&o.to, name, "", usage)
	_ = cmd.MarkFlagRequired(name)
	completeFlag(cmd, o.conn, name, inventories)
}

func newSplit(s Streams) *cobra.Command {
	o, cmd := newMove(s, &cobra.Command{
		Use: "split INVENTORY --to INVENTORY (--members OBJECTS | -f BUNDLE)", Short: "Move members of an inventory to another one", Args: cobra.ExactArgs(1),
	})
	o.toFlag(cmd, "to", "inventory that the members move to")
	cmd.Flags().StringSliceVar(&o.members, "members", nil, "members that move: KIND/NAMESPACE/NAME, or KIND/NAME without a namespace; * stands for any text")
	values.KeepOldSpelling(cmd, "only", "members")
	o.input.flags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if (len(o.members) == 0) == (len(o.input.Files) == 0) {
			return errors.New("choose the members by --members or by -f; to move all, use brine inventory merge")
		}
		return o.move(cmd.Context(), args, false, false)
	}
	return cmd
}

func newMerge(s Streams) *cobra.Command {
	o, cmd := newMove(s, &cobra.Command{
		Use: "merge INVENTORY... --into INVENTORY", Short: "Move all members of inventories to another one, and delete the empty inventories", Args: cobra.MinimumNArgs(1),
	})
	o.toFlag(cmd, "into", "inventory that the members move to")
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return o.move(cmd.Context(), args, true, false) }
	return cmd
}

func newRename(s Streams) *cobra.Command {
	o, cmd := newMove(s, &cobra.Command{
		Use: "rename INVENTORY NEW", Short: "Give an inventory another name, or move it to another namespace", Args: cobra.ExactArgs(2),
	})
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		o.to = args[1]
		return o.move(cmd.Context(), args[:1], true, true)
	}
	return cmd
}

func newAdopt(s Streams) *cobra.Command {
	o, cmd := newMove(s, &cobra.Command{
		Use: "adopt (OBJECT... | -f BUNDLE) --into INVENTORY", Short: "Make members of objects that are on the cluster",
	})
	o.toFlag(cmd, "into", "inventory that the objects become members of")
	cmd.Flags().StringSliceVar(&o.takeOverFrom, "from-inventory", nil, "inventories whose objects are taken: NAMESPACE/NAME, or the id of one that does not exist any more")
	values.KeepOldSpelling(cmd, "take-over-from", "from-inventory")
	o.input.flags(cmd)
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if (len(args) == 0) == (len(o.input.Files) == 0) {
			return errors.New("name the objects, or give a bundle with -f")
		}
		return o.adopt(cmd.Context(), args)
	}
	return cmd
}

// options are those of all of these commands.
func (o *moveOptions) options(from []string) (admin.MoveOptions, error) {
	m := admin.MoveOptions{Version: version(), DryRun: o.dryRun != report.None, LockTimeout: o.lockTimeout, Report: o.s.warn}
	var err error
	if m.To, err = o.named(o.to); err != nil {
		return m, err
	}
	for _, name := range from {
		inv, err := o.named(name)
		if err != nil {
			return m, err
		}
		m.From = append(m.From, inv)
	}
	return m, nil
}

// named is the inventory that an argument names.
func (o *moveOptions) named(text string) (report.Inventory, error) {
	if wrong := values.CheckInventory(text); wrong != "" {
		return report.Inventory{}, fmt.Errorf("%q: %s", text, wrong)
	}
	p := place{inventory: text, conn: o.conn}
	return p.where("")
}

// chosen are the objects of the bundle, nil without one.
func (o *moveOptions) chosen(ctx context.Context, client *cluster.Client) (map[bundle.ID]bool, error) {
	if len(o.input.Files) == 0 {
		return nil, nil
	}
	b, err := o.input.read(ctx, o.s)
	if err != nil {
		return nil, err
	}
	return admin.IDsOf(ctx, client, b, o.conn.Namespace())
}

func (o *moveOptions) move(ctx context.Context, from []string, remove, rename bool) error {
	m, err := o.options(from)
	if err != nil {
		return err
	}
	m.Remove, m.Rename = remove, rename
	only, err := admin.ParseSelector(o.members)
	if err != nil {
		return fmt.Errorf("--members: %w", err)
	}
	client, err := o.client(o.s, cluster.Options{})
	if err != nil {
		return err
	}
	ids, err := o.chosen(ctx, client)
	switch {
	case err != nil:
		return failedOr(err)
	case ids != nil:
		m.Select = func(id bundle.ID) bool { return ids[id] }
	case len(only) > 0:
		m.Select = only.Chooses
	}
	done, err := admin.MoveMembers(ctx, client, m)
	return o.print(done, err)
}

func (o *moveOptions) adopt(ctx context.Context, names []string) error {
	var from, owners []string
	for _, name := range o.takeOverFrom {
		if strings.Contains(name, "/") {
			from = append(from, name)
		} else {
			owners = append(owners, name)
		}
	}
	m, err := o.options(from)
	if err != nil {
		return err
	}
	named, err := admin.ParseSelector(names)
	if err != nil {
		return err
	}
	client, err := o.client(o.s, cluster.Options{})
	if err != nil {
		return err
	}
	a := admin.AdoptOptions{MoveOptions: m, Owners: owners, Optional: len(o.input.Files) > 0}
	ids, err := o.chosen(ctx, client)
	if err != nil {
		return failedOr(err)
	}
	a.Objects = bundle.SortedIDs(ids)
	if len(names) > 0 {
		if a.Objects, err = named.Named(ctx, client); err != nil {
			return failedOr(err)
		}
	}
	done, err := admin.Adopt(ctx, client, a)
	return o.print(done, err)
}

// failedOr is an error of the cluster, or of the command line or the bundle.
func failedOr(err error) error {
	if code := run.ExitCode(err); code != report.ExitFailed {
		return &coded{code: code, err: err}
	}
	return err
}

func (o *moveOptions) print(m *admin.Move, err error) error {
	if err != nil {
		return failed(err)
	}
	return printed("print the move", output.Move(o.s.Out, o.format, m), m.ExitCode)
}
