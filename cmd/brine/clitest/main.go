package clitest

import (
	"os"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"

	"brine/bundle/cluster/clustertest"
)

// Main runs the tests of a package, and exits: what TestMain of each
// package with end-to-end tests calls.
func Main(m *testing.M) {
	klog.SetLogger(logr.Discard())
	var cleanups []func() error
	const cacheEnv = "BRINE_CACHE_DIR" // not in the home of whoever tests
	if os.Getenv(cacheEnv) == "" {     // a test's own process has its parent's
		cache, err := os.MkdirTemp("", "brine-test-cache-*")
		if err == nil {
			err = os.Setenv(cacheEnv, cache)
		}
		if err != nil {
			panic(err)
		}
		cleanups = append(cleanups, func() error { return os.RemoveAll(cache) })
	}
	cleanups = append(cleanups, func() error {
		if builtIn == "" {
			return nil
		}
		return os.RemoveAll(builtIn)
	})
	clustertest.Main(m, cleanups...)
}

// StressEnv set to 1 runs the stress tests, which take minutes.
const StressEnv = "BRINE_TEST_STRESS"
