package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"brine/bundle/cluster"
	"brine/bundle/inspect"
	"brine/bundle/report"
	"brine/cmd/brine/output"
)

func newGet(s Streams) *cobra.Command {
	var q inspect.Query
	var everywhere, ignore bool
	var format string
	cmd := &cobra.Command{
		Use: "get KIND[.GROUP] [NAME]", Short: "Show objects of any kind as they are now, with masked Secrets, and whether they are ready", Args: cobra.RangeArgs(1, 2),
	}
	conn := newConnection(cmd, readContact, readRetry)
	outputFlag(cmd, &format, "text or json", "text", "json")
	f := cmd.Flags()
	f.StringVar(&q.APIVersion, "api-version", "", "GROUP/VERSION of the kind; the server's preferred one without it")
	f.BoolVarP(&everywhere, "all-namespaces", "A", false, "objects of all namespaces")
	f.StringVarP(&q.Labels, "selector", "l", "", "label selector: app=web,tier!=db")
	f.StringVar(&q.Fields, "field-selector", "", "field selector: spec.nodeName=node-1")
	f.StringVar(&q.ReadyWhen, "ready-when", "", "CEL expression about self that is true when an object is ready, in place of its annotation brine.dev/ready-when")
	f.BoolVar(&q.Secrets, "show-secrets", false, "print the values of Secrets")
	f.BoolVar(&ignore, "ignore-not-found", false, "an object that does not exist is no error")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		q.Kind, q.Namespace = args[0], conn.Namespace()
		if len(args) == 2 {
			q.Name = args[1]
		}
		if q.Name != "" && (everywhere || q.Labels != "" || q.Fields != "") {
			return errors.New("NAME is one object: it excludes --all-namespaces, --selector and --field-selector")
		}
		if everywhere {
			q.Namespace = ""
		}
		client, err := conn.client(cluster.Options{})
		if err != nil {
			return err
		}
		found, err := inspect.Get(cmd.Context(), client, q)
		if err != nil {
			return failed(err)
		}
		if q.Name != "" && len(found.Objects) == 0 && !ignore {
			return &coded{code: report.ExitFailed, err: fmt.Errorf("%s %s does not exist in namespace %s", q.Kind, q.Name, q.Namespace)}
		}
		return printed("print the objects", output.Found(s.Out, format, found), report.ExitOK)
	}
	return cmd
}
