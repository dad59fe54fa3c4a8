package lock_test

import (
	"testing"

	"brine/cmd/brine/clitest"
)

func TestMain(m *testing.M) { clitest.Main(m) }
