package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"
)

// inspectOptions are those of the commands that only read an inventory: status
// and history.
type inspectOptions struct {
	place
	format string
}

// flags are those of a command that only reads: without a name, the only inventory is it.
func (o *inspectOptions) flags(cmd *cobra.Command, retry time.Duration) {
	o.place.flags(cmd, "", readContact, retry)
	o.sole = true
}

// readingCommand gives a command that only reads its flags and its argument.
func readingCommand(cmd *cobra.Command, show func(context.Context, *inspectOptions) error) *cobra.Command {
	o := &inspectOptions{}
	o.flags(cmd, readRetry)
	o.argument(cmd)
	outputFlag(cmd, &o.format, "text or json", "text", "json")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return show(cmd.Context(), o) }
	return cmd
}
