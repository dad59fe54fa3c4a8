package write_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"brine/bundle/cluster/clustertest"
	"brine/bundle/plan"
	"brine/cmd/brine/clitest"
)

// serviceWithIP asks for an address of its own.
func serviceWithIP(name, ip string) string {
	return "apiVersion: v1\nkind: Service\nmetadata: {name: " + name + "}\nspec: {clusterIP: " + ip + ", ports: [{port: 80}]}\n"
}

// An API server that is killed may leave an address allocated that no Service has. Since
// 1.34 that is an IPAddress whose Service is gone; what is older has a record for all.
func TestAddressThatNoServiceHasIsWaitedFor(t *testing.T) {
	s := clitest.New(t)
	s.Cluster.Needs(t, 34, "IPAddresses of Services alone")
	const ip, resource = "10.0.0.201", "networking.k8s.io/v1/ipaddresses"
	s.GoneAfter(resource, ip)
	s.Create(resource, `{apiVersion: networking.k8s.io/v1, kind: IPAddress, metadata: {name: `+ip+`, labels: {ipaddress.kubernetes.io/ip-family: IPv4, ipaddress.kubernetes.io/managed-by: ipallocator.k8s.io}},
  spec: {parentRef: {resource: services, namespace: "{ns}", name: gone}}}`)
	p := s.Proxied()
	var once sync.Once
	p.Intercept(func(r clustertest.Request) clustertest.Action {
		// Who has it was asked once, so that it was refused before.
		if r.Method == http.MethodGet && r.Path == "/api/v1/services" {
			return clustertest.Action{After: func() {
				once.Do(func() { _ = s.Resources(resource).Delete(t.Context(), ip, metav1.DeleteOptions{}) })
			}}
		}
		return clustertest.Action{}
	})
	s.Apply(serviceWithIP("web", ip)).Want(t, 0).Prints(t, "no Service has it").Did(t, "Service", "web", plan.Created)
}

func TestAddressThatAnotherServiceHasIsNamed(t *testing.T) {
	s := clitest.New(t)
	const ip = "10.0.0.202"
	s.Create("v1/services", strings.Replace(serviceWithIP("other", ip), "name: other", `name: other, namespace: "{ns}"`, 1))
	p := s.Proxied()
	s.Apply(serviceWithIP("web", ip)).Want(t, 1).Prints(t, "already allocated", "Service "+s.NS+"/other has "+ip).Did(t, "Service", "web", plan.Failed)
	tries := 0
	for _, r := range p.Writes() {
		if r.Method == http.MethodPatch && strings.HasSuffix(r.Path, "/services/web") {
			tries++
		}
	}
	if tries != 1 {
		t.Errorf("it was tried %d times", tries)
	}
}
