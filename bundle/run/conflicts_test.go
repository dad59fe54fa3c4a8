package run_test

import (
	"net/http"
	"reflect"
	"regexp"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"brine/bundle/plan"
	"brine/cmd/brine/clitest"
)

// --conflicts decides by manager, subresources included.
func TestConflictsByManager(t *testing.T) {
	live := func(s *clitest.Fixture) int64 { return clitest.Replicas(s, s.Live("apps/v1/deployments", s.NS, "web")) }
	web := func(release string) string { return released(clitest.Deployment("web", 1, "1m"), release) }
	scaled := func(t *testing.T) *clitest.Fixture {
		s := clitest.New(t)
		s.Apply(web("one")).Want(t, 0)
		scale(s, "web", 2)
		return s
	}

	t.Run("leave", func(t *testing.T) {
		s := scaled(t)
		flag := "--conflicts=other=take,kube*=leave"
		const says = "leaves .spec.replicas to kubectl (subresource scale)"
		for _, release := range []string{"one", "two"} {
			shown := s.Preview(web(release), flag).Want(t, 0).Prints(t, says).Object(t, "Deployment", "web")
			did := s.Apply(web(release), flag).Want(t, 0).Prints(t, says).Object(t, "Deployment", "web")
			if live(s) != 2 || shown.Action != did.Action || !reflect.DeepEqual(shown.Changes, did.Changes) {
				t.Errorf("it has %d replicas; the preview shows %s %v, the apply did %s %v", live(s), shown.Action, shown.Changes, did.Action, did.Changes)
			}
		}
		p := s.Proxied()
		for range 2 {
			s.Apply(web("two"), flag).Want(t, 0).Did(t, "Deployment", "web", plan.Unchanged)
		}
		for _, r := range p.Requests() {
			if strings.Contains(r.Path, "/deployments/") && r.Method != http.MethodGet {
				t.Errorf("an unchanged object was sent: %s %s", r.Method, r.Path)
			}
		}
		s.Apply(web("two")).Want(t, 1).Prints(t, "conflict: kubectl (subresource scale) owns .spec.replicas") // the flag is gone
	})
	t.Run("take", func(t *testing.T) {
		s := scaled(t)
		const says = "takes .spec.replicas from kubectl"
		s.Preview(web("two"), "--conflicts=kubectl=take").Want(t, 0).Prints(t, says)
		got := s.Apply(web("two"), "--conflicts=kubectl=take").Want(t, 0).Prints(t, says)
		got.Did(t, "Deployment", "web", plan.Configured)
		if n := strings.Count(strings.Join(got.Result.Warnings, " "), "takes .spec.replicas"); n != 1 {
			t.Errorf("it is said %d times: %v", n, got.Result.Warnings)
		}
		if live(s) != 1 {
			t.Errorf("it has %d replicas", live(s))
		}
		s.Apply(web("two"), "--conflicts=kubectl=take").Want(t, 0).Did(t, "Deployment", "web", plan.Unchanged)
	})
	t.Run("take all", func(t *testing.T) { // the server is asked once
		s := clitest.New(t)
		s.Apply(clitest.ConfigMapOf("web", `{a: "1"}`)).Want(t, 0)
		s.PatchAs("other", "v1/configmaps", "web", `{"data":{"a":"2"}}`)
		p := s.Proxied()
		s.Apply(clitest.ConfigMapOf("web", `{a: "1"}`), "--conflicts=*=take").Want(t, 0).Did(t, "ConfigMap", "web", plan.Configured)
		patches := 0
		for _, r := range p.Requests() {
			if strings.HasSuffix(r.Path, "/configmaps/web") && r.Method == http.MethodPatch {
				patches++
			}
		}
		if patches != 1 {
			t.Errorf("%d requests", patches)
		}
	})
	t.Run("some of several managers", func(t *testing.T) {
		s := clitest.New(t)
		text := clitest.ConfigMapOf("web", `{a: "1", b: "1", c.d: "1"}`)
		s.Apply(text).Want(t, 0)
		s.PatchAs("one", "v1/configmaps", "web", `{"data":{"a":"2"}}`)
		s.PatchAs("two", "v1/configmaps", "web", `{"data":{"b":"2","c.d":"2"}}`)
		for _, run := range []func(string, ...string) clitest.Outcome{s.Preview, s.Apply} {
			run(text, "--conflicts=one=take,two=fail").Want(t, 1).Prints(t, "one owns .data.a", "two owns .data.b", ".data.c.d")
		}
		flag := "--conflicts=one=take,two=leave"
		shown := s.Preview(text, flag).Want(t, 0).Did(t, "ConfigMap", "web", plan.Configured)
		did := s.Apply(text, flag).Want(t, 0).Did(t, "ConfigMap", "web", plan.Configured)
		if data := s.Data("web"); data["a"] != "1" || data["b"] != "2" || data["c.d"] != "2" || !reflect.DeepEqual(shown.Changes, did.Changes) {
			t.Errorf("it holds %v; the preview shows %v, the apply did %v", data, shown.Changes, did.Changes)
		}
		s.Apply(text, flag).Want(t, 0).Did(t, "ConfigMap", "web", plan.Unchanged)
	})
	t.Run("with a take-over", func(t *testing.T) {
		s := clitest.New(t)
		text := clitest.ConfigMapOf("web", `{a: "1", b: "1"}`)
		s.Apply(text).Want(t, 0)
		s.PatchAs("one", "v1/configmaps", "web", `{"data":{"a":"2"}}`)
		s.PatchAs("two", "v1/configmaps", "web", `{"data":{"b":"2"}}`)
		flags := []string{"--take-over-from=one", "--conflicts=two=leave"}
		shown := s.Preview(text, flags...).Want(t, 0).Prints(t, "leaves .data.b to two").Did(t, "ConfigMap", "web", plan.Configured)
		did := s.Apply(text, flags...).Want(t, 0).Prints(t, "leaves .data.b to two").Did(t, "ConfigMap", "web", plan.Configured)
		if data := s.Data("web"); data["a"] != "1" || data["b"] != "2" || !reflect.DeepEqual(shown.Changes, did.Changes) {
			t.Errorf("it holds %v; the preview shows %v, the apply did %v", data, shown.Changes, did.Changes)
		}
	})
	t.Run("in a list", func(t *testing.T) {
		s := clitest.New(t)
		s.Apply(clitest.Deployment("web", 1, "1m")).Want(t, 0)
		s.PatchAs("kubectl-edit", "apps/v1/deployments", "web", `{"spec":{"template":{"spec":{"containers":[{"name":"c","image":"registry.k8s.io/pause:3.9"}]}}}}`)
		s.Apply(released(clitest.Deployment("web", 1, "1m"), "two"), "--conflicts=kubectl*=leave", "--wait=applied").Want(t, 0).
			Prints(t, `leaves .spec.template.spec.containers[name=\"c\"].image to kubectl-edit`)
	})
}

// A conflict shows both values, the owner and the time, but never a value of a
// Secret.
func TestConflictIsExplained(t *testing.T) {
	s := clitest.New(t)
	secret := "apiVersion: v1\nkind: Secret\nmetadata: {name: web, namespace: \"{ns}\"}\ndata: {password: aHVudGVyMg==}\n"
	text := clitest.Documents(clitest.Deployment("web", 1, "1m"), secret, clitest.ConfigMapOf("web", "{a: short, b: "+strings.Repeat("x", 200)+"}"))
	s.Apply(text).Want(t, 0)
	scale(s, "web", 2)
	s.PatchAs("other", "v1/secrets", "web", `{"data":{"password":"Y29ycmVjdCBob3JzZQ=="}}`)
	s.PatchAs("other", "v1/configmaps", "web", `{"data":{"a":"3","b":"4"}}`)
	_, err := s.Resources("v1/configmaps").Namespace(s.NS).Patch(t.Context(), "web", types.ApplyPatchType,
		[]byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"web"},"data":{"a":"3"}}`), metav1.PatchOptions{FieldManager: "applier"})
	if err != nil {
		t.Fatal(err)
	}
	at := `written at 20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ`
	for _, run := range []func(string, ...string) clitest.Outcome{s.Preview, s.Apply} {
		got := run(text).Want(t, 1)
		for object, want := range map[string]string{
			// The server keeps no time of a scale.
			"Deployment": `^conflict: kubectl \(subresource scale\) owns \.spec\.replicas \(2 on the cluster, 1 in the bundle\)\. Take the fields with --force-conflicts, decide by manager with --conflicts, move them with --take-over-managers, leave them to others with --ignore-fields, or remove them from the bundle \(see brine help conflict\)$`,
			"Secret":     `^conflict: other owns \.data\.password, ` + at + `\.`,
			"ConfigMap":  `applier owns \.data\.a \("3" on the cluster, "short" in the bundle\); other owns \.data\.a \("3" on the cluster, "short" in the bundle\), \.data\.b \("4" on the cluster, "x+… in the bundle\), ` + at,
		} {
			if o := got.Did(t, object, "web", plan.Failed); !regexp.MustCompile(want).MatchString(o.Error) {
				t.Errorf("%s: %s\nwant %s", object, o.Error, want)
			}
		}
		if o := got.Object(t, "ConfigMap", "web"); strings.Contains(o.Error, strings.Repeat("x", 100)) || !strings.Contains(o.Error, `.data.b ("4" on the cluster, "xxx`) {
			t.Errorf("it shows %s", o.Error)
		}
		for _, value := range []string{"aHVudGVyMg", "hunter2", "Y29ycmVjd", "correct horse"} {
			if strings.Contains(got.Stdout+got.Stderr, value) {
				t.Fatal("it shows the value of a Secret")
			}
		}
	}
}

func TestConflictRulesThatAreWrong(t *testing.T) {
	s := clitest.New(t)
	for flag, want := range map[string]string{
		"--conflicts=kubectl":                    `--conflicts: "kubectl" is not a rule like kubectl*=take`,
		"--conflicts=*=grab":                     `--conflicts: "*=grab": use take, leave or fail`,
		"--conflicts==take":                      `"=take" is not a rule`,
		"--conflicts=*=take --force-conflicts":   "give one of them",
		"--conflicts=a=leave --force-conflicts":  "give one of them",
		"--conflicts=kubectl*=take,kube*=ignore": `"kube*=ignore": use take, leave or fail`,
	} {
		for _, run := range []func(string, ...string) clitest.Outcome{s.Preview, s.Apply} {
			run(clitest.ConfigMap("web"), strings.Fields(flag)...).Want(t, 3).Prints(t, want)
		}
	}
	s.Missing("v1/configmaps", "web", "inv")
}

// What a run adopts from another tool is reported, once.
func TestAdoptionFromHelmIsReported(t *testing.T) {
	s := clitest.New(t)
	s.Create("v1/configmaps", clitest.ConfigMap("web", clitest.Annotations("meta.helm.sh/release-name: shop", "meta.helm.sh/release-namespace: "+s.NS)))
	says := "1 object belongs to Helm release shop in namespace " + s.NS + ", which may change or delete what it owns: ConfigMap " + s.NS + "/web"
	s.Preview(clitest.ConfigMap("web")).Want(t, 0).Prints(t, says)
	s.Apply(clitest.ConfigMap("web")).Want(t, 0).Prints(t, says).Did(t, "ConfigMap", "web", plan.Configured)
	if again := s.Apply(clitest.ConfigMap("web")).Want(t, 0); strings.Contains(again.Stdout, "belongs to Helm") {
		t.Errorf("it is a member now:\n%s", again.Stdout)
	}
}
