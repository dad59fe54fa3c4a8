package cluster_test

import (
	"testing"

	"brine/bundle/cluster"
	"brine/bundle/cluster/clustertest"
)

func TestLogsAreReadWithALimit(t *testing.T) {
	c := clustertest.Shared(t)
	p := c.Proxy(t, clustertest.ProxyOptions{})
	client, err := cluster.New(p.Config(t), cluster.Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, _ = client.Logs(t.Context(), c.Namespace(t), "none", "c", false, 10) // there is no such pod
	if requests := p.Requests(); len(requests) != 1 || requests[0].Query.Get("limitBytes") != "65536" {
		t.Errorf("it asked for %v", requests)
	}
}
