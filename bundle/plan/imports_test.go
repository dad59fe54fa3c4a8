package plan

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// Deciding does no I/O: no package of brine's that plan is made of may open a
// socket. net/http is linked nevertheless: apimachinery's runtime and meta/v1
// import it for its status codes. So is client-go, by cli-utils' package object,
// whose loader of kubectl's files brine does not call. No line of brine's here
// can call either.
func TestImports(t *testing.T) {
	ours := []string{"brine/bundle", "brine/bundle/diff", "brine/bundle/fields", "brine/bundle/order", "brine/bundle/redact", "brine/bundle/remedy", "brine/bundle/takeover", "brine/inventory", "brine/bundle/plan"}
	theirs := []string{
		"k8s.io/apimachinery", "sigs.k8s.io/structured-merge-diff", "sigs.k8s.io/kustomize/kyaml", "sigs.k8s.io/cli-utils/pkg/object", "k8s.io/client-go/util/csaupgrade", "sigs.k8s.io/yaml",
		"github.com/klauspost/compress", "github.com/aymanbagabas/go-udiff", "golang.org/x/sync",
	}
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
			t.Errorf("bundle/plan imports %s, which is not in the list of what it may import", words[0])
		}
		for _, path := range words[1:] {
			host, _, _ := strings.Cut(path, "/")
			outside := strings.Contains(host, ".")
			if path == "net" || path == "net/http" || path == "os/exec" ||
				outside && !slices.ContainsFunc(theirs, func(allowed string) bool { return path == allowed || strings.HasPrefix(path, allowed+"/") }) {
				t.Errorf("bundle/plan is made of %s, which imports %s: that is not in the list of what they may import", words[0], path)
			}
		}
	}
}
