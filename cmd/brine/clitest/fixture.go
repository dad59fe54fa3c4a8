// Package clitest runs brine's command line in tests, in process and against a
// real API server: the end-to-end tests of every package are external tests
// (package write_test) that import it. No other code may.
package clitest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/dynamic"

	"brine/bundle"
	"brine/bundle/cluster/clustertest"
)

// Fixture is a namespace of the test's own on the shared cluster, and an
// inventory in it.
type Fixture struct {
	testing.TB
	// Cluster is where the namespace is.
	Cluster *clustertest.Cluster
	// Kubeconfig is the cluster's, or a proxy's.
	Kubeconfig string
	// NS is the namespace, also good as a prefix of cluster-scoped names.
	NS string
	// Inventory is NAMESPACE/NAME.
	Inventory string
	// API reads and writes past brine.
	API dynamic.Interface
}

// New sets a fixture on the shared cluster; the test runs beside others.
func New(t *testing.T) *Fixture {
	t.Helper()
	t.Parallel()
	return On(t, clustertest.Shared(t))
}

// NewAlone sets a fixture on a cluster of its own, for tests of APIServices:
// while one of them is not available, no namespace of the cluster can be
// deleted.
func NewAlone(t *testing.T) *Fixture {
	t.Helper()
	return On(t, clustertest.New(t))
}

// On sets a fixture on a cluster; the test does not run beside others by itself.
func On(t *testing.T, c *clustertest.Cluster) *Fixture {
	t.Helper()
	s := &Fixture{TB: t, Cluster: c, Kubeconfig: c.Kubeconfig, NS: c.Namespace(t), API: c.Dynamic(t)}
	s.Inventory = s.NS + "/inv"
	return s
}

// Other is the same fixture with another inventory.
func (s *Fixture) Other(name string) *Fixture {
	o := *s
	o.Inventory = s.NS + "/" + name
	return &o
}

// File writes a bundle, with {ns} replaced by the fixture's namespace.
func (s *Fixture) File(text string) string {
	s.Helper()
	path := filepath.Join(s.TempDir(), "bundle.yaml")
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, "{ns}", s.NS)), 0o600); err != nil {
		s.Fatal(err)
	}
	return path
}

// Apply runs brine apply on the fixture's inventory, for a minute at most unless
// the flags say another time.
func (s *Fixture) Apply(text string, flags ...string) Outcome {
	s.Helper()
	return s.Run("apply", append([]string{"-f", s.File(text)}, flags...))
}

// Preview runs brine preview, as Apply does.
func (s *Fixture) Preview(text string, flags ...string) Outcome {
	s.Helper()
	return s.Run("preview", append([]string{"-f", s.File(text)}, flags...))
}

// Destroy runs brine destroy, as Apply does.
func (s *Fixture) Destroy(flags ...string) Outcome {
	s.Helper()
	return s.Run("destroy", flags)
}

// Run runs a command on the fixture's inventory.
func (s *Fixture) Run(command string, flags []string) Outcome {
	s.Helper()
	args := append([]string{command, "--inventory", s.Inventory, "--timeout=60s", "--namespace", s.NS}, flags...)
	return Run(s.TB, s.Kubeconfig, args...)
}

// Status reads the inventory.
func (s *Fixture) Status() Outcome {
	s.Helper()
	return Run(s.TB, s.Kubeconfig, "status", "--inventory", s.Inventory)
}

// Members are what the inventory holds, as messages name them, sorted.
func (s *Fixture) Members() []string {
	s.Helper()
	var names []string
	st := s.Status()
	if st.Result == nil {
		return nil
	}
	for _, o := range st.Result.Objects {
		names = append(names, bundle.Name(o.ID()))
	}
	slices.Sort(names)
	return names
}

// Eventually waits, for as long as a slow machine may take.
func (s *Fixture) Eventually(what string, ok func() bool) {
	s.Helper()
	clustertest.Eventually(s, what, ok)
}

// Everywhere waits until it is so on each API server.
func (s *Fixture) Everywhere(what string, ok func() bool) {
	s.Helper()
	clustertest.Everywhere(s, what, ok)
}

// Holds fails the test unless the inventory holds just these ConfigMaps and
// Deployments, named "Kind name".
func (s *Fixture) Holds(want ...string) {
	s.Helper()
	var got []string
	for _, m := range s.Members() {
		kind, name, _ := strings.Cut(m, " "+s.NS+"/")
		got = append(got, kind+" "+name)
	}
	if !slices.Equal(got, want) {
		s.Errorf("the inventory holds %q, want %q", got, want)
	}
}

// Rollback runs brine rollback, as Apply does.
func (s *Fixture) Rollback(flags ...string) Outcome {
	s.Helper()
	return s.Run("rollback", flags)
}
