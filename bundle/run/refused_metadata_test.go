package run_test

import (
	"strings"
	"testing"

	"brine/bundle/plan"
	"brine/cmd/brine/clitest"
)

// What every server refuses, whatever the kind is, check, a dry run without a server and an
// apply refuse alike: nothing is written.
func TestRefusedMetadata(t *testing.T) {
	s := clitest.New(t)
	for _, wrong := range []string{"labels: {app: '{{ .Release.Name }}'}", "annotations: {a b: x}"} {
		text := clitest.Documents(clitest.ConfigMap("good"), clitest.ConfigMapOf("wrong", "{}", wrong))
		file := s.File(text)
		p := s.Proxied()
		clitest.Command(t.Context(), nil, "check", "-f", file).Want(t, 3).Prints(t, "wrong", "bundle.yaml:", "Invalid value")
		for _, command := range []string{"apply --dry-run=client", "apply", "preview"} {
			args := strings.Fields(command)
			s.Run(args[0], append(args[1:], "-f", file)).Want(t, 3).Prints(t, "wrong", "bundle.yaml:", "Invalid value")
		}
		if w := p.Writes(); len(w) > 0 {
			t.Errorf("%s: it wrote %v", wrong, clitest.Describe(w))
		}
	}
	text := clitest.Documents(clitest.ConfigMap("good"), clitest.ConfigMapOf("wrong", "{}", "labels: {app: '{{ x }}'}"))
	did := s.Apply(text, "--validation=skip-invalid").Want(t, 1)
	did.Did(t, "ConfigMap", "good", plan.Created)
	did.Did(t, "ConfigMap", "wrong", plan.Skipped)
}
