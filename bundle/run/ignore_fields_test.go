package run_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"brine/bundle/plan"
	"brine/cmd/brine/clitest"
)

// scale does what kubectl scale does.
func scale(s *clitest.Fixture, name string, replicas int) {
	s.Helper()
	patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas)
	_, err := s.Resources("apps/v1/deployments").Namespace(s.NS).Patch(s.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "kubectl"}, "scale")
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
		before      func(s *clitest.Fixture)
		first, want int64
	}{
		"scaled by kubectl":         {func(s *clitest.Fixture) { scale(s, "web", 2) }, 1, 2},
		"owned by brine alone":      {func(*clitest.Fixture) {}, 2, 2},
		"patched by another client": {func(s *clitest.Fixture) { s.PatchAs("other", "apps/v1/deployments", "web", `{"spec":{"replicas":0}}`) }, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := clitest.New(t)
			web := func(replicas int) string {
				return clitest.Deployment("web", replicas, "1m", clitest.Annotations(replicasIgnored))
			}
			s.Apply(web(int(test.first))).Want(t, 0).Did(t, "Deployment", "web", plan.Created)
			if got := clitest.Replicas(t, s.Live("apps/v1/deployments", s.NS, "web")); got != test.first {
				t.Errorf("it was created with %d replicas, want %d", got, test.first)
			}
			test.before(s)
			stays := func() {
				t.Helper()
				if got := clitest.Replicas(t, s.Live("apps/v1/deployments", s.NS, "web")); got != test.want {
					t.Errorf("it has %d replicas, want %d", got, test.want)
				}
			}
			p := s.Proxied()
			for _, text := range []string{web(int(test.first)), web(7)} { // the bundle's value is no change, either
				for range 2 {
					s.Preview(text).Want(t, 0).Did(t, "Deployment", "web", plan.Unchanged)
					s.Apply(text).Want(t, 0).Did(t, "Deployment", "web", plan.Unchanged)
					stays()
				}
			}
			for _, r := range p.Requests() {
				if strings.Contains(r.Path, "/deployments/") && r.Method != http.MethodGet {
					t.Errorf("an unchanged object was sent: %s %s", r.Method, r.Path)
				}
			}
			for _, text := range []string{released(web(7), "two"), strings.Replace(released(web(7), "three"), "  replicas: 7\n", "", 1)} {
				shown := s.Preview(text).Want(t, 0).Did(t, "Deployment", "web", plan.Configured)
				did := s.Apply(text).Want(t, 0).Did(t, "Deployment", "web", plan.Configured)
				stays()
				if !reflect.DeepEqual(shown.Changes, did.Changes) || strings.Contains(shown.Diff, "-  replicas") || strings.Contains(shown.Diff, "+  replicas") {
					t.Errorf("the preview shows %v, the apply did %v", shown.Changes, did.Changes)
				}
				s.Apply(text).Want(t, 0).Did(t, "Deployment", "web", plan.Unchanged)
				s.Apply(text, "--verify=full").Want(t, 0).Did(t, "Deployment", "web", plan.Unchanged)
				stays()
			}
		})
	}
}

// Without the annotation the bundle decides again, a recreated object is a new
// one, and a rollback leaves the field as it is.
func TestIgnoredFieldOfOtherRuns(t *testing.T) {
	live := func(s *clitest.Fixture) int64 { return clitest.Replicas(s, s.Live("apps/v1/deployments", s.NS, "web")) }
	ignored := func(n int, cpu string) string {
		return clitest.Deployment("web", n, cpu, clitest.Annotations(replicasIgnored))
	}

	t.Run("without the annotation", func(t *testing.T) {
		s := clitest.New(t)
		s.Apply(ignored(1, "1m")).Want(t, 0)
		s.Apply(ignored(2, "1m")).Want(t, 0).Did(t, "Deployment", "web", plan.Unchanged)
		s.Apply(clitest.Deployment("web", 2, "1m")).Want(t, 0).Did(t, "Deployment", "web", plan.Configured)
		if live(s) != 2 {
			t.Errorf("it has %d replicas", live(s))
		}
	})
	t.Run("a field that left the bundle with the rule that came", func(t *testing.T) {
		s := clitest.New(t)
		s.Apply(clitest.Deployment("web", 2, "1m")).Want(t, 0)
		s.Apply(strings.Replace(ignored(2, "1m"), "  replicas: 2\n", "", 1)).Want(t, 0)
		if live(s) != 2 {
			t.Errorf("it has %d replicas", live(s))
		}
	})
	t.Run("rollback", func(t *testing.T) {
		s := clitest.New(t)
		s.Apply(ignored(1, "1m")).Want(t, 0)
		s.Apply(ignored(1, "2m")).Want(t, 0)
		scale(s, "web", 2)
		s.Run("rollback", nil).Want(t, 0).Did(t, "Deployment", "web", plan.Configured)
		if live(s) != 2 {
			t.Errorf("it has %d replicas", live(s))
		}
	})
	t.Run("recreated", func(t *testing.T) {
		s := clitest.New(t)
		s.Apply(ignored(1, "1m")).Want(t, 0)
		scale(s, "web", 2)
		text := strings.ReplaceAll(ignored(1, "1m"), "{app: web}", "{app: other}")
		shown := s.Preview(text, "--recreate=Deployment").Want(t, 0).Did(t, "Deployment", "web", plan.Recreated)
		if !strings.Contains(shown.Diff, "replicas: 1") {
			t.Errorf("the preview shows\n%s", shown.Diff)
		}
		s.Apply(text, "--recreate=Deployment").Want(t, 0).Did(t, "Deployment", "web", plan.Recreated)
		if live(s) != 1 {
			t.Errorf("it has %d replicas", live(s))
		}
	})
	t.Run("taken over", func(t *testing.T) {
		s := clitest.New(t)
		s.Apply(ignored(1, "1m")).Want(t, 0)
		s.PatchAs("other", "apps/v1/deployments", "web", `{"spec":{"replicas":2,"minReadySeconds":1}}`)
		flags := []string{"--take-over-from=other"}
		shown := s.Preview(ignored(1, "1m"), flags...).Want(t, 0).Did(t, "Deployment", "web", plan.Configured)
		did := s.Apply(ignored(1, "1m"), flags...).Want(t, 0).Did(t, "Deployment", "web", plan.Configured)
		if live(s) != 2 || !reflect.DeepEqual(shown.Changes, did.Changes) {
			t.Errorf("it has %d replicas; the preview shows %v, the apply did %v", live(s), shown.Changes, did.Changes)
		}
	})
	t.Run("a pointer that is wrong", func(t *testing.T) {
		s := clitest.New(t)
		text := clitest.ConfigMap("web", "annotations:\n    brine.dev/ignore-fields: /data/a, /metadata/name")
		for _, run := range []func(string, ...string) clitest.Outcome{s.Preview, s.Apply} {
			run(text).Want(t, 3).Prints(t, "bundle.yaml:7: ", "/metadata/name cannot be ignored: it identifies the object")
		}
		s.Missing("v1/configmaps", "web")
		clitest.Command(t.Context(), nil, "check", "-f", s.File(text)).Want(t, 3).Prints(t, "cannot be ignored")
	})
}

// An injector fills the certificates into elements of a list.
func TestIgnoredFieldInAList(t *testing.T) {
	s := clitest.New(t)
	s.GoneAfter("admissionregistration.k8s.io/v1/validatingwebhookconfigurations", s.NS)
	hook := func(name string) string {
		return "- {name: " + name + ".example.com, sideEffects: None, admissionReviewVersions: [v1], failurePolicy: Ignore, clientConfig: {url: \"https://127.0.0.1:1/\", caBundle: Cg==}, rules: [{apiGroups: [" + s.NS + ".example.com], apiVersions: [v1], resources: [none], operations: [CREATE]}]}\n"
	}
	text := func(annotation, label string, hooks ...string) string {
		return "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata:\n  name: \"{ns}\"\n  labels: {release: " + label + "}\n  annotations: {" + annotation + "}\nwebhooks:\n" + strings.Join(hooks, "")
	}
	const resource = "admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
	certificates := func() []string {
		webhooks, _, _ := unstructured.NestedSlice(s.Live(resource, "", s.NS).Object, "webhooks")
		var all []string
		for _, w := range webhooks {
			ca, _, _ := unstructured.NestedString(w.(map[string]any), "clientConfig", "caBundle")
			all = append(all, w.(map[string]any)["name"].(string)[:1]+ca)
		}
		return all
	}
	inject := func() {
		_, err := s.Resources(resource).Patch(t.Context(), s.NS, types.StrategicMergePatchType,
			[]byte(`{"webhooks":[{"name":"a.example.com","clientConfig":{"caBundle":"QQ=="}},{"name":"b.example.com","clientConfig":{"caBundle":"Qg=="}}]}`), metav1.PatchOptions{FieldManager: "cainjector"})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, annotation := range []string{"brine.dev/ignore-fields: /webhooks/*/clientConfig/caBundle", "cert-manager.io/inject-ca-from: " + s.NS + "/ca"} {
		s.Apply(text(annotation, "one", hook("a"), hook("b"))).Want(t, 0).Did(t, "ValidatingWebhookConfiguration", s.NS, plan.Created)
		inject()
		same := text(annotation, "one", hook("a"), hook("b"))
		out := s.Apply(same).Want(t, 0)
		out.Did(t, "ValidatingWebhookConfiguration", s.NS, plan.Unchanged)
		if told := strings.Contains(out.Stdout, "brine leaves fields that the bundle writes"); told != strings.HasPrefix(annotation, "cert-manager") {
			t.Errorf("it says that it leaves fields to controllers: %v", told)
		}
		other := text(annotation, "two", hook("c"), hook("b"), hook("a"))
		shown := s.Preview(other).Want(t, 0).Did(t, "ValidatingWebhookConfiguration", s.NS, plan.Configured)
		did := s.Apply(other).Want(t, 0).Did(t, "ValidatingWebhookConfiguration", s.NS, plan.Configured)
		if got := fmt.Sprint(certificates()); got != "[cCg== bQg== aQQ==]" || !reflect.DeepEqual(shown.Changes, did.Changes) {
			t.Errorf("the certificates are %s; the preview shows %v, the apply did %v", got, shown.Changes, did.Changes)
		}
		s.Apply(other).Want(t, 0).Did(t, "ValidatingWebhookConfiguration", s.NS, plan.Unchanged)
		s.Destroy().Want(t, 0)
	}
}

// What an autoscaler of the bundle scales is not asked for.
func TestAutoscaledReplicasStay(t *testing.T) {
	s := clitest.New(t)
	hpa := "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: web, namespace: \"{ns}\"}\nspec: {minReplicas: 1, maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}]}\n"
	says := "brine leaves fields that the bundle writes to the controllers that own them: spec.replicas of Deployment.apps " + s.NS + "/web to HorizontalPodAutoscaler.autoscaling " + s.NS + "/web"
	flags := []string{"--wait=applied"}
	s.Apply(clitest.Documents(clitest.Deployment("web", 1, "1m"), hpa), flags...).Want(t, 0).Prints(t, says)
	scale(s, "web", 3)
	s.Apply(clitest.Documents(clitest.Deployment("web", 1, "1m"), hpa), flags...).Want(t, 0).Prints(t, says).Did(t, "Deployment", "web", plan.Unchanged)
	s.Apply(clitest.Documents(clitest.Deployment("web", 1, "2m"), hpa), flags...).Want(t, 0).Did(t, "Deployment", "web", plan.Configured)
	if got := clitest.Replicas(t, s.Live("apps/v1/deployments", s.NS, "web")); got != 3 {
		t.Errorf("it has %d replicas", got)
	}
	without := clitest.Documents(strings.Replace(clitest.Deployment("web", 1, "2m"), "  replicas: 1\n", "", 1), hpa)
	if out := s.Preview(without).Want(t, 0); strings.Contains(out.Stdout, "brine leaves") {
		t.Errorf("the bundle writes none:\n%s", out.Stdout)
	}
	clitest.Command(t.Context(), nil, "check", "-o", "text", "-f", s.File(clitest.Documents(clitest.Deployment("web", 1, "1m"), hpa))).Want(t, 0).
		Prints(t, "bundle.yaml:7: Deployment.apps "+s.NS+"/web: spec.replicas: HorizontalPodAutoscaler.autoscaling "+s.NS+"/web writes this field")
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
		s := clitest.New(t)
		live := func() int64 { return clitest.Replicas(t, s.Live("apps/v1/deployments", s.NS, "web")) }
		rules := "--ignore-fields=" + file(t, "- {group: apps, kind: Deploy*, name: w*b, fields: [/spec/replicas]}\n")
		both := func(n int, cpu string) string {
			return clitest.Documents(clitest.Deployment("web", n, cpu), clitest.Deployment("other", n, cpu))
		}
		s.Apply(both(1, "1m"), rules).Want(t, 0)
		scale(s, "web", 2)
		s.Apply(both(1, "1m"), rules).Want(t, 0).Did(t, "Deployment", "web", plan.Unchanged)
		s.Apply(both(1, "2m"), rules).Want(t, 0).Did(t, "Deployment", "web", plan.Configured)
		if live() != 2 {
			t.Errorf("it has %d replicas", live())
		}
		path := filepath.Join(t.TempDir(), "plan.json")
		s.Preview(both(1, "3m"), rules, "--plan-out="+path).Want(t, 0)
		wider := file(t, "- {kind: Deployment, fields: [/spec/replicas]}\n")
		s.Apply(both(1, "3m"), "--plan="+path, "--ignore-fields="+wider).Want(t, 3).Prints(t, "--ignore-fields: the plan was made with")
		s.Apply(both(1, "3m"), "--plan="+path).Want(t, 0).Did(t, "Deployment", "web", plan.Configured)
		if live() != 2 {
			t.Errorf("it has %d replicas", live())
		}
		s.Run("rollback", []string{rules}).Want(t, 0).Did(t, "Deployment", "web", plan.Configured)
		if live() != 2 {
			t.Errorf("it has %d replicas", live())
		}
		scale(s, "other", 2)
		s.Apply(both(1, "4m"), rules).Want(t, 1).Did(t, "Deployment", "other", plan.Failed) // no rule is about it
	})
	t.Run("that are wrong", func(t *testing.T) {
		s := clitest.New(t)
		bad := file(t, "- kind: Deployment\n  fields: [/spec/replicas, /metadata/name]\n- field: [/a]\n")
		for _, command := range []string{"apply", "preview", "rollback"} {
			flags := []string{"--ignore-fields=" + bad}
			if command != "rollback" {
				flags = append(flags, "-f", s.File(clitest.ConfigMap("web")))
			}
			s.Run(command, flags).Want(t, 3).Prints(t, bad+":2: /metadata/name cannot be ignored", bad+`:3: unknown key "field": did you mean fields?`, bad+":3: the rule has no fields")
		}
		s.Apply(clitest.ConfigMap("web"), "--ignore-fields="+file(t, "a: [")).Want(t, 3).Prints(t, "rules.yaml:1: it is not YAML")
		s.Apply(clitest.ConfigMap("web"), "--ignore-fields=/no/such/file").Want(t, 3).Prints(t, "read the rules of --ignore-fields: open /no/such/file")
		s.Missing("v1/configmaps", "web", "inv")
	})
}
