// Package cli is brine's command line: a file for each command.
package cli

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"brine/bundle/report"
	"brine/cmd/brine/help"
	"brine/cmd/brine/profile"
)

// Run runs one command line and returns the process's exit code.
func Run(ctx context.Context, s Streams, args []string) int {
	var p profile.Profile
	root := newRoot(s, &p)
	root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: calledAs(os.Args[0])}
	root.SetArgs(args)
	root.SetContext(ctx)
	cmd, err := root, help.UnknownWord(root, args)
	if err == nil {
		cmd, err = root.ExecuteContextC(ctx)
	}
	if err := p.Stop(); err != nil {
		s.warn(err.Error())
	}
	if err == nil {
		return report.ExitOK
	}
	end := endOf(err)
	code := end.code
	if signalled, _ := report.SignalExit(ctx); signalled != 0 && !end.reported {
		code = signalled
	}
	switch {
	case end.reported:
	case end.late:
		s.warn(err.Error())
	default:
		refuse(s, cmd, args, code, err)
	}
	return code
}

// calledAs is the command's name in help texts: kubectl runs the program
// kubectl-brine as its command "kubectl brine".
func calledAs(program string) string {
	name := strings.TrimSuffix(filepath.Base(filepath.ToSlash(program)), ".exe")
	if name == "kubectl-brine" {
		return "kubectl brine"
	}
	return "brine"
}
