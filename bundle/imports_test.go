package bundle

import (
	"go/build"
	"strings"
	"testing"
)

// Whoever needs bundle.ID does not link Salt, a YAML parser or a client.
func TestImportsNoOtherPackageOfBrine(t *testing.T) {
	p, err := build.ImportDir(".", 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range p.Imports {
		for _, prefix := range []string{"brine/", "sigs.k8s.io/kustomize/", "k8s.io/client-go/"} {
			if strings.HasPrefix(path, prefix) {
				t.Errorf("bundle imports %s", path)
			}
		}
	}
}
