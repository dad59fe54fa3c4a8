package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/inspect"
	"brine/bundle/ready"
	"brine/bundle/report"
	"brine/bundle/validate"
	"brine/cmd/brine/output"
)

func newStatus(s Streams) *cobra.Command {
	var wait, verbose bool
	var kubernetes, readiness string
	cmd := &cobra.Command{
		Use: "status [[NAMESPACE/]INVENTORY]", Short: "Show the objects of an inventory as they are now",
	}
	readingCommand(cmd, func(ctx context.Context, o *inspectOptions) error {
		kinds, err := readRules("readiness", readiness, ready.ReadTable)
		if err != nil {
			return err
		}
		where, client, err := o.reach(ctx, s, cluster.Options{})
		if err != nil {
			return err
		}
		var see func(*report.Result)
		if wait {
			see = reportWaiting(s)
		}
		result, err := inspect.Status(ctx, client, where, version(), kubernetes, kinds, see)
		if err != nil {
			return failed(err)
		}
		return printed("print the status", output.Status(s.Out, o.format, verbose, result), result.ExitCode)
	})
	known := validate.Versions()
	cmd.Flags().StringVar(&kubernetes, "kubernetes-version", "", fmt.Sprintf("list the objects that this version of Kubernetes does not serve in the version in which they were applied: %s to %s", known[len(known)-1], known[0]))
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until all objects are ready, or nothing is left to wait for but failed or missing ones")
	readinessFlag(cmd.Flags(), &readiness)
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "also print which rule decided, and on which field")
	cmd.Flags().Duration("timeout", readTime, fmt.Sprintf("limit of the command, with --wait %s unless it is given", writeTime)+afterTime)
	return cmd
}

// reportWaiting names on stderr, every ten seconds, what is waited for.
func reportWaiting(s Streams) func(*report.Result) {
	next := time.Now().Add(10 * time.Second)
	return func(r *report.Result) {
		if time.Now().Before(next) {
			return
		}
		next = time.Now().Add(10 * time.Second)
		var names []string
		for _, o := range r.Objects {
			if o.Ready == report.StateNotReady {
				names = append(names, bundle.Name(o.ID())+" ("+o.Reason+")")
			}
		}
		s.warn(fmt.Sprintf("waiting for %s: %s", bundle.Count(len(names), "object"), bundle.Some(names, 5)))
	}
}
