package cli

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The table of packages in scripts/README.md is complete, and every package
// imports only packages below it. Only tests import what is for tests. A package fits in one
// head: it has 3,000 lines at most, without its tests.
func TestPackagesImportDownwards(t *testing.T) {
	text, err := os.ReadFile("../../../scripts/README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "## Architecture")
	var order []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z/]+)` \\|").FindAllStringSubmatch(table, -1) {
		order = append(order, "brine/"+row[1])
	}
	tools := []string{"brine/bundle/validate/published", "brine/scripts/schemagen", "brine/scripts/salt", "brine/scripts/simulator", "brine/scripts/simulator/apiserver"}
	out, err := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "brine/...").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		at := slices.Index(order, words[0])
		if at < 0 && !slices.Contains(tools, words[0]) {
			t.Errorf("%s is not in the table of packages", words[0])
		}
		for _, path := range words[1:] {
			if strings.HasSuffix(path, "test") && !strings.HasSuffix(words[0], "test") && at >= 0 {
				t.Errorf("%s imports %s, which only tests may import", words[0], path)
			}
			if below := slices.Index(order, path); at >= 0 && below >= 0 && below < at {
				t.Errorf("%s imports %s, which stands above it", words[0], path)
			}
		}
	}
	out, err = exec.Command("go", "list", "-f", `{{$p := .}}{{range .GoFiles}}{{$p.ImportPath}} {{$p.Dir}}/{{.}}{{"\n"}}{{end}}`, "brine/...").Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := map[string]int{}
	for line := range strings.Lines(string(out)) {
		name, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		text, err := os.ReadFile(file)
		if err != nil && file != "" {
			t.Fatal(err)
		}
		lines[name] += strings.Count(string(text), "\n")
	}
	for _, name := range order {
		if lines[name] > 3000 {
			t.Errorf("%s has %d lines", name, lines[name])
		}
		if !strings.Contains(string(out), name+" ") {
			t.Errorf("the table lists %s, which is no package", name)
		}
	}
}
