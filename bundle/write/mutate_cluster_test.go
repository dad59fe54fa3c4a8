package write_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle/plan"
	"brine/cmd/brine/clitest"
)

// Scenarios of cli-utils' end-to-end suite (its test/e2e, v0.37.2:
// mutation).

func TestApplyTimeMutationSetsAFieldFromALiveObject(t *testing.T) {
	s := clitest.New(t)
	text := clitest.Documents(
		`apiVersion: v1
kind: Pod
metadata:
  name: pod-a
  namespace: {ns}
  annotations:
    config.kubernetes.io/apply-time-mutation: |
      - sourceRef: {kind: Pod, name: pod-b}
        sourcePath: $.status.podIP
        targetPath: $.spec.containers[?(@.name=="c")].env[?(@.name=="SERVICE_HOST")].value
        token: ${pob-b-ip}
      - sourceRef: {kind: Pod, name: pod-b}
        sourcePath: $.spec.containers[?(@.name=="c")].ports[?(@.name=="http")].containerPort
        targetPath: $.spec.containers[?(@.name=="c")].env[?(@.name=="SERVICE_HOST")].value
        token: ${pob-b-port}
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - name: c
    image: registry.k8s.io/pause:3.10
    env: [{name: SERVICE_HOST, value: "${pob-b-ip}:${pob-b-port}"}]
`,
		strings.Replace(clitest.Pod("pod-b"), "[{containerPort: 80}]", "[{name: http, containerPort: 80}]", 1))
	s.Apply(text).Want(t, 0)
	ip, _, _ := unstructured.NestedString(s.Live("v1/pods", s.NS, "pod-b").Object, "status", "podIP")
	body, _ := s.Live("v1/pods", s.NS, "pod-a").MarshalJSON()
	if ip == "" || !strings.Contains(string(body), `"value":"`+ip+`:80"`) {
		t.Errorf("pod-a does not hold %s:80", ip)
	}
	// Again: the same values, nothing to change; and then the other way round.
	s.Apply(text).Want(t, 0).Did(t, "Pod", "pod-a", plan.Unchanged)
	result := s.Destroy().Want(t, 0)
	if a, b := result.Object(t, "Pod", "pod-a"), result.Object(t, "Pod", "pod-b"); b.StartedAt < a.ReadyAt {
		t.Errorf("pod-b was deleted at %v, before pod-a was gone at %v", b.StartedAt, a.ReadyAt)
	}
}

func TestApplyTimeMutationFollowsItsSourceAndHidesSecrets(t *testing.T) {
	s := clitest.New(t)
	const first, second = "Zmlyc3QtdmFsdWU=", "c2Vjb25kLXZhbHVl" // first-value, second-value
	bundle := func(value string) string {
		return clitest.Documents(
			"apiVersion: v1\nkind: Secret\nmetadata: {name: source, namespace: \"{ns}\"}\ndata: {token: "+value+"}\n",
			`apiVersion: v1
kind: ConfigMap
metadata:
  name: target
  namespace: {ns}
  annotations:
    config.kubernetes.io/apply-time-mutation: |
      - {sourceRef: {kind: Secret, name: source}, sourcePath: $.data.token, targetPath: $.data.token}
data: {token: filled when applied}
`)
	}
	s.Apply(bundle(first)).Want(t, 0)
	result := s.Apply(bundle(second), "-v").Want(t, 0)
	// The target's own text did not change, its source did.
	result.Did(t, "ConfigMap", "target", plan.Configured)
	live := s.Data("target")["token"]
	if live != second {
		t.Error("the target does not hold the source's new value")
	}
	if strings.Contains(result.Stdout+result.Stderr, first) || strings.Contains(result.Stdout+result.Stderr, second) {
		t.Error("a Secret's value is shown")
	}
}
