package validate_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"brine/bundle/plan"
	"brine/bundle/report"
	"brine/cmd/brine/clitest"
)

// What breaks the CRD of its own bundle is found before the first write, with
// file and line, as check and preview find it.
func TestApplyValidatesByTheCRDOfTheBundle(t *testing.T) {
	s := clitest.New(t)
	s.GoneAfter("apiextensions.k8s.io/v1/customresourcedefinitions", "pumps."+s.NS+".example.com")
	pumps := s.NS + ".example.com/v1/pumps"
	bad := clitest.Documents(clitest.PumpCRD, clitest.Pump("good", "  limit: 9\n"), clitest.Pump("schema", "  rate: fast\n"), clitest.Pump("rule", "  rate: 9\n  limit: 3\n"), clitest.Pump("unknown", "  rte: 1\n"),
		clitest.ConfigMap("after", "annotations: {config.kubernetes.io/depends-on: \"{ns}.example.com/namespaces/{ns}/Pump/rule\"}"), clitest.ConfigMap("beside"))
	says := []string{"bundle.yaml:38: ", "spec.rate", "rate is over the limit", "bundle.yaml:55: ", "spec.rte"}

	p := s.Proxied()
	s.Apply(bad).Want(t, report.ExitBadBundle).Prints(t, says...)
	if writes := p.Writes(); len(writes) > 0 {
		t.Errorf("it wrote: %v", clitest.Describe(writes))
	}

	preview := s.Preview(bad, "--validation=skip-invalid").Want(t, report.ExitFailed).Prints(t, says...)
	client := s.Run("apply", []string{"--dry-run=client", "--validation=skip-invalid", "-f", s.File(bad)}).Want(t, report.ExitFailed).Prints(t, says...)
	applied := s.Apply(bad, "--validation=skip-invalid").Want(t, report.ExitFailed).Prints(t, says...)
	for _, name := range []string{"schema", "rule", "unknown"} {
		if o := applied.Did(t, "Pump", name, plan.Skipped); !strings.HasPrefix(o.Reason, "invalid: ") {
			t.Errorf("%s: the reason is %q", name, o.Reason)
		}
		s.Missing(pumps, name)
	}
	applied.Did(t, "ConfigMap", "after", plan.Skipped)
	applied.Did(t, "ConfigMap", "beside", plan.Created)
	applied.Did(t, "Pump", "good", plan.Created)
	s.Exists(pumps, "good")
	clitest.SameActions(t, preview, applied)
	clitest.SameActions(t, client, applied)

	// Of a CRD that is not in the bundle the server is the judge.
	s.Other("elsewhere").Apply(clitest.Pump("schema", "  rate: fast\n")).Want(t, report.ExitFailed).Did(t, "Pump", "schema", plan.Failed)
	// What was let in once, and is not touched, may stay (the server's ratcheting).
	s.Cluster.Needs(t, 30, "ratcheting of CRDs")
	stricter := strings.Replace(clitest.PumpCRD, "limit: {type: integer}", "limit: {type: integer, maximum: 5}", 1)
	touched := strings.Replace(clitest.Pump("good", "  limit: 9\n"), "metadata:\n", "metadata:\n  labels: {touched: \"yes\"}\n", 1)
	s.Apply(clitest.Documents(stricter, touched)).Want(t, 0).Did(t, "Pump", "good", plan.Configured)
	s.Apply(clitest.Documents(stricter, clitest.Pump("good", "  limit: 8\n"))).Want(t, report.ExitBadBundle).Prints(t, "spec.limit", "bundle.yaml:30: ")
}

// A webhook may put right what the CRD forbids before the server looks.
func TestApplyLeavesMutableFieldsToTheServer(t *testing.T) {
	s := clitest.New(t)
	s.GoneAfter("apiextensions.k8s.io/v1/customresourcedefinitions", "pumps."+s.NS+".example.com")
	s.GoneAfter("admissionregistration.k8s.io/v1/mutatingwebhookconfigurations", s.NS)
	hook := strings.ReplaceAll(`apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: "{ns}"}
webhooks:
- name: pumps.{ns}.example.com
  clientConfig: {url: "https://127.0.0.1:9/"}
  failurePolicy: Ignore
  timeoutSeconds: 1
  sideEffects: None
  admissionReviewVersions: [v1]
  rules:
  - {apiGroups: ["{ns}.example.com"], apiVersions: ["*"], operations: [CREATE, UPDATE], resources: [pumps]}
`, "{ns}", s.NS)
	bad := clitest.Documents(clitest.PumpCRD, clitest.Pump("schema", "  rate: fast\n"))
	s.Apply(clitest.Documents(bad, hook)).Want(t, report.ExitFailed).Did(t, "Pump", "schema", plan.Failed)
	// Also where it is on the cluster alone.
	other := s.Other("other")
	other.Apply(bad, "--inventory-policy=adopt-all").Want(t, report.ExitFailed).Did(t, "Pump", "schema", plan.Failed)
	if err := s.Resources("admissionregistration.k8s.io/v1/mutatingwebhookconfigurations").Delete(t.Context(), s.NS, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	other.Apply(bad, "--inventory-policy=adopt-all").Want(t, report.ExitBadBundle)
}
