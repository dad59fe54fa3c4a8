package saved

import (
	"testing"

	"brine/bundle/bundletest"
)

// Deciding (bundle/plan) does no I/O, nor does comparing what was decided.
func TestImports(t *testing.T) {
	ours := []string{"brine/bundle", "brine/bundle/diff", "brine/bundle/fields", "brine/bundle/order", "brine/bundle/redact", "brine/bundle/remedy", "brine/bundle/takeover", "brine/inventory", "brine/bundle/plan", "brine/bundle/plan/saved"}
	theirs := []string{
		"k8s.io/apimachinery", "sigs.k8s.io/structured-merge-diff", "sigs.k8s.io/kustomize/kyaml", "sigs.k8s.io/cli-utils/pkg/object", "sigs.k8s.io/cli-utils/pkg/jsonpath", "k8s.io/client-go/util/csaupgrade", "sigs.k8s.io/yaml",
		"github.com/klauspost/compress", "github.com/aymanbagabas/go-udiff", "golang.org/x/sync",
	}
	bundletest.Imports(t, ours, theirs)
}
