//go:build man

package cli

import (
	"io"
	"os"
	"path/filepath"
	"time"

	"brine/cmd/brine/profile"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// brine man DIR writes the manual pages, and the shells' completions. Only
// scripts/release builds it in: brine itself does not carry what it needs.
func init() {
	if len(os.Args) != 3 || os.Args[1] != "man" {
		return
	}
	if err := writeDocuments(os.Args[2]); err != nil {
		panic(err)
	}
	os.Exit(0)
}

func writeDocuments(dir string) error {
	root := newRoot(Streams{Out: io.Discard, Err: io.Discard}, &profile.Profile{})
	root.DisableAutoGenTag = true
	at, err := time.Parse(time.RFC3339, date)
	if err != nil {
		return err
	}
	at = at.UTC()
	pages := filepath.Join(dir, "man")
	if err := os.MkdirAll(pages, 0o755); err != nil {
		return err
	}
	header := &doc.GenManHeader{Section: "1", Source: "brine " + release, Manual: "brine", Date: &at}
	if err := doc.GenManTree(root, header, pages); err != nil {
		return err
	}
	return writeCompletions(root, filepath.Join(dir, "completions"))
}

func writeCompletions(root *cobra.Command, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	bash := func(path string) error { return root.GenBashCompletionFileV2(path, true) }
	for name, write := range map[string]func(string) error{
		"brine.bash": bash,
		"_brine":     root.GenZshCompletionFile,
		"brine.fish": func(path string) error { return root.GenFishCompletionFile(path, true) },
		"brine.ps1":  root.GenPowerShellCompletionFileWithDesc,
	} {
		if err := write(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}
