package run_test

import (
	"strings"
	"testing"

	"brine/bundle/plan"
	"brine/bundle/report"
	"brine/cmd/brine/clitest"
)

// guarding is a policy that denies the older bundle, as that of the Gateway API does.
const guarding = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: "{ns}-upgrades"}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: ["*"], operations: [CREATE, UPDATE], resources: [configmaps]}]}
  validations: [{expression: "!has(object.data) || !('version' in object.data) || object.data.version != 'old'", message: "Uninstall the policy to install older versions"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: "{ns}-upgrades"}
spec: {policyName: "{ns}-upgrades", validationActions: [Deny], matchResources: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: "{ns}"}}}}
`

// A policy that the older bundle does not have denies it. Its refusal names the way out,
// which holds only where pruning follows.
func TestPolicyThatDeniesTheOlderBundleIsPrunedFirst(t *testing.T) {
	s := clitest.New(t)
	s.Cluster.Needs(t, 30, "ValidatingAdmissionPolicy v1")
	policies, bindings, name := "admissionregistration.k8s.io/v1/validatingadmissionpolicies", "admissionregistration.k8s.io/v1/validatingadmissionpolicybindings", s.NS+"-upgrades"
	there := func(want bool) {
		t.Helper()
		for _, kind := range []string{policies, bindings} {
			if live := s.Live(kind, "", name); (live != nil) != want {
				t.Errorf("%s is there: %v", kind, live != nil)
			}
		}
	}
	config := func(version string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: \"{ns}\"}\ndata: {version: " + version + "}\n"
	}
	newer, older := clitest.Documents(strings.ReplaceAll(guarding, "{ns}", s.NS), config("new")), config("old")
	s.Apply(newer).Want(t, 0)
	s.Everywhere("the policy denies", func() bool { return s.Preview(older).Exit == report.ExitFailed })
	way := "--prune-first=ValidatingAdmissionPolicy/" + name
	s.Preview(older).Want(t, 1).Prints(t, "Uninstall the policy", "is a member that the bundle no longer has: "+way)
	s.Apply(older).Want(t, 1).Prints(t, way).Did(t, "ConfigMap", "a", plan.Failed)
	there(true)

	seen := s.Preview(older, way).Want(t, 0)
	seen.Did(t, "ValidatingAdmissionPolicyBinding", name, plan.Pruned)
	if a := seen.Object(t, "ConfigMap", "a"); a.Action != plan.Configured || !strings.HasPrefix(a.Verified, "not verified: ValidatingAdmissionPolicy.admissionregistration.k8s.io "+name+", which is pruned first, denies it now") {
		t.Errorf("the preview says %q, verified %q", a.Action, a.Verified)
	}
	// Another object is refused: nothing is pruned, so the policy comes back.
	bad := clitest.RefusedService("web")
	uid := s.Live(policies, "", name).GetUID()
	failed := s.Apply(clitest.Documents(older, bad), way).Want(t, 1).Prints(t, "it was pruned first, and is put back")
	failed.Did(t, "ConfigMap", "a", plan.Configured)
	failed.Did(t, "ValidatingAdmissionPolicy", name, plan.Skipped)
	there(true)
	if s.Live(policies, "", name).GetUID() == uid {
		t.Error("the policy was never deleted")
	}
	if got := s.Members(); len(got) != 3 {
		t.Errorf("the inventory holds %v", got)
	}
	// So it does where the run is rolled back: to the bundle that has it.
	s.Apply(clitest.Documents(older, bad), way, "--rollback-on-failure").Want(t, report.ExitRolledBack)
	there(true)
	if version := s.Data("a")["version"]; version != "new" {
		t.Errorf("a has version %q after the rollback", version)
	}
	s.Apply(older, way, "--only=ConfigMap/a").Want(t, report.ExitBadBundle).Prints(t, "a partial run (--only) prunes nothing")
	s.Apply(older, way).Want(t, 0).Did(t, "ValidatingAdmissionPolicy", name, plan.Pruned)
	there(false)

	for word, why := range map[string]string{
		"ValidatingAdmissionPolicy/" + name: "no member of inventory", // it is gone
		"ConfigMap/b":                       "nothing else may be pruned first",
	} {
		s.Apply(clitest.Documents(older, clitest.ConfigMap("b"))).Want(t, 0)
		s.Apply(older, "--prune-first="+word).Want(t, report.ExitBadBundle).Prints(t, why)
		s.Exists("v1/configmaps", "b")
	}
}
