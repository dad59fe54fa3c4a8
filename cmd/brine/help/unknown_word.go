package help

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"brine/bundle"
)

// UnknownWord is the error for a word that names no command or topic. cobra has one for the
// first word only: for others it prints a help text, and the exit code is 0.
func UnknownWord(root *cobra.Command, args []string) error {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd(args...)
	if len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) {
		return nil
	}
	cmd, rest, err := root.Find(args)
	if err == nil && cmd.Name() == "help" {
		args = slices.DeleteFunc(rest, func(arg string) bool { return strings.HasPrefix(arg, "-") })
		cmd, rest, err = root.Find(args)
	}
	switch {
	case err != nil:
		cmd, rest = root, args
	case !cmd.HasSubCommands() || cmd.Runnable():
		return nil
	}
	words := slices.DeleteFunc(slices.Clone(rest), func(arg string) bool { return strings.HasPrefix(arg, "-") })
	if len(words) == 0 {
		return nil
	}
	known := bundle.Each(cmd.Commands(), (*cobra.Command).Name)
	for _, word := range words { // others may be values of flags
		if meant := bundle.Nearest(word, known); meant != "" {
			return fmt.Errorf("unknown command %q for %q: did you mean %s?", word, cmd.CommandPath(), meant)
		}
	}
	return fmt.Errorf("unknown command %q for %q: %[2]s --help lists them", words[0], cmd.CommandPath())
}
