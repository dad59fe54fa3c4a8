package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"brine/bundle/plan"
)

// scale does what kubectl scale does.
func (s *fixture) scale(name string, replicas int) {
	s.Helper()
	patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas)
	_, err := s.resources("apps/v1/deployments").Namespace(s.ns).Patch(s.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "kubectl"}, "scale")
	if err != nil {
		s.Fatal(err)
	}
}

const replicasIgnored = "brine.dev/ignore-fields: /spec/replicas"

// released adds a label to a Deployment of deployment().
func released(text, value string) string {
	return strings.Replace(text, "metadata:\n  name:", "metadata:\n  labels: {release: \""+value+"\"}\n  name:", 1)
}

// A field that is left to others is sent when the object is created. Afterwards
// it stays as it is, whoever owns it, and costs no request.
func TestIgnoredFieldStays(t *testing.T) {
	for name, test := range map[string]struct {
		before      func(s *fixture)
		first, want int64
	}{
		"scaled by kubectl":         {func(s *fixture) { s.scale("web", 2) }, 1, 2},
		"owned by brine alone":      {func(*fixture) {}, 2, 2},
		"patched by another client": {func(s *fixture) { s.patchAs("other", "apps/v1/deployments", "web", `{"spec":{"replicas":0}}`) }, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t)
			web := func(replicas int) string { return deployment("web", replicas, "1m", annotations(replicasIgnored)) }
			s.apply(web(int(test.first))).want(t, 0).did(t, "Deployment", "web", plan.Created)
			if got := replicas(t, s.live("apps/v1/deployments", s.ns, "web")); got != test.first {
				t.Errorf("it was created with %d replicas, want %d", got, test.first)
			}
			test.before(s)
			stays := func() {
				t.Helper()
				if got := replicas(t, s.live("apps/v1/deployments", s.ns, "web")); got != test.want {
					t.Errorf("it has %d replicas, want %d", got, test.want)
				}
			}
			p := s.proxied()
			for _, text := range []string{web(int(test.first)), web(7)} { // the bundle's value is no change, either
				for range 2 {
					s.preview(text).want(t, 0).did(t, "Deployment", "web", plan.Unchanged)
					s.apply(text).want(t, 0).did(t, "Deployment", "web", plan.Unchanged)
					stays()
				}
			}
			for _, r := range p.Requests() {
				if strings.Contains(r.Path, "/deployments/") && r.Method != "GET" {
					t.Errorf("an unchanged object was sent: %s %s", r.Method, r.Path)
				}
			}
			for _, text := range []string{released(web(7), "two"), strings.Replace(released(web(7), "three"), "  replicas: 7\n", "", 1)} {
				shown := s.preview(text).want(t, 0).did(t, "Deployment", "web", plan.Configured)
				did := s.apply(text).want(t, 0).did(t, "Deployment", "web", plan.Configured)
				stays()
				if !reflect.DeepEqual(shown.Changes, did.Changes) || strings.Contains(shown.Diff, "replicas") {
					t.Errorf("the preview shows %v, the apply did %v", shown.Changes, did.Changes)
				}
				s.apply(text).want(t, 0).did(t, "Deployment", "web", plan.Unchanged)
				s.apply(text, "--verify=full").want(t, 0).did(t, "Deployment", "web", plan.Unchanged)
				stays()
			}
		})
	}
}

// Without the annotation the bundle decides again, a recreated object is a new
// one, and a rollback leaves the field as it is.
func TestIgnoredFieldOfOtherRuns(t *testing.T) {
	live := func(s *fixture) int64 { return replicas(s, s.live("apps/v1/deployments", s.ns, "web")) }
	ignored := func(n int, cpu string) string { return deployment("web", n, cpu, annotations(replicasIgnored)) }

	t.Run("without the annotation", func(t *testing.T) {
		s := newFixture(t)
		s.apply(ignored(1, "1m")).want(t, 0)
		s.apply(ignored(2, "1m")).want(t, 0).did(t, "Deployment", "web", plan.Unchanged)
		s.apply(deployment("web", 2, "1m")).want(t, 0).did(t, "Deployment", "web", plan.Configured)
		if live(s) != 2 {
			t.Errorf("it has %d replicas", live(s))
		}
	})
	t.Run("a field that left the bundle with the rule that came", func(t *testing.T) {
		s := newFixture(t)
		s.apply(deployment("web", 2, "1m")).want(t, 0)
		s.apply(strings.Replace(ignored(2, "1m"), "  replicas: 2\n", "", 1)).want(t, 0)
		if live(s) != 2 {
			t.Errorf("it has %d replicas", live(s))
		}
	})
	t.Run("rollback", func(t *testing.T) {
		s := newFixture(t)
		s.apply(ignored(1, "1m")).want(t, 0)
		s.apply(ignored(1, "2m")).want(t, 0)
		s.scale("web", 2)
		s.run("rollback", nil).want(t, 0).did(t, "Deployment", "web", plan.Configured)
		if live(s) != 2 {
			t.Errorf("it has %d replicas", live(s))
		}
	})
	t.Run("recreated", func(t *testing.T) {
		s := newFixture(t)
		s.apply(ignored(1, "1m")).want(t, 0)
		s.scale("web", 2)
		text := strings.ReplaceAll(ignored(1, "1m"), "{app: web}", "{app: other}")
		shown := s.preview(text, "--recreate=Deployment").want(t, 0).did(t, "Deployment", "web", plan.Recreated)
		if !strings.Contains(shown.Diff, "replicas: 1") {
			t.Errorf("the preview shows\n%s", shown.Diff)
		}
		s.apply(text, "--recreate=Deployment").want(t, 0).did(t, "Deployment", "web", plan.Recreated)
		if live(s) != 1 {
			t.Errorf("it has %d replicas", live(s))
		}
	})
	t.Run("taken over", func(t *testing.T) {
		s := newFixture(t)
		s.apply(ignored(1, "1m")).want(t, 0)
		s.patchAs("other", "apps/v1/deployments", "web", `{"spec":{"replicas":2,"minReadySeconds":1}}`)
		flags := []string{"--take-over-from=other"}
		shown := s.preview(ignored(1, "1m"), flags...).want(t, 0).did(t, "Deployment", "web", plan.Configured)
		did := s.apply(ignored(1, "1m"), flags...).want(t, 0).did(t, "Deployment", "web", plan.Configured)
		if live(s) != 2 || !reflect.DeepEqual(shown.Changes, did.Changes) {
			t.Errorf("it has %d replicas; the preview shows %v, the apply did %v", live(s), shown.Changes, did.Changes)
		}
	})
	t.Run("a pointer that is wrong", func(t *testing.T) {
		s := newFixture(t)
		text := configMap("web", "annotations:\n    brine.dev/ignore-fields: /data/a, /metadata/name")
		for _, run := range []func(string, ...string) outcome{s.preview, s.apply} {
			run(text).want(t, 3).prints(t, "bundle.yaml:7: ", "/metadata/name cannot be ignored: it identifies the object")
		}
		s.missing("v1/configmaps", "web")
		runLine(t.Context(), nil, "check", "-f", s.file(text)).want(t, 3).prints(t, "cannot be ignored")
	})
}

// An injector fills the certificates into elements of a list.
func TestIgnoredFieldInAList(t *testing.T) {
	s := newFixture(t)
	s.goneAfter("admissionregistration.k8s.io/v1/validatingwebhookconfigurations", s.ns)
	hook := func(name string) string {
		return "- {name: " + name + ".example.com, sideEffects: None, admissionReviewVersions: [v1], failurePolicy: Ignore, clientConfig: {url: \"https://127.0.0.1:1/\", caBundle: Cg==}, rules: [{apiGroups: [" + s.ns + ".example.com], apiVersions: [v1], resources: [none], operations: [CREATE]}]}\n"
	}
	text := func(annotation, label string, hooks ...string) string {
		return "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata:\n  name: \"{ns}\"\n  labels: {release: " + label + "}\n  annotations: {" + annotation + "}\nwebhooks:\n" + strings.Join(hooks, "")
	}
	const resource = "admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
	certificates := func() []string {
		webhooks, _, _ := unstructured.NestedSlice(s.live(resource, "", s.ns).Object, "webhooks")
		var all []string
		for _, w := range webhooks {
			ca, _, _ := unstructured.NestedString(w.(map[string]any), "clientConfig", "caBundle")
			all = append(all, w.(map[string]any)["name"].(string)[:1]+ca)
		}
		return all
	}
	inject := func() {
		_, err := s.resources(resource).Patch(t.Context(), s.ns, types.StrategicMergePatchType,
			[]byte(`{"webhooks":[{"name":"a.example.com","clientConfig":{"caBundle":"QQ=="}},{"name":"b.example.com","clientConfig":{"caBundle":"Qg=="}}]}`), metav1.PatchOptions{FieldManager: "cainjector"})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, annotation := range []string{"brine.dev/ignore-fields: /webhooks/*/clientConfig/caBundle", "cert-manager.io/inject-ca-from: " + s.ns + "/ca"} {
		s.apply(text(annotation, "one", hook("a"), hook("b"))).want(t, 0).did(t, "ValidatingWebhookConfiguration", s.ns, plan.Created)
		inject()
		same := text(annotation, "one", hook("a"), hook("b"))
		out := s.apply(same).want(t, 0)
		out.did(t, "ValidatingWebhookConfiguration", s.ns, plan.Unchanged)
		if told := strings.Contains(out.stdout, "brine leaves fields that the bundle writes"); told != strings.HasPrefix(annotation, "cert-manager") {
			t.Errorf("it says that it leaves fields to controllers: %v", told)
		}
		other := text(annotation, "two", hook("c"), hook("b"), hook("a"))
		shown := s.preview(other).want(t, 0).did(t, "ValidatingWebhookConfiguration", s.ns, plan.Configured)
		did := s.apply(other).want(t, 0).did(t, "ValidatingWebhookConfiguration", s.ns, plan.Configured)
		if got := fmt.Sprint(certificates()); got != "[cCg== bQg== aQQ==]" || !reflect.DeepEqual(shown.Changes, did.Changes) {
			t.Errorf("the certificates are %s; the preview shows %v, the apply did %v", got, shown.Changes, did.Changes)
		}
		s.apply(other).want(t, 0).did(t, "ValidatingWebhookConfiguration", s.ns, plan.Unchanged)
		s.destroy().want(t, 0)
	}
}

// What an autoscaler of the bundle scales is not asked for.
func TestAutoscaledReplicasStay(t *testing.T) {
	s := newFixture(t)
	hpa := "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: web, namespace: \"{ns}\"}\nspec: {minReplicas: 1, maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}]}\n"
	says := "brine leaves fields that the bundle writes to the controllers that own them: spec.replicas of Deployment.apps " + s.ns + "/web to HorizontalPodAutoscaler.autoscaling " + s.ns + "/web"
	flags := []string{"--wait=applied"}
	s.apply(documents(deployment("web", 1, "1m"), hpa), flags...).want(t, 0).prints(t, says)
	s.scale("web", 3)
	s.apply(documents(deployment("web", 1, "1m"), hpa), flags...).want(t, 0).prints(t, says).did(t, "Deployment", "web", plan.Unchanged)
	s.apply(documents(deployment("web", 1, "2m"), hpa), flags...).want(t, 0).did(t, "Deployment", "web", plan.Configured)
	if got := replicas(t, s.live("apps/v1/deployments", s.ns, "web")); got != 3 {
		t.Errorf("it has %d replicas", got)
	}
	without := documents(strings.Replace(deployment("web", 1, "2m"), "  replicas: 1\n", "", 1), hpa)
	if out := s.preview(without).want(t, 0); strings.Contains(out.stdout, "brine leaves") {
		t.Errorf("the bundle writes none:\n%s", out.stdout)
	}
	runLine(t.Context(), nil, "check", "-o", "text", "-f", s.file(documents(deployment("web", 1, "1m"), hpa))).want(t, 0).
		prints(t, "bundle.yaml:7: Deployment.apps "+s.ns+"/web: spec.replicas: HorizontalPodAutoscaler.autoscaling "+s.ns+"/web writes this field")
}

// --ignore-fields names fields by rules: for apply, preview and rollback, and in
// saved plans.
func TestIgnoreFieldsByRules(t *testing.T) {
	file := func(t *testing.T, text string) string {
		path := filepath.Join(t.TempDir(), "rules.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	t.Run("of runs and saved plans", func(t *testing.T) {
		s := newFixture(t)
		live := func() int64 { return replicas(t, s.live("apps/v1/deployments", s.ns, "web")) }
		rules := "--ignore-fields=" + file(t, "- {group: apps, kind: Deploy*, name: w*b, fields: [/spec/replicas]}\n")
		both := func(n int, cpu string) string {
			return documents(deployment("web", n, cpu), deployment("other", n, cpu))
		}
		s.apply(both(1, "1m"), rules).want(t, 0)
		s.scale("web", 2)
		s.apply(both(1, "1m"), rules).want(t, 0).did(t, "Deployment", "web", plan.Unchanged)
		s.apply(both(1, "2m"), rules).want(t, 0).did(t, "Deployment", "web", plan.Configured)
		if live() != 2 {
			t.Errorf("it has %d replicas", live())
		}
		path := filepath.Join(t.TempDir(), "plan.json")
		s.preview(both(1, "3m"), rules, "--plan-out="+path).want(t, 0)
		wider := file(t, "- {kind: Deployment, fields: [/spec/replicas]}\n")
		s.apply(both(1, "3m"), "--plan="+path, "--ignore-fields="+wider).want(t, 3).prints(t, "--ignore-fields: the plan was made with")
		s.apply(both(1, "3m"), "--plan="+path).want(t, 0).did(t, "Deployment", "web", plan.Configured)
		if live() != 2 {
			t.Errorf("it has %d replicas", live())
		}
		s.run("rollback", []string{rules}).want(t, 0).did(t, "Deployment", "web", plan.Configured)
		if live() != 2 {
			t.Errorf("it has %d replicas", live())
		}
		s.scale("other", 2)
		s.apply(both(1, "4m"), rules).want(t, 1).did(t, "Deployment", "other", plan.Failed) // no rule is about it
	})
	t.Run("that are wrong", func(t *testing.T) {
		s := newFixture(t)
		bad := file(t, "- kind: Deployment\n  fields: [/spec/replicas, /metadata/name]\n- field: [/a]\n")
		for _, command := range []string{"apply", "preview", "rollback"} {
			flags := []string{"--ignore-fields=" + bad}
			if command != "rollback" {
				flags = append(flags, "-f", s.file(configMap("web")))
			}
			s.run(command, flags).want(t, 3).prints(t, bad+":2: /metadata/name cannot be ignored", bad+`:3: unknown key "field": did you mean fields?`, bad+":3: the rule has no fields")
		}
		s.apply(configMap("web"), "--ignore-fields="+file(t, "a: [")).want(t, 3).prints(t, "rules.yaml:1: it is not YAML")
		s.apply(configMap("web"), "--ignore-fields=/no/such/file").want(t, 3).prints(t, "read the rules of --ignore-fields: open /no/such/file")
		s.missing("v1/configmaps", "web", "inv")
	})
}
