package clitest

import (
	"strings"
	"sync"

	"brine/bundle/cluster/clustertest"
)

// Describe is a line for each request: its method and path.
func Describe(requests []clustertest.Request) []string {
	var lines []string
	for _, r := range requests {
		lines = append(lines, r.Method+" "+r.Path)
	}
	return lines
}

// Proxied puts a proxy between brine and the server.
func (s *Fixture) Proxied() *clustertest.Proxy {
	s.Helper()
	p := s.Cluster.Proxy(s.TB, clustertest.ProxyOptions{})
	s.Kubeconfig = p.Kubeconfig
	return p
}

// Before lets a second actor act once, right before the first request of a method
// for a path that ends so.
func (s *Fixture) Before(method, suffix string, act func()) *clustertest.Proxy {
	s.Helper()
	p := s.Proxied()
	var once sync.Once
	p.Intercept(func(r clustertest.Request) clustertest.Action {
		if r.Method != method || r.DryRun || !strings.HasSuffix(r.Path, suffix) {
			return clustertest.Action{}
		}
		return clustertest.Action{Before: func() { once.Do(act) }}
	})
	return p
}
