package cli

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"brine/cmd/brine/profile"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// texts gives all string literals of a folder's Go files but its tests.
func texts(t *testing.T, folder string, see func(path, text string)) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "clustertest") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if text, err := strconv.Unquote(lit.Value); err == nil {
					see(path, text)
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Every section of the troubleshooting page is named by a message.
func TestMessagesNameTheirHelp(t *testing.T) {
	constants := map[string]string{}
	remedy := filepath.Join("..", "..", "..", "bundle", "remedy")
	source, err := os.ReadFile(filepath.Join(remedy, "remedy.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(Help\w+) += "brine help ([a-z-]+)"`).FindAllStringSubmatch(string(source), -1) {
		constants[m[2]] = m[1]
	}
	var all strings.Builder
	for _, folder := range []string{"bundle", "inventory", "cmd"} {
		err := filepath.WalkDir(filepath.Join("..", "..", "..", folder), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			all.Write(text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^## ([a-z-]+)$`).FindAllStringSubmatch(troubleshooting, -1) {
		if name := constants[m[1]]; name == "" || !strings.Contains(all.String(), "remedy."+name) {
			t.Errorf("no message names brine help %s", m[1])
		}
	}
}

// Messages below the command line name flags and commands by package remedy.
func TestFlagsInMessagesExist(t *testing.T) {
	flags, commands := map[string]bool{}, map[string]bool{}
	var add func(cmd *cobra.Command)
	add = func(cmd *cobra.Command) {
		commands[cmd.CommandPath()] = true
		cmd.Flags().VisitAll(func(f *pflag.Flag) { flags["--"+f.Name] = true })
		for _, c := range cmd.Commands() {
			add(c)
		}
	}
	add(newRoot(Streams{Out: io.Discard, Err: io.Discard}, &profile.Profile{}))

	remedy := filepath.Join("..", "..", "..", "bundle", "remedy")
	named := 0
	texts(t, remedy, func(_, text string) {
		switch {
		case strings.HasPrefix(text, "--") && text != "--":
			named++
			if !flags[text] {
				t.Errorf("remedy names %s, which is no flag", text)
			}
		case strings.HasPrefix(text, "brine "):
			named++
			if !commands[strings.Replace(text, " help ", " ", 1)] {
				t.Errorf("remedy names %q, which is no command", text)
			}
		}
	})
	if named == 0 {
		t.Error("remedy names nothing")
	}
	words := regexp.MustCompile(`--[a-z][a-z-]+|brine (apply|preview|destroy|rollback|history|status|inventory)\b`)
	for _, folder := range []string{"bundle", "inventory"} {
		texts(t, filepath.Join("..", "..", "..", folder), func(path, text string) {
			for _, word := range words.FindAllString(text, -1) {
				if !strings.HasPrefix(path, remedy) && (flags[word] || !strings.HasPrefix(word, "--")) {
					t.Errorf("%s: %q names %s itself: use package remedy", path, text, word)
				}
			}
		})
	}
}
