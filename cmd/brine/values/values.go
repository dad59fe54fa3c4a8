// Package values has the rules on the values of flags: where they come from, and what is wrong
// with them.
package values

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// RefuseEmpty makes an error of an empty value of each flag of a command and of those below it
// that takes text: a script whose variable is not set would give a smaller bundle, or no guard.
func RefuseEmpty(cmd *cobra.Command) {
	for _, flags := range []*pflag.FlagSet{cmd.Flags(), cmd.PersistentFlags()} {
		flags.VisitAll(func(f *pflag.Flag) {
			if !slices.Contains(texts, fmt.Sprintf("%T", f.Value)) {
				return // it has words, and says which
			}
			if f.Value = notEmptyOf(f.Value); f.DefValue == "[]" {
				f.DefValue = "" // else the help shows it
			}
		})
	}
	for _, one := range cmd.Commands() {
		RefuseEmpty(one)
	}
}

// texts are the types of flags that take any text.
var texts = []string{"*pflag.stringValue", "*pflag.stringSliceValue", "*pflag.stringArrayValue"}

func notEmptyOf(v pflag.Value) pflag.Value {
	if several, ok := v.(pflag.SliceValue); ok {
		return notEmptySlice{notEmpty{v}, several}
	}
	return notEmpty{v}
}

type notEmpty struct{ pflag.Value }

// notEmptySlice takes several values.
type notEmptySlice struct {
	notEmpty
	pflag.SliceValue
}

var errEmpty = errors.New("it is empty: give a value, or leave the flag out")

func (v notEmpty) Set(text string) error {
	if strings.TrimSpace(text) == "" {
		return errEmpty
	}
	return v.Value.Set(text) //nolint:wrapcheck // pflag says which flag it is
}
