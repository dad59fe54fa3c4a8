// Package help is what brine says of itself: what each command is for, with examples, the
// headings of its flags, the topics, and the nearest of the words that it knows.
package help

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"brine/bundle"
)

// Group is a part of a help text, and what stands under it, in that order.
type Group struct {
	Title string
	Names []string
}

// CommandGroups are the headings of brine --help; what is in none stands under the last.
var CommandGroups = []Group{
	{"Commands of every day", []string{"apply", "preview", "status", "rollback", "destroy"}},
	{"Without a cluster", []string{"check", "images", "rbac"}},
	{"What is there, and what changed", []string{"drift", "diff", "history", "get"}},
	{"Other commands", []string{"inventory", "patch", "version", "completion", "help"}},
}

// FlagGroups are the headings of a command with many flags; what is in none stands under
// the first.
var FlagGroups = []Group{
	{"Flags", []string{"filename", "recursive", "name", "inventory", "namespace", "dry-run", "yes", "only", "with-needs", "plan", "plan-digest", "plan-out", "plan-lifetime", "verbose", "quiet", "help"}},
	{"Pruning", []string{"max-prune", "no-prune", "prune-anyway", "prune-first", "allow-empty", "cascade", "force-namespaces"}},
	{"Whose object, and who owns a field", []string{"inventory-policy", "inventory-id", "conflicts", "force-conflicts", "take-over-from", "take-over-managers", "ignore-fields"}},
	{"How objects are applied", []string{"deny", "validation", "field-validation", "verify", "recreate", "migrate-stored-versions", "allow-generate-name", "kubernetes-version"}},
	{"Waiting and time", []string{"wait", "timeout", "fail-after", "lock-timeout", "readiness", "retry-timeout", "heartbeat", "parallel"}},
	{"Rollback", []string{"rollback-on-failure", "history-limit"}},
	{"Output", []string{"output", "report", "detailed-exitcode"}},
	{"Salt", []string{"input-format", "ignore-foreign-states", "jid"}},
}

// many is from how many flags of its own on a command has headings.
const many = 25

// Documents are the texts that help prints parts of.
type Documents struct {
	// Commands has a section for each command: what it is for, and indented, its examples.
	Commands string
	// Reference and Troubleshooting are the command line's documents.
	Reference, Troubleshooting string
}

// Add gives every command its texts, and adds a command for each topic.
func (d Documents) Add(root *cobra.Command) {
	root.SetUsageFunc(func(cmd *cobra.Command) error {
		_, err := io.WriteString(cmd.OutOrStdout(), usage(cmd))
		return err
	})
	_, sections, _ := strings.Cut(d.Commands, "\n## ")
	for section := range strings.SplitSeq(sections, "\n## ") {
		path, text, _ := strings.Cut(section, "\n")
		cmd, _, _ := root.Find(strings.Fields(path)) // brine itself is the root
		about, examples, _ := strings.Cut(text, "\n    ")
		cmd.Long, cmd.Example = strings.TrimSpace(about), strings.ReplaceAll(strings.TrimSpace(examples), "\n    ", "\n")
	}
	d.addTopics(root)
}

// usage is how a command is called. kubectl calls brine "kubectl brine".
func usage(cmd *cobra.Command) string {
	called := cmd.Root().DisplayName()
	var out strings.Builder
	out.WriteString("Usage:")
	if cmd.Runnable() {
		out.WriteString("\n  " + cmd.UseLine())
	}
	if cmd.HasAvailableSubCommands() {
		out.WriteString("\n  " + cmd.CommandPath() + " [command]")
	}
	out.WriteString("\n")
	if cmd.Example != "" {
		out.WriteString("\nExamples:\n")
		for line := range strings.SplitSeq(cmd.Example, "\n") {
			line = strings.Replace(line, "brine ", called+" ", 1)
			out.WriteString("  " + line + "\n")
		}
	}
	groups := CommandGroups
	if cmd.HasParent() {
		groups = []Group{{"Commands", nil}}
	}
	for _, g := range grouped(groups, len(groups)-1, CommandsOf(cmd)) {
		out.WriteString("\n" + g.Title + ":\n")
		for _, name := range g.Names {
			sub, _, _ := cmd.Find([]string{name})
			fmt.Fprintf(&out, "  %-12s %s\n", name, sub.Short)
		}
	}
	out.WriteString(FlagUsages(cmd))
	if !cmd.HasParent() {
		out.WriteString("\nTopics:\n")
		for _, sub := range cmd.Commands() {
			if sub.IsAdditionalHelpTopicCommand() {
				fmt.Fprintf(&out, "  %-21s %s\n", sub.Name(), sub.Short)
			}
		}
		fmt.Fprintf(&out, "\n\"%s help TOPIC\" prints a topic, \"%[1]s COMMAND --help\" what a command takes.\n", called)
	}
	return out.String()
}

// CommandsOf are the names of the commands below another one that help lists.
func CommandsOf(cmd *cobra.Command) []string {
	listed := bundle.Where(cmd.Commands(), func(sub *cobra.Command) bool { return sub.IsAvailableCommand() || sub.Name() == "help" })
	return bundle.Each(listed, (*cobra.Command).Name)
}

// grouped are the names under their headings; those of no group come last under the
// group rest.
func grouped(groups []Group, rest int, names []string) []Group {
	left := slices.Clone(names)
	all := make([]Group, len(groups))
	for i, g := range groups {
		all[i].Title = g.Title
		for _, name := range g.Names {
			if at := slices.Index(left, name); at >= 0 {
				all[i].Names, left = append(all[i].Names, name), slices.Delete(left, at, at+1)
			}
		}
	}
	all[rest].Names = append(all[rest].Names, left...)
	return slices.DeleteFunc(all, func(g Group) bool { return len(g.Names) == 0 })
}

// noChoice is a value whose flag is listed as --flag, where pflag would write --flag[=true|false].
type noChoice struct{ pflag.Value }

// FlagUsages are the flags of a command, those of every day first, and kubectl's last.
func FlagUsages(cmd *cobra.Command) string {
	kubectl := pflag.NewFlagSet("", pflag.ContinueOnError)
	genericclioptions.NewConfigFlags(true).AddFlags(kubectl)
	var own, theirs []string
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		switch {
		case f.Hidden:
		case kubectl.Lookup(f.Name) != nil && f.Name != "namespace":
			theirs = append(theirs, f.Name)
		default:
			own = append(own, f.Name)
		}
	})
	groups := []Group{{"Flags", own}}
	if len(own) >= many {
		groups = FlagGroups
	}
	all := append(grouped(groups, 0, own), Group{"Connection, as kubectl's", theirs})
	var out strings.Builder
	for _, g := range all {
		set := pflag.NewFlagSet("", pflag.ContinueOnError)
		set.SortFlags = false
		for _, name := range g.Names {
			f := *cmd.Flag(name)
			if f.Value.Type() == "bool" {
				f.Value = noChoice{f.Value}
			}
			set.AddFlag(&f)
		}
		if set.HasFlags() {
			out.WriteString("\n" + g.Title + ":\n" + set.FlagUsages())
		}
	}
	return out.String()
}

// page shows a long text with $PAGER where a person reads it, and prints it otherwise.
func page(ctx context.Context, out io.Writer, text string) {
	file, ok := out.(*os.File)
	if pager := os.Getenv("PAGER"); ok && pager != "" && term.IsTerminal(int(file.Fd())) {
		cmd := exec.CommandContext(ctx, "sh", "-c", pager) //nolint:gosec // what the user wants to read with
		cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(text), out, os.Stderr
		if cmd.Run() == nil {
			return
		}
	}
	fmt.Fprint(out, text)
}
