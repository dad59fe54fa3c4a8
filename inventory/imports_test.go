package inventory_test

import (
	"testing"

	"brine/bundle/bundletest"
)

// An inventory's data does no I/O: that is package inventory/store's.
func TestImports(t *testing.T) {
	ours := []string{"brine/bundle", "brine/bundle/remedy", "brine/inventory"}
	theirs := []string{"k8s.io/apimachinery", "sigs.k8s.io/cli-utils/pkg/object", "github.com/klauspost/compress", "golang.org/x/sync"}
	bundletest.Imports(t, ours, theirs)
}
