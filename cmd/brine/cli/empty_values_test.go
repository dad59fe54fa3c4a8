package cli

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"brine/cmd/brine/profile"
)

// A flag that is given with an empty value is an error of every command: it might have been a
// guard, or one of several files.
func TestEmptyValues(t *testing.T) {
	checked := 0
	var check func(cmd *cobra.Command)
	check = func(cmd *cobra.Command) {
		for _, below := range cmd.Commands() {
			check(below)
		}
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Name == "help" || f.Value.Type() == "bool" {
				return
			}
			for _, empty := range []string{"", " "} {
				if err := cmd.Flags().Set(f.Name, empty); err == nil {
					t.Errorf("%s --%s=%q is accepted", cmd.CommandPath(), f.Name, empty)
				}
			}
			checked++
		})
	}
	s := Streams{In: strings.NewReader(""), Out: &bytes.Buffer{}, Err: &bytes.Buffer{}}
	check(newRoot(s, &profile.Profile{}))
	if checked < 100 {
		t.Errorf("%d flags were checked", checked)
	}
	for _, args := range [][]string{{"check", "-f", "a.yaml", "-f", ""}, {"apply", "-f", "a.yaml", "--max-prune="}, {"apply", "-f", "a.yaml", "--plan", ""}} {
		root := newRoot(s, &profile.Profile{})
		root.SetArgs(args)
		if err := root.ExecuteContext(context.Background()); err == nil || !strings.Contains(err.Error(), "it is empty") {
			t.Errorf("%v: %v", slices.Concat(args), err)
		}
	}
}

// What a shell puts in the place of a file has no name that says which bundle it is.
func TestFilesWithoutAName(t *testing.T) {
	file := filepath.Join(t.TempDir(), "shop.yaml")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{file: true, filepath.Dir(file): true, file + "-not-there": true, "-": false, "": false, "/dev/stdin": false, "/dev/fd/63": false, "/proc/self/fd/63": false, "/dev/null": false} {
		if _, got := namedFile(name); got != want {
			t.Errorf("%q: %t", name, got)
		}
	}
}
