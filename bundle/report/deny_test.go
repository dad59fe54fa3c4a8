package report

import (
	"os"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/bundle/bundletest"
	"brine/bundle/plan"
	"brine/bundle/redact"
	"brine/bundle/review"
)

func result(kind, namespace string, action plan.Action) *ObjectResult {
	return &ObjectResult{Kind: kind, Namespace: namespace, Name: "a", Action: action, Needs: []Need{}}
}

// Each rule of the README finds what it is about, and nothing else.
func TestDenyRulesOfTheReadme(t *testing.T) {
	_, text, _ := strings.Cut(bundle.Readme(), "<!-- deny rules -->\n```yaml\n")
	text, _, _ = strings.Cut(text, "```")
	deny, err := ReadDeny("README.md", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	many := slices.Repeat([]*ObjectResult{result("ConfigMap", "shop", plan.Pruned)}, 11)
	restarts := []review.Risk{}
	for range 4 {
		restarts = append(restarts, review.Risk{Type: review.Restart, Objects: []bundle.Reference{{Group: "apps", Kind: "Deployment", Name: "a"}}})
	}
	const pod = "spec: {template: {spec: {containers: [{name: a, image: 'x@sha256:00'"
	for name, test := range map[string]struct {
		objects []*ObjectResult
		risks   []review.Risk
		content string // of the first object
		says    string
	}{
		"no claim of the inventory is deleted":       {objects: []*ObjectResult{result("PersistentVolumeClaim", "shop", plan.Pruned)}, says: ": PersistentVolumeClaim shop/a"},
		"no namespace or CRD is deleted":             {objects: []*ObjectResult{result("Namespace", "", plan.Pruned)}, says: ": Namespace a"},
		"no data is lost":                            {risks: []review.Risk{{Type: review.Data, Objects: []bundle.Reference{{Kind: "PersistentVolume", Name: "v"}}}}, says: ": PersistentVolume v"},
		"no StatefulSet is recreated":                {objects: []*ObjectResult{result("StatefulSet", "shop", plan.Recreated)}, says: ": StatefulSet shop/a"},
		"no new binding to cluster-admin":            {objects: []*ObjectResult{result("ClusterRoleBinding", "", plan.Created)}, content: "roleRef: {name: cluster-admin}", says: ": ClusterRoleBinding a"},
		"at most 3 workloads restart":                {risks: restarts, says: ": Deployment.apps a, "},
		"at most 10 objects are pruned":              {objects: many},
		"no pod template has an image by tag":        {objects: []*ObjectResult{result("DaemonSet", "shop", plan.Unchanged)}, content: "spec: {template: {spec: {containers: [{image: x:1}]}}}", says: ": DaemonSet shop/a"},
		"no pod template has a privileged container": {objects: []*ObjectResult{result("DaemonSet", "shop", plan.Unchanged)}, content: pod + ", securityContext: {privileged: true}}]}}}", says: ": DaemonSet shop/a"},
		"no new load balancer":                       {objects: []*ObjectResult{result("Service", "shop", plan.Created)}, content: "spec: {type: LoadBalancer}", says: ": Service shop/a"},
		"nothing in kube-system":                     {objects: []*ObjectResult{result("ConfigMap", "kube-system", plan.Configured)}, says: ": ConfigMap kube-system/a"},
	} {
		p := &plan.Plan{}
		for range test.objects {
			p.Steps = append(p.Steps, &plan.Step{})
		}
		if test.content != "" {
			p.Steps[0].Object = &bundle.Object{Content: bundletest.Object(t, test.content)}
		}
		found, err := deny.Problems(&Result{Review: &review.Review{Risks: append([]review.Risk{}, test.risks...)}}, p, test.objects)
		if err != nil || len(found) != 1 || !strings.HasPrefix(found[0].Message, `denied by rule "`+name+`"`+test.says) {
			t.Errorf("%s: %v %v", name, found, err)
		}
	}
	if len(deny) != 11 {
		t.Errorf("%d rules", len(deny))
	}
	cases, err := os.ReadFile("../run/testdata/deny.yaml") // of the tests that need a cluster
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.Lines(text) {
		name, _, _ = strings.Cut(name, ":")
		if !strings.Contains(string(cases), "\n- rule: "+name+"\n") {
			t.Errorf("testdata/deny.yaml has no case of %q", name)
		}
	}
	if found, err := deny.Problems(&Result{Review: &review.Review{Risks: []review.Risk{}}}, &plan.Plan{Steps: []*plan.Step{{}}}, []*ObjectResult{result("ConfigMap", "shop", plan.Created)}); err != nil || len(found) > 0 {
		t.Errorf("%v %v", found, err)
	}
}

// Values of Secrets are no part of what rules see.
func TestDenySeesNoSecret(t *testing.T) {
	deny, err := ReadDeny("r.yaml", []byte("x: self.objects.map(o, o.object.data.password)\ny: self.objects.map(o, o.live.metadata.name)\nz: self.objects.map(o, string(size(o.live.metadata.annotations)))"))
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{Object: map[string]any{"kind": "Secret", "metadata": map[string]any{"name": "s", "annotations": map[string]any{redact.LastApplied: "aHVudGVy"}}, "data": map[string]any{"password": "aHVudGVy"}}}
	found, err := deny.Problems(&Result{}, &plan.Plan{Steps: []*plan.Step{{Object: &bundle.Object{Content: u}, Live: u}}}, []*ObjectResult{result("Secret", "shop", plan.Created)})
	if err != nil || len(found) != 3 || found[0].Message != `denied by rule "x", because it cannot be evaluated: no such key: data` || found[1].Message != `denied by rule "y": s` || found[2].Message != `denied by rule "z": 0` {
		t.Errorf("%v %v", found, err)
	}
}
