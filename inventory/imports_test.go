package inventory_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// An inventory's data does no I/O: that is package inventory/store's. What is
// linked nevertheless, package plan's test of the same name explains.
func TestImports(t *testing.T) {
	ours := []string{"brine/bundle", "brine/bundle/remedy", "brine/inventory"}
	theirs := []string{"k8s.io/apimachinery", "sigs.k8s.io/cli-utils/pkg/object", "github.com/klauspost/compress", "golang.org/x/sync"}
	out, err := exec.Command("go", "list", "-deps", "-f", `{{with .Module}}{{if eq .Path "brine"}}{{$.ImportPath}} {{join $.Imports " "}}{{end}}{{end}}`, ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if !slices.Contains(ours, words[0]) {
			t.Errorf("inventory imports %s, which is not in the list of what it may import", words[0])
		}
		for _, path := range words[1:] {
			host, _, _ := strings.Cut(path, "/")
			outside := strings.Contains(host, ".")
			if path == "net" || path == "net/http" || path == "os/exec" ||
				outside && !slices.ContainsFunc(theirs, func(allowed string) bool { return path == allowed || strings.HasPrefix(path, allowed+"/") }) {
				t.Errorf("inventory is made of %s, which imports %s: that is not in the list of what they may import", words[0], path)
			}
		}
	}
}
