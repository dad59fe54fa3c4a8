package preview_test

import (
	"reflect"
	"strings"
	"testing"

	"brine/bundle/plan"
	"brine/cmd/brine/clitest"
)

// mutated is the annotation of an apply-time mutation that takes the value of
// key a in ConfigMap source.
func mutated(target string) string {
	return `config.kubernetes.io/apply-time-mutation: "[{sourceRef: {kind: ConfigMap, name: source}, sourcePath: $.data.a, targetPath: ` + target + `}]"`
}

// A preview shows what an apply sends: with the values of apply-time mutations,
// whichever way it asks.
func TestPreviewMutatesAsApplyDoes(t *testing.T) {
	source := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: source, namespace: \"{ns}\"}\ndata: {a: \"7\"}\n"
	target := "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: target\n  namespace: \"{ns}\"\n  annotations:\n    " + mutated("$.data.a") + "\ndata: {a: unset, b: \"2\"}\n"

	t.Run("with a take-over", func(t *testing.T) {
		s := clitest.New(t)
		text := clitest.Documents(source, target)
		s.Apply(text).Want(t, 0)
		s.PatchAs("kubectl-patch", "v1/configmaps", "target", `{"data":{"a":"8","c":"3"}}`)
		flags := []string{"--take-over-from=kubectl-patch", "--verify=full"}
		shown := s.Preview(text, flags...).Want(t, 0).Did(t, "ConfigMap", "target", plan.Configured)
		did := s.Apply(text, flags...).Want(t, 0).Did(t, "ConfigMap", "target", plan.Configured)
		if !reflect.DeepEqual(shown.Changes, did.Changes) {
			t.Errorf("the preview shows %v, the apply did %v", shown.Changes, did.Changes)
		}
		if live := s.ConfigMap("target").Object["data"]; !reflect.DeepEqual(live, map[string]any{"a": "7", "b": "2"}) {
			t.Errorf("its data is %v", live)
		}
	})

	t.Run("by the bundle's CRD", func(t *testing.T) {
		s := clitest.New(t)
		s.Apply(source).Want(t, 0)
		group := s.NS + ".example.com"
		crd := `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gauges.` + group + `}
spec:
  group: ` + group + `
  scope: Namespaced
  names: {plural: gauges, singular: gauge, kind: Gauge, listKind: GaugeList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: string, pattern: "^[0-9]+$"}}}}}}
`
		gauge := "apiVersion: " + group + "/v1\nkind: Gauge\nmetadata:\n  name: g\n  namespace: \"{ns}\"\n  annotations:\n    " + mutated("$.spec.size") + "\nspec: {size: unset}\n"
		text := clitest.Documents(source, crd, gauge)
		shown := s.Preview(text).Want(t, 0).Did(t, "Gauge", "g", plan.Created)
		if shown.Verified != "bundle CRD" || !strings.Contains(shown.Diff, `size: "7"`) {
			t.Errorf("verified by %q:\n%s", shown.Verified, shown.Diff)
		}
		s.Apply(text).Want(t, 0).Did(t, "Gauge", "g", plan.Created)
		s.Destroy().Want(t, 0)
	})

	t.Run("of a Pod whose ServiceAccount is new", func(t *testing.T) {
		s := clitest.New(t)
		s.Apply(source).Want(t, 0)
		text := clitest.Documents(source, "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: runner, namespace: \"{ns}\"}\n",
			clitest.PodWith("p", "serviceAccountName: runner\n  hostname: unset", "annotations:\n    "+mutated("$.spec.hostname")))
		shown := s.Preview(text).Want(t, 0).Did(t, "Pod", "p", plan.Created)
		if shown.Verified != "server (surrogate service account)" || !strings.Contains(shown.Diff, `hostname: "7"`) || !strings.Contains(shown.Diff, "serviceAccountName: runner") {
			t.Errorf("verified by %q:\n%s", shown.Verified, shown.Diff)
		}
		s.Apply(text).Want(t, 0).Did(t, "Pod", "p", plan.Created)
	})
}

// An object without a name of its own is created again in each run, which a
// preview shows.
func TestPreviewOfGeneratedNames(t *testing.T) {
	s := clitest.New(t)
	text := "apiVersion: v1\nkind: ConfigMap\nmetadata: {generateName: run-, namespace: \"{ns}\"}\ndata: {a: \"1\"}\n"
	for range 2 {
		shown := s.Preview(text, "--allow-generate-name").Want(t, 0).Did(t, "ConfigMap", "", plan.Created)
		if shown.Verified != "server" || !strings.Contains(shown.Diff, `a: "1"`) {
			t.Errorf("verified by %q:\n%s", shown.Verified, shown.Diff)
		}
		s.Apply(text, "--allow-generate-name").Want(t, 0).Did(t, "ConfigMap", "", plan.Created)
	}
}
