package run_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"brine/bundle/cluster/clustertest"
	"brine/bundle/plan"
	"brine/cmd/brine/clitest"
)

func TestSavedPlanIsRefusedAfterDrift(t *testing.T) {
	secret := "apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: {ns}}\nstringData: {password: first-hidden}\n"
	first := clitest.Documents(clitest.ConfigMap("a"), clitest.ConfigMap("gone"), clitest.Deployment("web", 1, "1m"), secret)
	then := clitest.Documents(strings.Replace(clitest.ConfigMap("a"), "key: value", "key: new", 1), clitest.ConfigMap("b"),
		strings.Replace(clitest.Deployment("web", 1, "1m"), "replicas: 1", "replicas: 2", 1), strings.Replace(secret, "first-hidden", "other-hidden", 1))
	patch := func(s *clitest.Fixture, resource, name, body string, sub ...string) {
		s.Helper()
		if _, err := s.Resources(resource).Namespace(s.NS).Patch(s.Context(), name, types.MergePatchType, []byte(body), metav1.PatchOptions{FieldManager: "kubectl-edit"}, sub...); err != nil {
			s.Fatal(err)
		}
	}
	for _, test := range []struct {
		name  string
		live  func(*clitest.Fixture)
		then  string // another bundle than the plan's
		flags []string
		moved string // "": the plan holds
	}{
		{name: "nothing moved"},
		{name: "only a status moved", live: func(s *clitest.Fixture) {
			patch(s, "apps/v1/deployments", "web", `{"status":{"observedGeneration":1,"replicas":1,"conditions":[{"type":"Seen","status":"True"}]}}`, "status")
		}},
		{name: "a field that is not ours moved", live: func(s *clitest.Fixture) { patch(s, "v1/configmaps", "a", `{"metadata":{"annotations":{"seen":"x"}}}`) }},
		{name: "our field moved", flags: []string{"--force-conflicts"}, moved: "/a: would change in another way than the plan says: data.key",
			live: func(s *clitest.Fixture) { patch(s, "v1/configmaps", "a", `{"data":{"key":"other"}}`) }},
		{name: "a secret moved", moved: "/s: has changed since", live: func(s *clitest.Fixture) { patch(s, "v1/secrets", "s", `{"data":{"more":"aGk="}}`) }},
		{name: "what was to be created is there", moved: "/b: did not exist, and exists now",
			live: func(s *clitest.Fixture) {
				s.Create("v1/configmaps", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b, namespace: {ns}}\n")
			}},
		{name: "another object of the name", moved: "/a: was deleted and recreated since", live: func(s *clitest.Fixture) {
			if err := s.Resources("v1/configmaps").Namespace(s.NS).Delete(s.Context(), "a", metav1.DeleteOptions{}); err != nil {
				s.Fatal(err)
			}
			s.Create("v1/configmaps", clitest.ConfigMap("a", "annotations: {config.k8s.io/owning-inventory: x}"))
		}, flags: []string{"--inventory-policy=adopt-all", "--force-conflicts"}},
		{name: "another bundle", then: clitest.ConfigMap("a"), moved: "the bundle: the plan was made from hmac-sha256:"},
		{name: "another inventory", moved: "the inventory: its members", live: func(s *clitest.Fixture) { s.Apply(clitest.Documents(first, clitest.ConfigMap("more"))).Want(s.TB, 0) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := clitest.New(t)
			s.Apply(first).Want(t, 0)
			file := filepath.Join(t.TempDir(), "plan.json")
			s.Preview(then, append([]string{"--plan-out", file}, test.flags...)...).Want(t, 0)
			if test.live != nil {
				test.live(s)
			}
			text := then
			if test.then != "" {
				text = test.then
			}
			applied := s.ConfigMap("gone")
			if test.moved == "" {
				run := s.Apply(text, append([]string{"--plan", file}, test.flags...)...).Want(t, 0)
				run.Did(t, "ConfigMap", "a", plan.Configured)
				run.Did(t, "ConfigMap", "gone", plan.Pruned)
				return
			}
			s.Apply(text, append([]string{"--plan", file}, test.flags...)...).Want(t, 3).Prints(t, "out of date", test.moved)
			if applied != nil {
				s.Exists("v1/configmaps", "gone")
			}
		})
	}

	t.Run("other flags", func(t *testing.T) {
		s := clitest.New(t)
		s.Apply(first).Want(t, 0)
		file := filepath.Join(t.TempDir(), "plan.json")
		s.Preview(then, "--plan-out", file).Want(t, 0)
		for _, flag := range []string{"--no-prune", "--prune-anyway", "--wait=applied"} {
			name, _, _ := strings.Cut(flag, "=")
			s.Apply(then, "--plan", file, flag).Want(t, 3).Prints(t, name+": the plan was made with")
		}
	})
}

// A plan is for one cluster. A first apply differs in nothing else from one to
// the next.
func TestSavedPlanOfAnotherClusterIsRefused(t *testing.T) {
	s, other := clitest.New(t), clustertest.New(t)
	file := filepath.Join(t.TempDir(), "plan.json")
	text := clitest.Documents("apiVersion: v1\nkind: Namespace\nmetadata: {name: \"{ns}-a\"}\n", strings.ReplaceAll(clitest.ConfigMap("a"), "namespace: {ns}\n", "namespace: {ns}-a\n"))
	s.Inventory = s.NS + "-a/inv"
	s.Preview(text, "--plan-out", file).Want(t, 0)

	away := *s
	p := other.Proxy(t, clustertest.ProxyOptions{})
	away.Kubeconfig = p.Kubeconfig
	away.Apply(text, "--plan", file).Want(t, 3).Prints(t, "out of date", "the cluster: the plan is for the one whose Namespace kube-system has the uid")
	away.Preview(text, "--plan", file, "--plan-out", file+".new").Want(t, 3)

	// One that does not say, as older versions wrote it, is refused.
	written, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var document map[string]any
	if err := json.Unmarshal(written, &document); err != nil {
		t.Fatal(err)
	}
	delete(document, "cluster")
	old, _ := json.Marshal(document)
	if err := os.WriteFile(file+".old", old, 0o600); err != nil {
		t.Fatal(err)
	}
	away.Apply(text, "--plan", file+".old").Want(t, 3).Prints(t, "the plan does not say which one it is for")
	if w := p.Writes(); len(w) > 0 {
		t.Errorf("it wrote %v", clitest.Describe(w))
	}
	s.Apply(text, "--plan", file).Want(t, 0)
	s.Destroy().Want(t, 0)
}
