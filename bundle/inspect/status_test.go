package inspect_test

import (
	"strings"
	"sync/atomic"
	"testing"

	"brine/bundle/cluster/clustertest"
	"brine/cmd/brine/clitest"
)

// status --wait ends when everything is ready, when nothing is left to wait for,
// and with the time.
func TestStatusWaits(t *testing.T) {
	s := clitest.New(t)
	slow := clitest.ConfigMap("slow", clitest.Annotations(`brine.dev/ready-when: self.data.key == 'done'`))
	s.Apply(clitest.Documents(slow, clitest.ConfigMap("other")), "--wait=applied").Want(t, 0)
	s.Status().Want(t, 4)
	wait := func(timeout string) clitest.Outcome {
		return clitest.Run(t, s.Kubeconfig, "status", "--inventory", s.Inventory, "--wait", "--timeout="+timeout)
	}
	if o := wait("8s").Want(t, 4).Object(t, "ConfigMap", "slow"); o.Ready != "not-ready" {
		t.Errorf("it is %q", o.Ready)
	}
	p := s.Proxied()
	var reads atomic.Int32
	p.Intercept(func(r clustertest.Request) clustertest.Action {
		if strings.HasSuffix(r.Path, "/configmaps") && r.Query.Get("labelSelector") != "" && reads.Add(1) == 4 {
			return clustertest.Action{Before: func() { s.Merge("v1/configmaps", s.NS, "slow", `{"data":{"key":"done"}}`) }}
		}
		return clustertest.Action{}
	})
	if result := wait("10m").Want(t, 0).Result; result.Summary.Ready != 2 || result.Command != "status" {
		t.Errorf("the summary is %+v", result.Summary)
	}
	if w := p.Writes(); len(w) > 0 {
		t.Errorf("it wrote %v", clitest.Describe(w))
	}
	// Nothing is left to wait for.
	s.DeleteConfigMap("other")
	if o := wait("10m").Want(t, 4).Object(t, "ConfigMap", "other"); o.Ready != "gone" {
		t.Errorf("it is %q", o.Ready)
	}
	// Nobody waits for an object that says so.
	s = s.Other("skips")
	s.Apply(clitest.ConfigMap("never", clitest.Annotations("brine.dev/ready-when: 'false'", "brine.dev/wait: skip"))).Want(t, 0)
	if o := wait("10m").Want(t, 0).Object(t, "ConfigMap", "never"); o.Ready != "" || !strings.HasPrefix(o.Reason, "not waited for: ") {
		t.Errorf("it is %q: %s", o.Ready, o.Reason)
	}
}
