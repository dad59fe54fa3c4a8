package cli

import (
	"context"
	"errors"
	"os"
	"os/user"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/report"
	"brine/bundle/run"
	"brine/cmd/brine/output"
	"brine/cmd/brine/output/wording"
	"brine/cmd/brine/traces"
)

// How a command that carries out a plan runs: its flags, printer, reports.

// runOptions are what the commands have in common that carry out a plan: apply,
// preview, destroy and rollback.
type runOptions struct {
	place
	format  string
	reports []string
	cascade string
	quiet   bool
	verbose bool
	// kubernetes is the version that --dry-run=client takes the server to have.
	kubernetes string
	cluster    cluster.Options
	options    run.Options
	question   *question
}

func (r *runOptions) flags(cmd *cobra.Command) {
	r.options.Command, r.options.Version, r.options.Who = cmd.Name(), version(), who()
	r.place.flags(cmd, "the bundle's file name", writeContact, writeRetry)
	r.idFlag(cmd)
	outputFlag(cmd, &r.format, strings.Join(output.Formats, ", "), output.Formats...)
	r.cascade = "background"
	enumFlag(cmd, &r.cascade, "cascade", "", "deletion of an object's dependents: background, foreground or orphan", "background", "foreground", "orphan")
	f := cmd.Flags()
	f.StringSliceVar(&r.reports, "report", nil, "also write the result to these files: .html, .json, .md (comment of a merge request), .xml (JUnit) or .prom (metrics for node_exporter)")
	f.BoolVar(&r.options.Planning.ForceNamespaces, "force-namespaces", false, "delete Namespaces and CRDs even if they contain objects outside this inventory, or if their contents cannot be read")
	f.BoolVar(&r.options.Detailed, "detailed-exitcode", false, "exit with 2 if there are changes")
	f.BoolVarP(&r.quiet, "quiet", "q", false, "print only warnings and failures")
	f.BoolVarP(&r.verbose, "verbose", "v", false, "also print unchanged objects and every reason to wait")
	f.DurationVar(&r.options.Timeout, "timeout", writeTime, "limit of the whole run, with reading the bundle and waiting for the lock"+afterTime)
	f.DurationVar(&r.options.LockTimeout, "lock-timeout", 0, lockTimeoutUsage)
	f.DurationVar(&r.options.Heartbeat, "heartbeat", 10*time.Second, "how often to report what the run waits for; 0 reports it only at the end")
	f.IntVar(&r.cluster.Parallel, "parallel", 0, "concurrent writes; 0 adapts to the speed of the server")
}

const lockTimeoutUsage = "how long to wait for another run that holds the inventory's lock; a holder that does not renew it within a minute counts as dead"

func (r *runOptions) dryRunFlag(cmd *cobra.Command) {
	r.options.DryRun = report.None
	enumFlag(cmd, &r.options.DryRun, "dry-run", "", "none, client (no cluster) or server (ask the server what would happen)", report.None, report.Client, report.Server)
}

// task is what a command makes of its options: how to run, and how to read the
// bundle, which may add to the options.
type task struct {
	options run.Options
	err     error // what is wrong with the options
	read    func(context.Context, *run.Options) (*bundle.Bundle, error)
}

// settle sets what follows from flags that take words.
func (r *runOptions) settle() run.Options {
	o := r.options
	o.Cascade = map[string]metav1.DeletionPropagation{
		"background": metav1.DeletePropagationBackground,
		"foreground": metav1.DeletePropagationForeground,
		"orphan":     metav1.DeletePropagationOrphan,
	}[r.cascade]
	return o
}

// run carries out a task. Whatever happens, a document that was asked for is
// printed.
func (r *runOptions) run(cmd *cobra.Command, s Streams, t task) error {
	ctx := cmd.Context()
	if t.err == nil {
		t.err = r.confirm(ctx, s, t)
	}
	printer := output.New(s.printing(wording.Options{Format: r.format, Diff: r.options.DryRun != report.None, Quiet: r.quiet, Verbose: r.verbose, Heartbeat: r.options.Heartbeat}))
	result := r.result(ctx, t, printer)
	unprinted := printer.Close()
	reports := errors.Join(bundle.Each(r.reports, func(path string) error { return output.WriteReport(path, result) })...)
	if traces.Wanted() { // last: a collector may be slow
		if err := traces.Send(ctx, result, version()); err != nil {
			s.warn("warning: " + err.Error())
		}
	}
	if unprinted != nil {
		return printed("print the result", errors.Join(unprinted, reports), result.ExitCode)
	}
	return printed("write the reports", reports, result.ExitCode)
}

func (r *runOptions) result(ctx context.Context, t task, printer wording.Printer) *report.Result {
	b, client, err := r.prepare(ctx, &t)
	if err != nil {
		return run.Refuse(ctx, t.options, endOf(err).code, err, printer.Event)
	}
	if t.options.DryRun == report.Client {
		return run.Offline(ctx, b, t.options, r.kubernetes, printer.Event)
	}
	return run.Run(ctx, client, b, t.options, printer.Event)
}

// prepare makes the client and reads the bundle.
func (r *runOptions) prepare(ctx context.Context, t *task) (*bundle.Bundle, *cluster.Client, error) {
	if t.err != nil {
		return nil, nil, t.err
	}
	t.options.Namespace, t.options.Planning.NamespaceNamed = r.conn.Namespace(), r.conn.GivenNamespace() != ""
	var client *cluster.Client
	var unreachable error // reported only if the bundle is good
	if t.options.DryRun != report.Client {
		if client, unreachable = r.conn.client(r.cluster); unreachable == nil {
			client.StartDiscovery(ctx) // what the server serves, while the bundle is read
		}
	}
	b, err := t.read(ctx, &t.options)
	if err != nil {
		return nil, nil, err
	}
	return b, client, unreachable
}

// printing are the options of a printer that writes to the streams.
func (s Streams) printing(o wording.Options) wording.Options {
	o.Out, o.Err = s.Out, s.Err
	out, isFile := s.Out.(*os.File)
	if err, ok := s.Err.(*os.File); ok && isFile {
		o.Streams(out, err)
	}
	return o
}

// who is for the history and the lock: the user that Salt or sudo ran as, at this
// host, and the minion.
func who() string {
	name := os.Getenv("SUDO_USER")
	if u, err := user.Current(); name == "" && err == nil {
		name = u.Username
	}
	if host, err := os.Hostname(); err == nil {
		name += "@" + host
	}
	if minion := os.Getenv("BRINE_MINION"); minion != "" { // as scripts/salt sets it
		name += ", minion " + minion
	}
	return name
}
