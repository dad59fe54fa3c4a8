package run_test

import (
	"strings"
	"testing"

	"brine/cmd/brine/clitest"
)

// Rules on a CRD, and those of a file, are for all objects of the kind.
func TestReadinessOfKinds(t *testing.T) {
	s := clitest.New(t)
	crd := strings.Replace(clitest.PumpCRD, "metadata: {", "metadata: {annotations: {brine.dev/ready-when: self.spec.rate == 1}, ", 1)
	text := clitest.Documents(crd, clitest.Pump("one", "  rate: 1\n"), clitest.Pump("two", "  rate: 2\n"))
	s.Apply(text, "--wait=applied").Want(t, 0)
	status := func(exit int, flags ...string) clitest.Outcome {
		return s.Run("status", append([]string{"--inventory", s.Inventory}, flags...)).Want(t, exit)
	}
	result := status(4)
	one, two, definition := result.Object(t, "Pump", "one"), result.Object(t, "Pump", "two"), result.Object(t, "CustomResourceDefinition", "pumps."+s.NS+".example.com")
	if one.Ready != "ready" || two.Ready != "not-ready" || !strings.HasPrefix(two.Reason, "ready-when of CustomResourceDefinition pumps.") || definition.Ready != "ready" {
		t.Errorf("%+v %+v %+v", one, two, definition)
	}
	rules := s.File("Pump." + s.NS + ".example.com: self.spec.rate == 2\n")
	result = status(4, "--readiness="+rules)
	if one, two = result.Object(t, "Pump", "one"), result.Object(t, "Pump", "two"); one.Ready != "not-ready" || two.Ready != "ready" || two.Rule != "ready-when of "+rules+":1: self.spec.rate == 2" {
		t.Errorf("%+v %+v", one, two)
	}
	all := s.File("Pump." + s.NS + ".example.com: {ready-when: self.spec.rate > 0}\n")
	s.Apply(text, "--readiness="+all, "--timeout=5m").Want(t, 0)
	s.Apply(text, "--readiness="+s.File("Pump: {ready: x}\n")).Want(t, 3).Prints(t, `:1: Pump: unknown key "ready"`)

	// check says which rule will decide, status which one did. get decides by its own.
	clitest.Command(t.Context(), nil, "check", "-v", "--readiness="+all, "-f", s.File(text)).Want(t, 0).Prints(t, "ready-when of "+all+":1: self.spec.rate > 0", "rule of CustomResourceDefinition.apiextensions.k8s.io: ")
	clitest.Run(t, s.Kubeconfig, "status", "-v", "-o", "text", "--inventory", s.Inventory, "--readiness="+all).Want(t, 0).Prints(t, "RULE", "ready-when of "+all)
	clitest.Run(t, s.Kubeconfig, "get", "-o", "text", "CustomResourceDefinition", "pumps."+s.NS+".example.com", "--ready-when=self.kind == 'x'").Want(t, 0).Prints(t, "not-ready", "ready-when does not hold: self.kind == 'x'")
}
