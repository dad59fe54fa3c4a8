package cli

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
)

func TestSavedPlan(t *testing.T) {
	secret := "apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: {ns}}\nstringData: {password: first-hidden}\n"
	first := documents(configMap("a"), configMap("gone"), deployment("web", 1, "1m"), secret)
	then := documents(strings.Replace(configMap("a"), "key: value", "key: new", 1), configMap("b"),
		strings.Replace(deployment("web", 1, "1m"), "replicas: 1", "replicas: 2", 1), strings.Replace(secret, "first-hidden", "other-hidden", 1))
	patch := func(s *fixture, resource, name, body string, sub ...string) {
		s.Helper()
		if _, err := s.resources(resource).Namespace(s.ns).Patch(s.Context(), name, types.MergePatchType, []byte(body), metav1.PatchOptions{FieldManager: "kubectl-edit"}, sub...); err != nil {
			s.Fatal(err)
		}
	}
	for _, test := range []struct {
		name  string
		live  func(*fixture)
		then  string // another bundle than the plan's
		flags []string
		moved string // "": the plan holds
	}{
		{name: "nothing moved"},
		{name: "only a status moved", live: func(s *fixture) {
			patch(s, "apps/v1/deployments", "web", `{"status":{"observedGeneration":1,"replicas":1,"conditions":[{"type":"Seen","status":"True"}]}}`, "status")
		}},
		{name: "a field that is not ours moved", live: func(s *fixture) { patch(s, "v1/configmaps", "a", `{"metadata":{"annotations":{"seen":"x"}}}`) }},
		{name: "our field moved", flags: []string{"--force-conflicts"}, moved: "/a: would change in another way than the plan says: data.key",
			live: func(s *fixture) { patch(s, "v1/configmaps", "a", `{"data":{"key":"other"}}`) }},
		{name: "a secret moved", moved: "/s: has changed since", live: func(s *fixture) { patch(s, "v1/secrets", "s", `{"data":{"more":"aGk="}}`) }},
		{name: "what was to be created is there", moved: "/b: did not exist, and exists now",
			live: func(s *fixture) {
				s.create("v1/configmaps", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b, namespace: {ns}}\n")
			}},
		{name: "another object of the name", moved: "/a: was deleted and recreated since", live: func(s *fixture) {
			if err := s.resources("v1/configmaps").Namespace(s.ns).Delete(s.Context(), "a", metav1.DeleteOptions{}); err != nil {
				s.Fatal(err)
			}
			s.create("v1/configmaps", configMap("a", "annotations: {config.k8s.io/owning-inventory: x}"))
		}, flags: []string{"--inventory-policy=adopt-all", "--force-conflicts"}},
		{name: "another bundle", then: configMap("a"), moved: "the bundle: the plan was made from hmac-sha256:"},
		{name: "another inventory", moved: "the inventory: its members", live: func(s *fixture) { s.apply(documents(first, configMap("more"))).want(s.TB, 0) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newFixture(t)
			s.apply(first).want(t, 0)
			file := filepath.Join(t.TempDir(), "plan.json")
			s.preview(then, append([]string{"--plan-out", file}, test.flags...)...).want(t, 0)
			if test.live != nil {
				test.live(s)
			}
			text := then
			if test.then != "" {
				text = test.then
			}
			applied := s.live("v1/configmaps", s.ns, "gone")
			if test.moved == "" {
				run := s.apply(text, append([]string{"--plan", file}, test.flags...)...).want(t, 0)
				run.did(t, "ConfigMap", "a", plan.Configured)
				run.did(t, "ConfigMap", "gone", plan.Pruned)
				return
			}
			s.apply(text, append([]string{"--plan", file}, test.flags...)...).want(t, 3).prints(t, "out of date", test.moved)
			if applied != nil {
				s.exists("v1/configmaps", "gone")
			}
		})
	}

	t.Run("other flags", func(t *testing.T) {
		s := newFixture(t)
		s.apply(first).want(t, 0)
		file := filepath.Join(t.TempDir(), "plan.json")
		s.preview(then, "--plan-out", file).want(t, 0)
		s.apply(then, "--plan", file, "--no-prune").want(t, 3).prints(t, "--no-prune")
	})
}

// A plan is for one cluster. A first apply differs in nothing else from one to
// the next.
func TestPlanOfAnotherCluster(t *testing.T) {
	s, other := newFixture(t), clustertest.New(t)
	file := filepath.Join(t.TempDir(), "plan.json")
	text := documents("apiVersion: v1\nkind: Namespace\nmetadata: {name: \"{ns}-a\"}\n", strings.ReplaceAll(configMap("a"), "namespace: {ns}\n", "namespace: {ns}-a\n"))
	s.inventory = s.ns + "-a/inv"
	s.preview(text, "--plan-out", file).want(t, 0)

	away := *s
	p := other.Proxy(t, clustertest.ProxyOptions{})
	away.kubeconfig = p.Kubeconfig
	away.apply(text, "--plan", file).want(t, 3).prints(t, "out of date", "the cluster: the plan is for the one whose Namespace kube-system has the uid")
	away.preview(text, "--plan", file, "--plan-out", file+".new").want(t, 3)

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
	away.apply(text, "--plan", file+".old").want(t, 3).prints(t, "the plan does not say which one it is for")
	if w := p.Writes(); len(w) > 0 {
		t.Errorf("it wrote %v", describe(w))
	}
	s.apply(text, "--plan", file).want(t, 0)
	s.destroy().want(t, 0)
}
