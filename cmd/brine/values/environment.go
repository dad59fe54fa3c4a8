package values

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"brine/bundle"
	"brine/cmd/brine/output"
)

// Flags by other names: variables of the environment, and old spellings.

const prefix = "BRINE_"

// variable is the name of a flag in the environment.
func variable(flag string) string {
	return prefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// SetFromEnvironment sets each flag that was not given from BRINE_…, if that is
// set and not empty: a flag overrides the environment, which overrides the default.
// Those that guard may not be empty.
func SetFromEnvironment(flags *pflag.FlagSet) bundle.Problems {
	var problems bundle.Problems
	var given []string
	flags.Visit(func(f *pflag.Flag) { given = append(given, f.Name) })
	flags.VisitAll(func(f *pflag.Flag) {
		name := variable(f.Name)
		value, set := os.LookupEnv(name)
		if set && strings.TrimSpace(value) == "" && !f.Changed && slices.Contains(guards, f.Name) {
			problems = append(problems, bundle.Problem{Message: name + " is empty: an earlier step may not have set it; give it a value, or unset it"})
		}
		if value == "" || f.Changed || f.Name == "help" {
			return
		}
		// Both name the inventory: a flag of either overrides the environment.
		if other := map[string]string{"inventory": "name", "name": "inventory"}[f.Name]; other != "" && slices.Contains(given, other) {
			return
		}
		// BRINE_OUTPUT=salt is for all that can do it; brine version cannot.
		if formats, ok := f.Value.(interface{ Words() []string }); ok && f.Name == "output" && slices.Contains(output.Formats, value) && !slices.Contains(formats.Words(), value) {
			return
		}
		err := flags.Set(f.Name, value)
		if wrong, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
			err = ExplainInvalid(name, wrong)
		}
		if err == nil {
			err = flags.SetAnnotation(f.Name, environment, []string{name})
		}
		if err != nil {
			problems = append(problems, bundle.Problem{Message: err.Error()})
		}
	})
	return problems
}

// guards are the flags that make a run smaller, or refuse it: an output of an earlier step that is
// missing must not do without them.
var guards = []string{"plan", "plan-digest", "max-prune", "deny", "only", "dry-run", "inventory-id", "no-prune", "refuse-removed"}

// environment is the annotation of a flag that was set by a variable: its name.
const environment = "brine/environment"

// formerly is the annotation of a flag that is an old spelling: what it is called now.
const formerly = "brine/formerly"

// KeepOldSpelling keeps an old name of a flag for one minor version, hidden from the help.
func KeepOldSpelling(cmd *cobra.Command, old, name string) {
	f := *cmd.Flags().Lookup(name)
	f.Name, f.Hidden, f.Annotations = old, true, map[string][]string{formerly: {name}}
	cmd.Flags().AddFlag(&f)
}

// FindOldSpellings returns warnings that name the new spelling of each flag, or variable, that was given
// by an old one.
func FindOldSpellings(flags *pflag.FlagSet) (warnings []string) {
	flags.Visit(func(f *pflag.Flag) {
		if now := f.Annotations[formerly]; len(now) > 0 {
			warnings = append(warnings, fmt.Sprintf("%s: this is called --%s now; the old name goes with the next minor version", given(f), now[0]))
		}
	})
	return warnings
}

// others are variables that are no flags: what scripts/salt says of a job, what cobra reads, and
// what the project's own scripts and tests have.
var others = regexp.MustCompile(`^(JID|MINION|UPDATE|BINARY|ACTIVE_HELP|COMPLETION_DESCRIPTIONS|SIGNING_PASSPHRASE|LIVE_DEMO|CLUSTER_GROUP|(TEST|BENCH|DEVCLUSTER)_.*)$`)

// links are variables that Kubernetes sets in each Pod for a Service whose name begins with brine.
var links = regexp.MustCompile(`(^|_)(SERVICE_HOST|(SERVICE_)?PORT)(_|$)`)

// FindUnknownVariables warns of each BRINE_… of an environment that sets no flag of any command: a
// guard such as BRINE_MAX_PRUNE would be missing without a word. It shows no value, which may be
// a password.
func FindUnknownVariables(root *cobra.Command, environment []string) (warnings []string) {
	var known []string
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		for _, flags := range []*pflag.FlagSet{cmd.Flags(), cmd.PersistentFlags()} {
			flags.VisitAll(func(f *pflag.Flag) { known = append(known, variable(f.Name)) })
		}
		for _, below := range cmd.Commands() {
			walk(below)
		}
	}
	walk(root)
	for _, one := range slices.Sorted(slices.Values(environment)) {
		name, value, _ := strings.Cut(one, "=")
		rest, ours := strings.CutPrefix(name, prefix)
		if !ours || value == "" || slices.Contains(known, name) || others.MatchString(rest) || links.MatchString(rest) {
			continue
		}
		advice := "each is named after a flag (brine help flags)"
		if best := bundle.Nearest(name, known); best != "" {
			advice = fmt.Sprintf("did you mean %s (--%s)?", best, strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(best, prefix), "_", "-")))
		}
		warnings = append(warnings, fmt.Sprintf("warning: the variable %s sets no flag, and is ignored: %s", name, advice))
	}
	return warnings
}
