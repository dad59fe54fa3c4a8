package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"brine/bundle/apply"
	"brine/bundle/cluster"
	"brine/bundle/report"
	"brine/cmd/brine/output"
	"brine/inventory/store"
)

// inspect makes a command of one that only reads an inventory: status, history.
func inspect(cmd *cobra.Command, show func(context.Context, *runFlags, *connection) error) *cobra.Command {
	r := &runFlags{}
	cmd.Args = cobra.NoArgs
	cmd.Flags().StringVar(&r.inventory, "inventory", "", "NAMESPACE/NAME of the inventory")
	cmd.Flags().StringVar(&r.name, "name", "", "name of the inventory, in the kubeconfig's namespace")
	outputFlag(cmd, &r.format, "text or json", "text", "json")
	conn := newConnection(cmd)
	r.cluster.RetryFor = 20 * time.Second // who only looks does not wait for long
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return show(cmd.Context(), r, conn) }
	return cmd
}

// reach finds the inventory's place and a client that tells on stderr, once a
// reason, that it asks again: a server that is away would look like a hang.
func (r *runFlags) reach(s streams, conn *connection) (report.Inventory, *cluster.Client, error) {
	where, err := r.where(conn)
	if err != nil {
		return where, nil, &coded{report.ExitBadBundle, err}
	}
	client, err := conn.client(r.cluster)
	if err != nil {
		return where, nil, err
	}
	var told sync.Map
	client.OnRetry(func(_ context.Context, err error, _ int) {
		if _, before := told.LoadOrStore(err.Error(), true); !before {
			s.say("retrying: " + err.Error())
		}
	})
	return where, client, nil
}

// load reads the inventory, which has to be there.
func (r *runFlags) load(ctx context.Context, s streams, conn *connection) (*store.Inventory, error) {
	where, client, err := r.reach(s, conn)
	if err != nil {
		return nil, err
	}
	inv, err := store.Load(ctx, client, where.Namespace, where.Name, where.ID, version())
	if err != nil {
		return nil, &coded{apply.ExitCode(err), err}
	}
	if !inv.Exists() {
		return nil, &coded{report.ExitBadBundle, fmt.Errorf("there is no inventory %s/%s", where.Namespace, where.Name)}
	}
	return inv, nil
}

// say tells something beside the result.
func (s streams) say(message string) { fmt.Fprintf(s.err, "brine: %s\n", output.Clean(message)) }
