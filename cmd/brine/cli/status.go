package cli

import (
	"context"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/inspect"
	"brine/bundle/report"
	"brine/bundle/validate"
	"brine/cmd/brine/output/wording"
)

func newStatus(s Streams) *cobra.Command {
	var wait, verbose bool
	var kubernetes, readiness string
	cmd := &cobra.Command{
		Use: "status [[NAMESPACE/]INVENTORY]", Short: "Show the objects of an inventory as they are now",
		Long: `Shows the objects of an inventory as they are now. The exit code is 4 if an object is
not ready or missing. With --kubernetes-version it is 3 if that version does not serve
an object as it was applied: its bundle has to be changed before the cluster is upgraded.`,
	}
	readingCommand(cmd, func(ctx context.Context, o *inspectOptions) error {
		kinds, err := readReadiness(readiness)
		if err != nil {
			return err
		}
		where, client, err := o.reach(ctx, s, cluster.Options{})
		if err != nil {
			return err
		}
		var result *report.Result
		if wait {
			result, err = inspect.AwaitReady(ctx, client, where, version(), kubernetes, kinds, reportWaiting(s))
		} else {
			result, err = inspect.Status(ctx, client, where, version(), kubernetes, kinds)
		}
		if err != nil {
			return failed(err)
		}
		return printed("print the status", printStatus(s, o.format, verbose, result), result.ExitCode)
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

func printStatus(s Streams, format string, verbose bool, result *report.Result) error {
	if format == "json" {
		return wording.JSON(s.Out, result)
	}
	w := tabwriter.NewWriter(s.Out, 0, 4, 2, ' ', 0)
	more := ""
	if verbose {
		more = "\tRULE"
	}
	fmt.Fprintln(w, "OBJECT\tREADY\tREASON"+more)
	gone := 0
	for _, o := range result.Objects {
		reason := o.Reason
		if o.NotServed != "" {
			reason = o.NotServed
		}
		if verbose {
			more = "\t" + wording.Line(o.Rule)
		}
		fmt.Fprintf(w, "%s\t%s\t%s%s\n", wording.Line(bundle.Name(o.ID())), o.Ready, wording.Line(reason), more)
		if o.Ready == report.StateGone {
			gone++
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(s.Out, "inventory %s/%s (id %s): %s, %d ready, %d not ready, %d gone\n",
		result.Inventory.Namespace, result.Inventory.Name, wording.Line(result.Inventory.ID), bundle.Count(len(result.Objects), "object"), result.Summary.Ready, result.Summary.NotReady, gone)
	return err
}
