package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"brine/bundle"
)

// enum is the value of a flag that takes one of a few words.
type enum[T comparable] struct {
	value  *T
	values []T
}

// enumFlag adds a flag that takes one of the values and completes them. What
// value holds is the default.
func enumFlag[T comparable](cmd *cobra.Command, value *T, name, shorthand, usage string, values ...T) {
	e := &enum[T]{value, values}
	cmd.Flags().VarP(e, name, shorthand, usage)
	_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(e.Words(), cobra.ShellCompDirectiveNoFileComp))
}

// outputFlag adds -o, which is text by default.
func outputFlag(cmd *cobra.Command, format *string, usage string, formats ...string) {
	*format = "text"
	enumFlag(cmd, format, "output", "o", usage, formats...)
}

// Set takes a value by its word.
func (e *enum[T]) Set(word string) error {
	words := e.Words()
	at, last := slices.Index(words, word), len(words)-1
	if at < 0 {
		return errors.New("invalid value: use " + strings.Join(words[:last], ", ") + " or " + words[last])
	}
	*e.value = e.values[at]
	return nil
}

func (e *enum[T]) String() string { return fmt.Sprint(*e.value) }

// Type is what help texts call the value.
func (e *enum[T]) Type() string { return "string" }

// Words are the values as they are written.
func (e *enum[T]) Words() []string {
	return bundle.Each(e.values, func(v T) string { return fmt.Sprint(v) })
}
