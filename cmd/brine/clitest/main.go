package clitest

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"

	"brine/bundle/cluster/clustertest"
)

// Main runs the tests of a package, and exits: what TestMain of each
// package with end-to-end tests calls, with what it cleans up itself.
func Main(m *testing.M, cleanups ...func() error) {
	klog.SetLogger(logr.Discard())
	const own = "brine-tests-"
	if !strings.HasPrefix(filepath.Base(os.TempDir()), own) { // a test's own process has its parent's
		// Files of killed runs are proofs of death: no other package may see or remove them. Caches do not
		// belong into the home of whoever tests.
		temporary, err := os.MkdirTemp("", own)
		if err == nil {
			err = errors.Join(os.Setenv("TMPDIR", temporary), os.Setenv("BRINE_CACHE_DIR", filepath.Join(temporary, "cache")))
		}
		if err != nil {
			panic(err)
		}
		cleanups = append(cleanups, func() error { return os.RemoveAll(temporary) })
	}
	clustertest.Main(m, cleanups...)
}

// StressEnv set to 1 runs the stress tests, which take minutes.
const StressEnv = "BRINE_TEST_STRESS"
