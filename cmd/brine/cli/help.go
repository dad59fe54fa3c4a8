package cli

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
)

// group is a part of a help text, and what stands under it, in that order.
type group struct {
	title string
	names []string
}

// commandGroups are the headings of brine --help; what is in none stands under the last.
var commandGroups = []group{
	{"Commands of every day", []string{"apply", "preview", "status", "rollback", "destroy"}},
	{"Without a cluster", []string{"check", "images", "rbac"}},
	{"What is there, and what changed", []string{"drift", "diff", "history", "get"}},
	{"Other commands", []string{"inventory", "patch", "version", "completion", "help"}},
}

// flagGroups are the headings of a command with many flags; what is in none stands under
// the first.
var flagGroups = []group{
	{"Flags", []string{"filename", "recursive", "name", "inventory", "namespace", "dry-run", "yes", "only", "with-needs", "plan", "plan-out", "verbose", "quiet", "help"}},
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

// examples stand at each command, by its path below brine.
var examples = map[string]string{
	"apply": `brine apply -f shop                            a file or folder; the inventory is called shop
kustomize build shop | brine apply -f - --name shop
brine apply -f shop --max-prune 30% --rollback-on-failure`,
	"preview": `brine preview -f shop
brine preview -f shop --report review.html
brine preview -f shop --plan-out plan.json     for brine apply -f shop --plan plan.json`,
	"destroy": `brine destroy shop
brine destroy platform/shop --dry-run server`,
	"rollback": `brine rollback --name shop                      undoes the last apply
brine rollback 4 --name shop --dry-run server   what going to revision 4 would do`,
	"status": `brine status platform/shop
brine status shop --wait
brine status shop --kubernetes-version 1.33    before the cluster is upgraded`,
	"drift": `brine drift shop                               against the last applied revision
brine drift shop -f shop                       against the bundle`,
	"history": `brine history shop`,
	"history show": `brine history show 4 --name shop
brine history show 4 --name shop -o html`,
	"diff": `brine diff 3 5 --name shop                     from revision 3 to revision 5
brine diff 3 --name shop                       from revision 3 to the last one
brine diff 3 -f shop --name shop               from revision 3 to the bundle
brine diff -f shop --name shop                 from the last revision to the bundle`,
	"get": `brine get deployments -A
brine get Certificate.cert-manager.io web -n shop -o json`,
	"patch": `brine patch -f labels.yaml --field-manager site-labels`,
	"check": `brine check -f shop
brine check -f shop --kubernetes-version 1.33`,
	"images": `brine images -f shop
brine images -f shop --since shop-before`,
	"rbac": `brine rbac -f shop --inventory platform/shop`,
	"inventory list": `brine inventory list
brine inventory list -n platform -o json`,
	"inventory orphans": `brine inventory orphans`,
	"inventory repair":  `brine inventory repair --inventory platform/shop --dry-run server`,
	"inventory split":   `brine inventory split platform/all --to platform/shop --members 'Deployment.apps/shop/*'`,
	"inventory merge":   `brine inventory merge platform/shop --into platform/all`,
	"inventory adopt":   `brine inventory adopt ConfigMap/shop/web --into platform/shop`,
	"inventory rename":  `brine inventory rename platform/shop platform/store`,
	"version":           `brine version -o json`,
}

// addHelp gives every command its examples, and the root the way they are all shown.
func addHelp(root *cobra.Command) {
	root.Version = version()
	root.SetUsageFunc(func(cmd *cobra.Command) error {
		_, err := io.WriteString(cmd.OutOrStdout(), usage(cmd))
		return err
	})
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		cmd.Example = examples[strings.TrimPrefix(cmd.CommandPath(), root.Name()+" ")]
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(root)
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
	groups := commandGroups
	if cmd.HasParent() {
		groups = []group{{"Commands", nil}}
	}
	for _, g := range grouped(groups, len(groups)-1, commandsOf(cmd)) {
		out.WriteString("\n" + g.title + ":\n")
		for _, name := range g.names {
			sub, _, _ := cmd.Find([]string{name})
			fmt.Fprintf(&out, "  %-12s %s\n", name, sub.Short)
		}
	}
	out.WriteString(flagUsages(cmd))
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

func commandsOf(cmd *cobra.Command) []string {
	var names []string
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() || sub.Name() == "help" {
			names = append(names, sub.Name())
		}
	}
	return names
}

// grouped are the names under their headings; those of no group come last under the
// group rest.
func grouped(groups []group, rest int, names []string) []group {
	left := slices.Clone(names)
	all := make([]group, len(groups))
	for i, g := range groups {
		all[i].title = g.title
		for _, name := range g.names {
			if at := slices.Index(left, name); at >= 0 {
				all[i].names, left = append(all[i].names, name), slices.Delete(left, at, at+1)
			}
		}
	}
	all[rest].names = append(all[rest].names, left...)
	return slices.DeleteFunc(all, func(g group) bool { return len(g.names) == 0 })
}

// noChoice is a value whose flag is listed as --flag, where pflag would write --flag[=true|false].
type noChoice struct{ pflag.Value }

// flagUsages are the flags of a command, those of every day first, and kubectl's last.
func flagUsages(cmd *cobra.Command) string {
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
	groups := []group{{"Flags", own}}
	if len(own) >= many {
		groups = flagGroups
	}
	all := append(grouped(groups, 0, own), group{"Connection, as kubectl's", theirs})
	var out strings.Builder
	for _, g := range all {
		set := pflag.NewFlagSet("", pflag.ContinueOnError)
		set.SortFlags = false
		for _, name := range g.names {
			f := *cmd.Flag(name)
			if f.Value.Type() == "bool" {
				f.Value = noChoice{f.Value}
			}
			set.AddFlag(&f)
		}
		if set.HasFlags() {
			out.WriteString("\n" + g.title + ":\n" + set.FlagUsages())
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
