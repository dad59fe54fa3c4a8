package write_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"brine/bundle/cluster/clustertest"
	"brine/bundle/plan"
	"brine/cmd/brine/clitest"
)

const ownPolicy = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: "{ns}-own"}
spec: {matchConstraints: {resourceRules: [{apiGroups: [example.com], apiVersions: ["*"], operations: [CREATE], resources: [none]}]}, validations: [{expression: "true"}]}
`

// A denial is sent again only where this run changed the policy that it names; where the
// time runs out meanwhile, the denial is what is told.
func TestOnlyADenialByWhatThisRunChangedIsSentAgain(t *testing.T) {
	s := clitest.New(t)
	s.Cluster.Needs(t, 30, "ValidatingAdmissionPolicy v1")
	proxy := s.Proxied()
	var patches atomic.Int32
	deny := func(policy string) {
		patches.Store(0)
		proxy.Intercept(func(r clustertest.Request) clustertest.Action {
			if r.Method == http.MethodPatch && strings.HasSuffix(r.Path, "/configmaps/a") && !r.DryRun {
				patches.Add(1)
				return clustertest.Action{Status: http.StatusUnprocessableEntity, Message: "configmaps \"a\" is forbidden: ValidatingAdmissionPolicy '" + policy + "' with binding 'b' denied request: not tonight"}
			}
			return clustertest.Action{}
		})
	}
	objects := clitest.Documents(strings.ReplaceAll(ownPolicy, "{ns}", s.NS), clitest.ConfigMap("a", clitest.DependsOn("admissionregistration.k8s.io/ValidatingAdmissionPolicy/"+s.NS+"-own")))
	deny("another")
	s.Apply(objects).Want(t, 1).Prints(t, "not tonight").Did(t, "ConfigMap", "a", plan.Failed)
	if n := patches.Load(); n != 1 {
		t.Errorf("a denial by a policy of others was sent %d times", n)
	}
	deny(s.NS + "-own")
	out := s.Apply(strings.Replace(objects, `"true"`, `"true == true"`, 1), "--timeout=10s").Want(t, 1).Prints(t, "not tonight")
	if strings.Contains(out.Stdout+out.Stderr, "context canceled") {
		t.Error(out.Stdout, out.Stderr)
	}
	if n := patches.Load(); n < 2 {
		t.Errorf("a denial by the run's own policy was sent %d times", n)
	}
}
