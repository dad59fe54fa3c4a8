package cluster_test

import (
	"strings"
	"testing"
	"time"

	"brine/bundle/cluster"
	"brine/bundle/cluster/clustertest"
)

// The two requests of discovery do not wait for each other.
func TestDiscoveryAsksForBothAtOnce(t *testing.T) {
	c := clustertest.Shared(t)
	p := c.Proxy(t, clustertest.ProxyOptions{})
	second := make(chan struct{})
	p.Intercept(func(r clustertest.Request) clustertest.Action {
		switch {
		case strings.HasSuffix(r.Path, "/apis"):
			close(second)
		case strings.HasSuffix(r.Path, "/api"):
			select {
			case <-second:
			case <-time.After(time.Minute):
				t.Error("/apis was not asked for before /api had its answer")
			}
		}
		return clustertest.Action{}
	})
	client, err := cluster.New(p.Config(t), cluster.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Discover(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := len(p.Requests()); n != 2 {
		t.Errorf("%d requests, want 2", n)
	}
	p.Intercept(nil)
	if err := client.Discover(t.Context()); err != nil { // has requests of its own
		t.Fatal(err)
	}
	if n := len(p.Requests()); n != 4 {
		t.Errorf("%d requests, want 4", n)
	}
}
