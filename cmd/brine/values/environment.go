package values

import (
	"errors"
	"fmt"
	"os"
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

// FromEnvironment sets each flag that was not given from BRINE_…, if that is
// set and not empty: a flag overrides the environment, which overrides the default.
func FromEnvironment(flags *pflag.FlagSet) bundle.Problems {
	var problems bundle.Problems
	var given []string
	flags.Visit(func(f *pflag.Flag) { given = append(given, f.Name) })
	flags.VisitAll(func(f *pflag.Flag) {
		name := variable(f.Name)
		value := os.Getenv(name)
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
			err = Invalid(name, wrong)
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

// environment is the annotation of a flag that was set by a variable: its name.
const environment = "brine/environment"

// formerly is the annotation of a flag that is an old spelling: what it is called now.
const formerly = "brine/formerly"

// OldSpelling keeps an old name of a flag for one minor version, hidden from the help.
func OldSpelling(cmd *cobra.Command, old, name string) {
	f := *cmd.Flags().Lookup(name)
	f.Name, f.Hidden, f.Annotations = old, true, map[string][]string{formerly: {name}}
	cmd.Flags().AddFlag(&f)
}

// OldSpellings are warnings that name the new spelling of each flag, or variable, that was given
// by an old one.
func OldSpellings(flags *pflag.FlagSet) (warnings []string) {
	flags.Visit(func(f *pflag.Flag) {
		if now := f.Annotations[formerly]; len(now) > 0 {
			warnings = append(warnings, fmt.Sprintf("%s: this is called --%s now; the old name goes with the next minor version", given(f), now[0]))
		}
	})
	return warnings
}
