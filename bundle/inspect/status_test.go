package inspect_test

import (
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

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

// A custom resource whose controller has not come to it yet is not ready, as for an apply: until
// it has a status, or its time since the write is over.
func TestStatusOfWhatHasNoStatusYet(t *testing.T) {
	s := clitest.New(t)
	crd := strings.Replace(clitest.PumpCRD, "    storage: true\n", "    storage: true\n    subresources: {status: {}}\n", 1)
	crd = strings.Replace(crd, "          spec:\n", "          status: {type: object, x-kubernetes-preserve-unknown-fields: true}\n          spec:\n", 1)
	pump := func(name, timeout string) string {
		return strings.Replace(clitest.Pump(name, "  rate: 1\n"), "  name: "+name+"\n", "  name: "+name+"\n  annotations: {brine.dev/status-timeout: "+timeout+"}\n", 1)
	}
	s.Apply(clitest.Documents(crd, pump("one", "9m"), pump("two", "1s")), "--wait=applied").Want(t, 0)
	const reason = "has no status yet (counts as ready after 9m0s without one)"
	if o := s.Status().Want(t, 4).Object(t, "Pump", "one"); o.Ready != "not-ready" || o.Reason != reason {
		t.Errorf("it is %q: %s", o.Ready, o.Reason)
	}
	clitest.Run(t, s.Kubeconfig, "get", "Pump."+s.NS+".example.com", "one", "-n", s.NS, "-o", "json").Want(t, 0).Prints(t, reason)
	pumps := s.Resources(s.NS + ".example.com/v1/pumps").Namespace(s.NS)
	if _, err := pumps.Patch(t.Context(), "one", types.MergePatchType, []byte(`{"status":{"address":"192.0.2.1"}}`), metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	// Of a kind of which one has a status, the other one is still to have it, for its own second.
	clitest.Run(t, s.Kubeconfig, "status", "--inventory", s.Inventory, "--wait").Want(t, 0)
}
