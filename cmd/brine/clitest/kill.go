package clitest

import (
	"os"
	"os/exec"
	"sync"

	"brine/bundle/cluster/clustertest"
)

// Killed runs a command in a process of its own, which is killed at its n-th write,
// before or after the server acts. It returns the write; false if there are fewer.
func (s *Fixture) Killed(n int, after bool, args ...string) (string, bool) {
	s.Helper()
	return s.KilledAbout(func(clustertest.Request) bool { return true }, n, after, args...)
}

// KilledAbout is Killed at the n-th of the writes that it is about.
func (s *Fixture) KilledAbout(about func(clustertest.Request) bool, n int, after bool, args ...string) (string, bool) {
	s.Helper()
	p := s.Cluster.Proxy(s.TB, clustertest.ProxyOptions{})
	var cmd *exec.Cmd
	started := make(chan struct{})
	kill := func() { <-started; _ = cmd.Process.Kill() }
	var mu sync.Mutex
	var writes []clustertest.Request
	p.Intercept(func(r clustertest.Request) clustertest.Action {
		mu.Lock()
		defer mu.Unlock()
		if r.IsWrite() && !r.DryRun && about(r) {
			writes = append(writes, r)
		}
		switch {
		case len(writes) < n:
			return clustertest.Action{}
		case after && len(writes) == n:
			return clustertest.Action{After: kill, CutAfter: true}
		}
		return clustertest.Action{Before: kill, CutBefore: true}
	})
	cmd = exec.Command(Binary(s.TB), append(args, "--kubeconfig", p.Kubeconfig)...)
	if err := cmd.Start(); err != nil {
		s.Fatal(err)
	}
	close(started)
	_ = cmd.Wait()
	p.Intercept(nil)
	mu.Lock()
	defer mu.Unlock()
	if len(writes) < n {
		return "", false
	}
	return Describe(writes[n-1 : n])[0], true
}

// Every is the step between the places of a command at which a test disturbs it: n,
// or each of them in a stress test.
func Every(n int) int {
	if os.Getenv(StressEnv) == "1" {
		return 1
	}
	return n
}
