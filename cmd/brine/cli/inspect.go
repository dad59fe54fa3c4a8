package cli

import (
	"context"

	"github.com/spf13/cobra"
)

// inspectOptions are those of the commands that only read an inventory: status
// and history.
type inspectOptions struct {
	place
	format string
}

func inspect(cmd *cobra.Command, show func(context.Context, *inspectOptions) error) *cobra.Command {
	o := &inspectOptions{}
	cmd.Args = cobra.NoArgs
	o.flags(cmd, "", readContact, readRetry)
	outputFlag(cmd, &o.format, "text or json", "text", "json")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return show(cmd.Context(), o) }
	return cmd
}
