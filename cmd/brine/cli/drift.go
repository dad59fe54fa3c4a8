package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/fields"
	"brine/bundle/report"
	"brine/bundle/run"
	"brine/cmd/brine/output"
	"brine/cmd/brine/output/wording"
)

type driftOptions struct {
	inspectOptions
	in           input
	verbose      bool
	verify       string
	ignoreFields string
	revision     int
}

func newDrift(s Streams) *cobra.Command {
	d := &driftOptions{}
	cmd := &cobra.Command{
		Use:   "drift [[NAMESPACE/]INVENTORY] [-f BUNDLE]",
		Short: "Show how the cluster differs from a revision, or from a bundle",
	}
	d.flags(cmd, writeRetry)
	d.argument(cmd)
	d.idFlag(cmd)
	d.in.flags(cmd)
	d.verify = "changed"
	outputFlag(cmd, &d.format, "text, json or html", "text", "json", "html")
	enumFlag(cmd, &d.verify, "verify", "", "changed: send no dry run for objects whose fingerprint is unchanged; full: ask the server about every object", "changed", "full")
	f := cmd.Flags()
	f.StringVar(&d.ignoreFields, "ignore-fields", "", "file of rules (YAML) about fields that are left to others (default: those of the run that is compared with)")
	f.IntVar(&d.revision, "revision", 0, "revision to compare with (default: the last one of which all objects were applied)")
	f.BoolVarP(&d.verbose, "verbose", "v", false, "show long objects whole")
	cmd.MarkFlagsMutuallyExclusive("revision", "filename")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return d.run(cmd, s) }
	return cmd
}

func (d *driftOptions) run(cmd *cobra.Command, s Streams) error {
	ctx := cmd.Context()
	o := run.Options{Header: report.Header{Command: "drift", Wanted: "bundle " + strings.Join(d.in.Files, ", ")}, Version: version(), Namespace: d.conn.Namespace()}
	o.Planning.VerifyFull = d.verify == "full"
	var b *bundle.Bundle
	var err error
	if o.Planning.IgnoreFields, err = readRules("ignore-fields", d.ignoreFields, fields.ReadRules); err != nil {
		return err
	}
	if len(d.in.Files) > 0 {
		if b, err = d.in.read(ctx, s); err != nil {
			return err
		}
	}
	inv, client, err := d.open(ctx, s, cluster.Options{})
	if err != nil {
		return err
	}
	o.Inventory = placeOf(inv)
	if b, err = run.DriftFrom(ctx, inv, b, d.revision, &o); err != nil {
		return failed(err)
	}
	result := run.Run(ctx, client, b, o, func(report.Event) {})
	err = output.Finished(s.printing(wording.Options{Format: d.format, Diff: true, Verbose: d.verbose}), result)
	return printed("print the drift", err, result.ExitCode)
}
