package cli

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"brine/bundle/plan"
)

// Scenarios of cli-utils' end-to-end suite (its test/e2e, v0.37.2), each named
// after its file there: objects that are invalid or refused.

// invalidBundle has every kind of invalid object that cli-utils' test has, and
// more.
func invalidBundle() string {
	return documents(
		pod("one"),
		deployment("web", 1, "1m", dependsOn("/namespaces/{ns}/Pod/one")),
		pod("external", dependsOn("/namespaces/{ns}/Pod/nowhere")),
		pod("cycle-a", dependsOn("/namespaces/{ns}/Pod/cycle-b")),
		pod("cycle-b", dependsOn("/namespaces/{ns}/Pod/cycle-a")),
		pod("mutated", "annotations:\n    config.kubernetes.io/apply-time-mutation: |\n      - {sourceRef: {kind: Pod, name: absent}, sourcePath: $.status.podIP, targetPath: $.spec.nodeName}"),
		"apiVersion: v1\nkind: Pod\nmetadata: {namespace: \"{ns}\"}\nspec: {containers: [{name: c, image: i}]}\n",
		"apiVersion: nobody.example.com/v1\nkind: Unheard\nmetadata: {name: of, namespace: \"{ns}\"}\n",
		pod("rules", annotations(`brine.dev/ready-when: "object.status.("`)),
		pod("depends-on-invalid", dependsOn("/namespaces/{ns}/Pod/external")),
	)
}

func TestSkipInvalid(t *testing.T) {
	s := newFixture(t)
	s.apply(configMap("earlier")).want(t, 0)
	result := s.apply(invalidBundle(), "--validation=skip-invalid").want(t, 1)
	result.did(t, "Pod", "one", plan.Created)
	result.did(t, "Deployment", "web", plan.Created)
	for _, name := range []string{"external", "cycle-a", "cycle-b", "mutated", "rules", "depends-on-invalid", ""} {
		if o := result.did(t, "Pod", name, plan.Skipped); !strings.Contains(o.Reason, "invalid: ") {
			t.Errorf("the reason of %q is %q", name, o.Reason)
		}
	}
	result.did(t, "Unheard", "of", plan.Skipped)
	// Nothing is pruned, and nothing forgotten, while something is invalid.
	result.did(t, "ConfigMap", "earlier", plan.Skipped)
	s.exists("v1/configmaps", "earlier")
	s.exists("v1/pods", "one")
	s.missing("v1/pods", "external", "cycle-a", "cycle-b", "mutated", "rules")
	if got := s.members(); len(got) != 3 {
		t.Errorf("the inventory holds %v, want three", got)
	}
	// A live annotation that became invalid does not keep an object: brine
	// deletes what cli-utils would leave behind.
	if _, err := s.resources("apps/v1/deployments").Namespace(s.ns).Patch(t.Context(), "web", types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"config.kubernetes.io/depends-on":"invalid"}}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	s.destroy().want(t, 0)
	s.missing("apps/v1/deployments", "web")
}

func TestExitEarly(t *testing.T) {
	s := newFixture(t)
	p := s.proxied()
	for _, flags := range [][]string{nil, {"--validation=exit-early"}} {
		s.apply(invalidBundle(), flags...).want(t, 3)
		if w := p.Writes(); len(w) > 0 {
			t.Errorf("it wrote %v", w)
		}
	}
	s.missing("v1/pods", "one")
}

func TestContinueOnError(t *testing.T) {
	s := newFixture(t)
	// Two versions, neither of them stored: the server refuses.
	invalid := strings.Replace(widgets, "storage: true", "storage: false", 1)
	s.goneAfter("apiextensions.k8s.io/v1/customresourcedefinitions", "widgets."+s.ns+".example.com")
	result := s.apply(documents(invalid, pod("one"))).want(t, 1)
	result.did(t, "CustomResourceDefinition", "widgets."+s.ns+".example.com", plan.Failed)
	result.did(t, "Pod", "one", plan.Created)
	result.prints(t, "must have exactly one version marked as storage version")
}
