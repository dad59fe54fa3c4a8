package run_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"brine/bundle/plan"
	"brine/cmd/brine/clitest"
)

// Scenarios of cli-utils' end-to-end suite (its test/e2e, v0.37.2:
// skip_invalid, exit_early, continue_on_error).

// invalidBundle has every kind of invalid object that cli-utils' test has, and
// more.
func invalidBundle() string {
	return clitest.Documents(
		clitest.Pod("one"),
		clitest.Deployment("web", 1, "1m", clitest.DependsOn("/namespaces/{ns}/Pod/one")),
		clitest.Pod("external", clitest.DependsOn("/namespaces/{ns}/Pod/nowhere")),
		clitest.Pod("cycle-a", clitest.DependsOn("/namespaces/{ns}/Pod/cycle-b")),
		clitest.Pod("cycle-b", clitest.DependsOn("/namespaces/{ns}/Pod/cycle-a")),
		clitest.Pod("mutated", "annotations:\n    config.kubernetes.io/apply-time-mutation: |\n      - {sourceRef: {kind: Pod, name: absent}, sourcePath: $.status.podIP, targetPath: $.spec.nodeName}"),
		"apiVersion: v1\nkind: Pod\nmetadata: {namespace: \"{ns}\"}\nspec: {containers: [{name: c, image: i}]}\n",
		"apiVersion: nobody.example.com/v1\nkind: Unheard\nmetadata: {name: of, namespace: \"{ns}\"}\n",
		clitest.Pod("rules", clitest.Annotations(`brine.dev/ready-when: "object.status.("`)),
		clitest.Pod("depends-on-invalid", clitest.DependsOn("/namespaces/{ns}/Pod/external")),
		clitest.Pod("depends-on-rules", clitest.DependsOn("/namespaces/{ns}/Pod/rules")),
	)
}

func TestSkipInvalidAppliesTheValidObjects(t *testing.T) {
	s := clitest.New(t)
	s.Apply(clitest.ConfigMap("earlier")).Want(t, 0)
	result := s.Apply(invalidBundle(), "--validation=skip-invalid").Want(t, 1)
	result.Did(t, "Pod", "one", plan.Created)
	result.Did(t, "Deployment", "web", plan.Created)
	for _, name := range []string{"external", "cycle-a", "cycle-b", "mutated", "rules", "depends-on-invalid", "depends-on-rules", ""} {
		if o := result.Did(t, "Pod", name, plan.Skipped); !strings.Contains(o.Reason, "invalid: ") {
			t.Errorf("the reason of %q is %q", name, o.Reason)
		}
	}
	result.Did(t, "Unheard", "of", plan.Skipped)
	// Nothing is pruned, and nothing forgotten, while something is invalid.
	result.Did(t, "ConfigMap", "earlier", plan.Skipped)
	s.Exists("v1/configmaps", "earlier")
	s.Exists("v1/pods", "one")
	s.Missing("v1/pods", "external", "cycle-a", "cycle-b", "mutated", "rules")
	if got := s.Members(); len(got) != 3 {
		t.Errorf("the inventory holds %v, want three", got)
	}
	// A live annotation that became invalid does not keep an object: brine
	// deletes what cli-utils would leave behind.
	if _, err := s.Resources("apps/v1/deployments").Namespace(s.NS).Patch(t.Context(), "web", types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"config.kubernetes.io/depends-on":"invalid"}}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	s.Destroy().Want(t, 0)
	s.Missing("apps/v1/deployments", "web")
}

func TestInvalidBundleIsRefusedBeforeAnyWrite(t *testing.T) {
	s := clitest.New(t)
	p := s.Proxied()
	for _, flags := range [][]string{nil, {"--validation=exit-early"}} {
		s.Apply(invalidBundle(), flags...).Want(t, 3)
		if w := p.Writes(); len(w) > 0 {
			t.Errorf("it wrote %v", w)
		}
	}
	s.Missing("v1/pods", "one")
}

func TestOtherObjectsAreAppliedAfterAFailure(t *testing.T) {
	s := clitest.New(t)
	result := s.Apply(clitest.Documents(clitest.RefusedService("refused"), clitest.Pod("one"))).Want(t, 1)
	result.Did(t, "Service", "refused", plan.Failed)
	result.Did(t, "Pod", "one", plan.Created)
	result.Prints(t, "failed to allocate IP 192.0.2.1")
}
