package clitest

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"

	"brine/bundle/cluster/clustertest"
)

// Main runs the tests of a package, and exits: what TestMain of each
// package with end-to-end tests calls, with what it cleans up itself.
func Main(m *testing.M, cleanups ...func() error) {
	klog.SetLogger(logr.Discard())
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
	}, forgetKilled)
	clustertest.Main(m, cleanups...)
}

// StressEnv set to 1 runs the stress tests, which take minutes.
const StressEnv = "BRINE_TEST_STRESS"

// forgetKilled removes the lock's files of runs that were killed before they had
// written the lock, or that no other run came after: nobody else would.
func forgetKilled() error {
	files, err := filepath.Glob(filepath.Join(os.TempDir(), "brine-run-*"))
	for _, name := range files {
		if file, err := os.Open(name); err == nil {
			if syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
				_ = os.Remove(name)
			}
			_ = file.Close()
		}
	}
	return err
}
