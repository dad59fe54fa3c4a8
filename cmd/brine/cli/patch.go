package cli

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"brine/bundle/cluster"
	"brine/bundle/patch"
	"brine/bundle/report"
	"brine/cmd/brine/output"
	"brine/cmd/brine/output/wording"
)

func newPatch(s Streams) *cobra.Command {
	var in input
	var format string
	var force bool
	o := patch.Options{Header: report.Header{Command: "patch", DryRun: report.None}, Manager: "brine-patch"}
	cmd := &cobra.Command{
		Use: "patch -f OBJECTS", Short: "Set fields of single objects that belong to no bundle, by server-side apply", Args: cobra.NoArgs,
	}
	conn := newConnection(cmd, writeContact, readRetry)
	in.flags(cmd)
	outputFlag(cmd, &format, strings.Join(output.Formats, ", "), output.Formats...)
	enumFlag(cmd, &o.DryRun, "dry-run", "", "none or server (ask the server what would happen)", report.None, report.Server)
	f := cmd.Flags()
	f.StringVar(&o.Manager, "field-manager", o.Manager, "name that owns the fields: fields that it set before, and that are not given any more, are removed")
	f.BoolVar(&o.Create, "create", false, "create an object that does not exist")
	f.BoolVar(&o.Remove, "remove", false, "remove all fields of the field manager")
	f.BoolVar(&o.Delete, "delete", false, "delete the objects")
	f.BoolVar(&force, "force-conflicts", false, "overwrite fields that other field managers own, and own them")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if o.Create && (o.Remove || o.Delete) || o.Remove && o.Delete {
			return errors.New("--create, --remove and --delete exclude each other")
		}
		b, err := in.read(cmd.Context(), s)
		if err == nil && len(b.Objects) == 0 {
			err = errNoBundle
		}
		if err != nil {
			return err
		}
		client, err := conn.client(cluster.Options{ForceConflicts: force, FieldValidation: metav1.FieldValidationStrict})
		if err != nil {
			return err
		}
		printer := output.New(s.printing(wording.Options{Format: format, Diff: o.DryRun != report.None}))
		o.Namespace = conn.Namespace()
		result := patch.Run(cmd.Context(), client, b, o, printer.Event)
		return printed("print the result", printer.Close(), result.ExitCode)
	}
	return cmd
}
