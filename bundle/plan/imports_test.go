package plan

import (
	"testing"

	"brine/bundle/bundletest"
)

// Deciding does no I/O.
func TestImports(t *testing.T) {
	ours := []string{"brine/bundle", "brine/bundle/diff", "brine/bundle/fields", "brine/bundle/order", "brine/bundle/redact", "brine/bundle/remedy", "brine/bundle/takeover", "brine/inventory", "brine/bundle/plan"}
	theirs := []string{
		"k8s.io/apimachinery", "sigs.k8s.io/structured-merge-diff", "sigs.k8s.io/kustomize/kyaml", "sigs.k8s.io/cli-utils/pkg/object", "sigs.k8s.io/cli-utils/pkg/jsonpath", "k8s.io/client-go/util/csaupgrade", "sigs.k8s.io/yaml",
		"github.com/klauspost/compress", "github.com/aymanbagabas/go-udiff", "golang.org/x/sync",
	}
	bundletest.Imports(t, ours, theirs)
}
