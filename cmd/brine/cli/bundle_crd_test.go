package cli

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"brine/bundle/plan"
	"brine/bundle/report"
)

// What breaks the CRD of its own bundle is found before the first write, with
// file and line, as check and preview find it.
func TestApplyValidatesByTheCRDOfTheBundle(t *testing.T) {
	s := newFixture(t)
	s.goneAfter("apiextensions.k8s.io/v1/customresourcedefinitions", "pumps."+s.ns+".example.com")
	pumps := s.ns + ".example.com/v1/pumps"
	bad := documents(pumpCRD, pump("good", "  limit: 9\n"), pump("schema", "  rate: fast\n"), pump("rule", "  rate: 9\n  limit: 3\n"), pump("unknown", "  rte: 1\n"),
		configMap("after", "annotations: {config.kubernetes.io/depends-on: \"{ns}.example.com/namespaces/{ns}/Pump/rule\"}"), configMap("beside"))
	says := []string{"bundle.yaml:38: ", "spec.rate", "rate is over the limit", "bundle.yaml:55: ", "spec.rte"}

	p := s.proxied()
	s.apply(bad).want(t, report.ExitBadBundle).prints(t, says...)
	if writes := p.Writes(); len(writes) > 0 {
		t.Errorf("it wrote: %v", describe(writes))
	}

	preview := s.preview(bad, "--validation=skip-invalid").want(t, report.ExitFailed).prints(t, says...)
	client := s.run("apply", []string{"--dry-run=client", "--validation=skip-invalid", "-f", s.file(bad)}).want(t, report.ExitFailed).prints(t, says...)
	applied := s.apply(bad, "--validation=skip-invalid").want(t, report.ExitFailed).prints(t, says...)
	for _, name := range []string{"schema", "rule", "unknown"} {
		if o := applied.did(t, "Pump", name, plan.Skipped); !strings.HasPrefix(o.Reason, "invalid: ") {
			t.Errorf("%s: the reason is %q", name, o.Reason)
		}
		s.missing(pumps, name)
	}
	applied.did(t, "ConfigMap", "after", plan.Skipped)
	applied.did(t, "ConfigMap", "beside", plan.Created)
	applied.did(t, "Pump", "good", plan.Created)
	s.exists(pumps, "good")
	same(t, preview, applied)
	same(t, client, applied)

	// Of a CRD that is not in the bundle the server is the judge.
	s.other("elsewhere").apply(pump("schema", "  rate: fast\n")).want(t, report.ExitFailed).did(t, "Pump", "schema", plan.Failed)
	// What was let in once, and is not touched, may stay (the server's ratcheting).
	stricter := strings.Replace(pumpCRD, "limit: {type: integer}", "limit: {type: integer, maximum: 5}", 1)
	touched := strings.Replace(pump("good", "  limit: 9\n"), "metadata:\n", "metadata:\n  labels: {touched: \"yes\"}\n", 1)
	s.apply(documents(stricter, touched)).want(t, 0).did(t, "Pump", "good", plan.Configured)
	s.apply(documents(stricter, pump("good", "  limit: 8\n"))).want(t, report.ExitBadBundle).prints(t, "spec.limit", "bundle.yaml:30: ")
}

// A webhook may put right what the CRD forbids before the server looks.
func TestApplyLeavesMutableFieldsToTheServer(t *testing.T) {
	s := newFixture(t)
	s.goneAfter("apiextensions.k8s.io/v1/customresourcedefinitions", "pumps."+s.ns+".example.com")
	s.goneAfter("admissionregistration.k8s.io/v1/mutatingwebhookconfigurations", s.ns)
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
`, "{ns}", s.ns)
	bad := documents(pumpCRD, pump("schema", "  rate: fast\n"))
	s.apply(documents(bad, hook)).want(t, report.ExitFailed).did(t, "Pump", "schema", plan.Failed)
	// Also where it is on the cluster alone.
	other := s.other("other")
	other.apply(bad, "--inventory-policy=adopt-all").want(t, report.ExitFailed).did(t, "Pump", "schema", plan.Failed)
	if err := s.resources("admissionregistration.k8s.io/v1/mutatingwebhookconfigurations").Delete(t.Context(), s.ns, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	other.apply(bad, "--inventory-policy=adopt-all").want(t, report.ExitBadBundle)
}
