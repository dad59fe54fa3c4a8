package main

import (
	"strings"
	"sync"
	"testing"

	"brine/bundle/cluster/clustertest"
	"brine/bundle/plan"
)

// A run that finds, when it takes the lock, that another one had it since it
// read the cluster, reads again: the last to take the lock decides what is there.
func TestAnotherRunBetweenReadingAndLocking(t *testing.T) {
	for name, before := range map[string]string{"a new inventory": "", "one that is there": configMap("a")} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			if before != "" {
				s.apply(before).want(t, 0)
			}
			direct := *s
			p := s.proxied()
			var once sync.Once
			p.Intercept(func(r clustertest.Request) clustertest.Action {
				if r.IsWrite() && strings.Contains(r.Path, "/leases") {
					once.Do(func() {
						other := documents(strings.Replace(configMap("a"), "value", "theirs", 1), configMap("b"))
						if got := direct.apply(other); got.exit != 0 {
							t.Errorf("the other run exits %d: %s", got.exit, got.stderr)
						}
					})
				}
				return clustertest.Action{}
			})
			got := s.apply(configMap("a")).want(t, 0)
			got.did(t, "ConfigMap", "a", plan.Configured)
			got.did(t, "ConfigMap", "b", plan.Pruned)
			s.missing("v1/configmaps", "b")
		})
	}
}
