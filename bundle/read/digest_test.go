package read

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
)

const digestBundle = `apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: n}
data: {a: "1", b: "2"}
---
apiVersion: v1
kind: Secret
metadata: {name: login, namespace: n}
stringData: {p: hunter2}
---
apiVersion: v1
kind: Secret
metadata: {name: other, namespace: elsewhere}
---
apiVersion: %s
kind: %s
metadata:
  name: w
  namespace: n
  annotations:
    brine.dev/digest-of: %s
spec: %s
`

const podSpec = "{spec: {containers: [{name: c, image: i}]}}"

func digests(t *testing.T, text string) (string, []bundle.Problem) {
	t.Helper()
	b := mustRead(t, text)
	before := b.Digest
	problems := FillDigests(b)
	w := b.Objects[len(b.Objects)-1]
	template, _ := templateAt(w.Content.Object)
	got, _, _ := unstructured.NestedString(template, "metadata", "annotations", bundle.Digest)
	if (got != "") != (b.Digest != before) {
		t.Error("the bundle's digest has to follow what is filled in")
	}
	if again := FillDigests(b); len(again) != len(problems) {
		t.Errorf("the second time: %v", again)
	}
	if again, _, _ := unstructured.NestedString(template, "metadata", "annotations", bundle.Digest); again != got {
		t.Error("the second time the digest is another")
	}
	return got, problems
}

func workload(apiVersion, kind, of, spec string) string {
	return fmt.Sprintf(digestBundle, apiVersion, kind, of, spec)
}

// Every kind with a pod template gets the digest into it.
func TestDigestsOfEveryWorkload(t *testing.T) {
	all := map[string]bool{}
	for _, c := range []struct{ apiVersion, kind, spec string }{
		{"apps/v1", "Deployment", "{template: " + podSpec + "}"},
		{"apps/v1", "StatefulSet", "{template: {metadata: {annotations: {x: y}}, " + podSpec[1:] + "}"},
		{"apps/v1", "DaemonSet", "{template: {metadata: null, " + podSpec[1:] + "}"},
		{"apps/v1", "ReplicaSet", "{template: {metadata: {annotations: null}, " + podSpec[1:] + "}"},
		{"batch/v1", "Job", "{template: " + podSpec + "}"},
		{"batch/v1", "CronJob", "{jobTemplate: {spec: {template: " + podSpec + "}}}"},
		{"argoproj.io/v1alpha1", "Rollout", "{template: " + podSpec + "}"},
	} {
		got, problems := digests(t, workload(c.apiVersion, c.kind, "configmaps/settings, secrets/login", c.spec))
		if len(problems) > 0 || !strings.HasPrefix(got, "sha256:") || len(got) != 71 {
			t.Errorf("%s: %q %v", c.kind, got, problems)
		}
		all[got] = true
	}
	if len(all) != 1 {
		t.Errorf("the same objects have %d digests", len(all))
	}
}

// The digest follows the data, not how it is written.
func TestDigestFollowsTheData(t *testing.T) {
	text := workload("apps/v1", "Deployment", "configmaps/settings,secrets/login", "{template: "+podSpec+"}")
	want, _ := digests(t, text)
	same := map[string]string{
		"order of the list": strings.Replace(text, "configmaps/settings,secrets/login", "secrets/login,configmaps/settings,secrets/login", 1),
		"singular":          strings.Replace(text, "configmaps/settings", "configmap/settings", 1),
		"data in base64":    strings.Replace(text, "stringData: {p: hunter2}", "data: {p: aHVudGVyMg==}", 1),
		"stringData wins":   strings.Replace(text, "stringData: {p: hunter2}", "data: {p: eA==}\nstringData: {p: hunter2}", 1),
		"order of keys":     strings.Replace(text, `{a: "1", b: "2"}`, `{b: "2", a: "1"}`, 1),
		"another label":     strings.Replace(text, "{name: settings, namespace: n}", "{name: settings, namespace: n, labels: {x: y}}", 1),
	}
	for name, text := range same {
		if got, problems := digests(t, text); got != want || len(problems) > 0 {
			t.Errorf("%s changes the digest", name)
		}
	}
	other := map[string]string{
		"a value":         strings.Replace(text, `a: "1"`, `a: "3"`, 1),
		"a Secret":        strings.Replace(text, "hunter2", "hunter3", 1),
		"a key":           strings.Replace(text, `a: "1"`, `c: "1"`, 1),
		"fewer objects":   strings.Replace(text, ",secrets/login", "", 1),
		"values switched": strings.Replace(text, `{a: "1", b: "2"}`, `{a: "2", b: "1"}`, 1),
		"binaryData":      strings.Replace(text, `data: {a: "1", b: "2"}`, `data: {a: "1"}`+"\nbinaryData: {b: Mg==, c: eA==}", 1),
	}
	for name, text := range other {
		if got, problems := digests(t, text); got == want || len(problems) > 0 {
			t.Errorf("%s does not change the digest", name)
		}
	}
}

func TestDigestsRefuses(t *testing.T) {
	deployment := "{template: " + podSpec + "}"
	for name, c := range map[string]struct{ text, want string }{
		"not in the bundle": {workload("apps/v1", "Deployment", "secrets/gone", deployment), "-:21: Deployment.apps n/w: metadata.annotations[brine.dev/digest-of]: Secret n/gone is not in this bundle"},
		"another namespace": {workload("apps/v1", "Deployment", "secrets/other", deployment), "Secret n/other is not in this bundle"},
		"another resource":  {workload("apps/v1", "Deployment", "pods/x", deployment), `"pods/x" is not configmaps/NAME or secrets/NAME`},
		"an empty list":     {workload("apps/v1", "Deployment", `""`, deployment), `"" is not configmaps/NAME`},
		"no pod template":   {workload("v1", "Service", "secrets/login", "{ports: []}"), "Service has no pod template"},
		"odd annotations":   {workload("example.com/v1", "Thing", "secrets/login", "{template: {metadata: {annotations: [x]}, spec: {}}}"), "not a mapping"},
	} {
		got, problems := digests(t, c.text)
		if len(problems) != 1 || !strings.Contains(problems[0].Error(), c.want) || got != "" {
			t.Errorf("%s: %q %v", name, got, problems)
		}
	}
}
