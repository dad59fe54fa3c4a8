package run_test

import (
	"strings"
	"testing"

	"brine/bundle/plan"
	"brine/cmd/brine/clitest"
)

func TestClientDryRunNeedsNoCluster(t *testing.T) {
	good := clitest.Documents(clitest.PumpCRD, clitest.Pump("p", "  limit: 9\n"), clitest.ConfigMap("a"), clitest.Deployment("web", 1, "1m"),
		"apiVersion: unknown.example.com/v1\nkind: Thing\nmetadata: {name: t, namespace: {ns}}\n")
	s := clitest.Offline(t, "apply", "--dry-run=client", "-f", clitest.BundleFile(t, good), "-o", "json").Want(t, 0)
	if s.Result.DryRun != "client" || s.Result.Summary.Created != 5 || len(s.Result.Summary.Requests) != 0 {
		t.Errorf("%+v", s.Result)
	}
	for kind, verified := range map[string]string{"Pump": "bundle CRD", "ConfigMap": "Kubernetes 1.37 (without a server)", "Thing": "not verified: its kind is not known without a server"} {
		for _, o := range s.Result.Objects {
			if o.Kind == kind && (o.Verified != verified || o.Action != plan.Created) {
				t.Errorf("%s is %s, verified by %q", kind, o.Action, o.Verified)
			}
		}
	}
	if d := s.Object(t, "Pump", "p").Diff; !strings.Contains(d, "rate: 7") {
		t.Errorf("the CRD's default is not there:\n%s", d)
	}
	if len(s.Object(t, "Pump", "p").Needs) == 0 {
		t.Error("the order is not told")
	}
	clitest.Offline(t, "apply", "--dry-run=client", "-f", clitest.BundleFile(t, good), "-o", "json", "--detailed-exitcode").Want(t, 2)

	bad := clitest.Documents(clitest.PumpCRD, clitest.Pump("p", "  rate: 9\n  limit: 3\n"), clitest.ConfigMap("a"), strings.Replace(clitest.Deployment("web", 1, "1m"), "replicas: 1", "replcas: one", 1))
	s = clitest.Offline(t, "apply", "--dry-run=client", "-f", clitest.BundleFile(t, bad), "-o", "json").Want(t, 3)
	s.Did(t, "Pump", "p", plan.Failed)
	s.Did(t, "Deployment", "web", plan.Failed)
	s.Did(t, "ConfigMap", "a", plan.Created)
	s.Prints(t, "rate is over the limit", "replcas", "bundle.yaml:")
	clitest.Offline(t, "check", "-f", clitest.BundleFile(t, bad)).Want(t, 3).Prints(t, "rate is over the limit", "replcas", "bundle.yaml:")
	clitest.Offline(t, "check", "-f", clitest.BundleFile(t, good)).Want(t, 0).Prints(t, "warning: ", "unknown.example.com")

	old := clitest.BundleFile(t, "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: a, namespace: {ns}}\nspec: {minAvailable: 1}\n")
	clitest.Offline(t, "check", "-f", old).Want(t, 0)
	clitest.Offline(t, "check", "-f", old, "--kubernetes-version=1.20").Want(t, 3).Prints(t, "policy/v1")
	clitest.Offline(t, "apply", "--dry-run=client", "-o", "json", "-f", old, "--kubernetes-version=1.20").Want(t, 3).Prints(t, "policy/v1")
	clitest.Offline(t, "check", "-f", old, "--kubernetes-version=9.9").Want(t, 3).Prints(t, "use 1.")
	clitest.Offline(t, "destroy", "--dry-run=client", "--inventory", "a/b", "-o", "json").Want(t, 3).Prints(t, "--dry-run=server")
}

func TestRealBundlesWithoutACluster(t *testing.T) {
	for _, name := range []string{"metalk8s-old", "metalk8s-new", "unready"} {
		s := clitest.Offline(t, "apply", "--dry-run=client", "-f", clitest.RealBundle(t, name), "-o", "json").Want(t, 0)
		if s.Result.Summary.Failed != 0 || s.Result.Summary.Created == 0 {
			t.Errorf("%s: %+v", name, s.Result.Summary)
		}
	}
}
