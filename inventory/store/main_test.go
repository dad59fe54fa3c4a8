package store_test

import (
	"os"
	"testing"

	"brine/cmd/brine/clitest"
)

func TestMain(m *testing.M) {
	clitest.Main(m, func() error { return os.RemoveAll(olderIn) }) // of "" there is nothing to remove
}
