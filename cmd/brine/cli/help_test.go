package cli

import (
	"io"
	"slices"
	"strings"
	"testing"

	"brine/cmd/brine/help"
	"brine/cmd/brine/profile"
	"brine/cmd/brine/values"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// all gives every command that does something.
func all(see func(*cobra.Command)) *cobra.Command {
	root := newRoot(Streams{Out: io.Discard, Err: io.Discard}, &profile.Profile{})
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		if cmd.Runnable() {
			see(cmd)
		}
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(root)
	return root
}

func TestHelpHasHeadings(t *testing.T) {
	help := line(t, "brine", "--help")
	for _, want := range []string{"Commands of every day:\n  apply ", "\nTopics:\n  annotations ", "--version", "\"brine help TOPIC\""} {
		if !strings.Contains(help, want) {
			t.Errorf("brine --help lacks %q:\n%s", want, help)
		}
	}
	help = line(t, "brine", "apply", "--help")
	last := 0
	for _, want := range []string{"\nExamples:\n", "\nFlags:\n  -f, --filename", "\nPruning:\n", "\nWaiting and time:\n", "\nRollback:\n", "\nOutput:\n", "\nSalt:\n", "\nConnection, as kubectl's:\n"} {
		at := strings.Index(help, want)
		if at <= last {
			t.Errorf("brine apply --help lacks %q, or has it too early:\n%s", want, help)
		}
		last = at
	}
	if got := line(t, "brine", "--version"); !strings.Contains(got, release) {
		t.Errorf("brine --version prints %q", got)
	}
	if help := line(t, "kubectl-brine", "status", "--help"); !strings.Contains(help, "  kubectl brine status platform/shop") || strings.Contains(help, "  brine ") {
		t.Errorf("the plugin's examples are of brine:\n%s", help)
	}
}

// Every flag and command of a heading exists; each flag is shown once.
func TestHeadingsNameWhatExists(t *testing.T) {
	flags := map[string]bool{}
	root := all(func(cmd *cobra.Command) {
		cmd.InitDefaultHelpFlag()
		usages := help.FlagUsages(cmd)
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			flags[f.Name] = true
			if n := strings.Count(usages, "--"+f.Name+" ") + strings.Count(usages, "--"+f.Name+"\n"); !f.Hidden && n < 1 {
				t.Errorf("the help of %s lacks --%s", cmd.CommandPath(), f.Name)
			}
		})
	})
	for _, g := range help.FlagGroups {
		for _, name := range g.Names {
			if !flags[name] {
				t.Errorf("heading %s names --%s, which is no flag", g.Title, name)
			}
		}
	}
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, g := range help.CommandGroups {
		for _, name := range g.Names {
			if !slices.Contains(help.CommandsOf(root), name) {
				t.Errorf("heading %s names %s, which is no command", g.Title, name)
			}
		}
	}
}

// Each command has examples, and each of them is a command line that brine takes.
func TestExamplesAreCommandLines(t *testing.T) {
	used := 0
	all(func(cmd *cobra.Command) {
		if cmd.Example == "" {
			t.Errorf("%s has no example", cmd.CommandPath())
			return
		}
		used++
		for text := range strings.Lines(cmd.Example) {
			if takes := takes(strings.TrimSpace(text)); takes != "" {
				t.Errorf("%s: %q: %s", cmd.CommandPath(), text, takes)
			}
		}
	})
	if sections := strings.Count(commands, "\n## ") - 1; used != sections { // one is brine's own
		t.Errorf("%d commands have examples, of %d", used, sections)
	}
}

// argumentsOf are the arguments of the call of brine in a text.
func argumentsOf(text string) (args []string) {
	text, _, _ = strings.Cut(text, "   ")
	_, call, _ := strings.Cut(text, "brine ")
	for word := range strings.FieldsSeq(call) {
		if strings.HasPrefix(word, "#") || strings.ContainsAny(word[:1], "|><;&") || strings.HasPrefix(word, "2>") {
			break
		}
		args = append(args, strings.Trim(strings.TrimRight(word, ";"), `'"`))
	}
	return args
}

// takes says why brine does not take a command line as a document shows it: with what
// is behind it after three spaces, with pipes and redirections.
func takes(text string) string {
	args := argumentsOf(text)
	if len(args) == 0 {
		return "it does not call brine"
	}
	root := newRoot(Streams{Out: io.Discard, Err: io.Discard}, &profile.Profile{})
	if err := help.UnknownWord(root, args); err != nil {
		return err.Error()
	}
	cmd, rest, err := root.Find(args)
	if err != nil {
		return err.Error()
	}
	if cmd.Name() == "help" || cmd.Name() == "completion" || slices.ContainsFunc(rest, func(w string) bool { return w == "--help" || w == "-h" || w == "--version" }) {
		return ""
	}
	if err := cmd.ParseFlags(rest); err != nil {
		return err.Error()
	}
	if err := cmd.ValidateArgs(cmd.Flags().Args()); err != nil {
		return err.Error()
	}
	if wrong := values.CheckFlags(cmd.Flags()); len(wrong) > 0 {
		return wrong.Error()
	}
	return ""
}

// No flag of any command takes a negative number or duration.
func TestNoFlagIsNegative(t *testing.T) {
	checked := 0
	all(func(cmd *cobra.Command) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			value := map[string]string{"int": "-1", "duration": "-1s"}[f.Value.Type()]
			if f.Name == "request-timeout" {
				value = "-1s"
			}
			if value == "" {
				return
			}
			checked++
			if err := f.Value.Set(value); err != nil {
				return
			}
			if wrong := values.CheckFlags(cmd.Flags()).Error(); !strings.Contains(wrong, "--"+f.Name+"=") {
				t.Errorf("%s --%s=%s is accepted: %s", cmd.CommandPath(), f.Name, value, wrong)
			}
		})
	})
	if checked < 50 {
		t.Errorf("%d flags were checked", checked)
	}
}
