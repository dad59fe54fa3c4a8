package clitest

import (
	"errors"
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
	cache, err := os.MkdirTemp("", "brine-test-cache-*") // and not in the home of whoever tests
	if err == nil {
		err = os.Setenv("BRINE_CACHE_DIR", cache)
	}
	if err != nil {
		panic(err)
	}
	clustertest.Main(m, func() error {
		err := os.RemoveAll(cache)
		if builtIn != "" {
			err = errors.Join(err, os.RemoveAll(builtIn))
		}
		return err
	})
}

// StressEnv set to 1 runs the stress tests, which take minutes.
const StressEnv = "BRINE_TEST_STRESS"
