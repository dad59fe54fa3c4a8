package ready_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/cmd/brine/clitest"
)

// reasonsOf is what the result says of an object that is not ready, in one text.
func reasonsOf(t testing.TB, s clitest.Outcome, kind, name string) string {
	t.Helper()
	return strings.Join(s.Object(t, kind, name).Why, "\n")
}

// notReady applies a text, with more time where the controllers are slow, until what is
// said of an object has all parts.
func notReady(s *clitest.Fixture, text, kind, name string, parts ...string) {
	s.Helper()
	var says string
	for _, timeout := range []string{"5s", "20s", "2m"} {
		result := s.Apply(text, "--timeout="+timeout).Want(s, 4)
		says = reasonsOf(s, result, kind, name) + result.Object(s, kind, name).Reason
		if !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(says, part) }) {
			return
		}
	}
	s.Errorf("it says:\n%s", says)
}

func TestDiagnosisOfAnUnschedulablePod(t *testing.T) {
	s := clitest.New(t)
	text := strings.Replace(clitest.Deployment("web", 2, "1m"), "      containers:", "      nodeSelector: {foo: bar}\n      containers:", 1)
	notReady(s, text, "Deployment", "web", "0/", "nodes are available")
	// The same in text, and in events.
	s.Apply(text, "--timeout=5s", "-o", "text").Want(t, 4).Prints(t, "nodes are available")
	events := s.Apply(text, "--timeout=5s", "-o", "events").Want(t, 4)
	found := false
	for line := range strings.SplitSeq(events.Stdout, "\n") {
		var event struct {
			Type string
			Why  []string
		}
		_ = json.Unmarshal([]byte(line), &event)
		found = found || event.Type == "diagnosed" && strings.Contains(strings.Join(event.Why, " "), "nodes are available")
	}
	if !found {
		t.Errorf("no event says why:\n%s", clitest.Clip(events.Stdout))
	}
}

func TestDiagnosisOfAQuota(t *testing.T) {
	s := clitest.New(t)
	quota := "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: none, namespace: \"{ns}\"}\nspec: {hard: {pods: \"0\"}}\n"
	notReady(s, clitest.Documents(quota, clitest.Deployment("web", 1, "1m")), "Deployment", "web", "exceeded quota: none")
}

func TestDiagnosisOfImageAndCrashLoop(t *testing.T) {
	for name, state := range map[string]string{
		"ImagePullBackOff": `{"waiting":{"reason":"ImagePullBackOff","message":"Back-off pulling image \"nowhere/app:1\""}}`,
		"CrashLoopBackOff": `{"waiting":{"reason":"CrashLoopBackOff","message":"back-off 40s restarting failed container"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			s := clitest.New(t)
			go s.SetContainerState("late", state)
			notReady(s, clitest.PodWith("late", "nodeName: ghost"), "Pod", "late", name)
		})
	}
}

func TestDiagnosisTakesFewRequests(t *testing.T) {
	s := clitest.New(t)
	var texts []string
	for i := range 30 {
		texts = append(texts, strings.Replace(clitest.Deployment(fmt.Sprintf("web-%d", i), 2, "1m"), "      containers:", "      nodeSelector: {foo: bar}\n      containers:", 1))
	}
	text := clitest.Documents(texts...)
	s.Apply(text, "--wait=applied").Want(t, 0)
	s.Eventually("pods that no node takes", func() bool {
		pods, err := s.Resources("v1/pods").Namespace(s.NS).List(s.Context(), metav1.ListOptions{})
		return err == nil && len(slices.DeleteFunc(pods.Items, func(u unstructured.Unstructured) bool {
			conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
			return len(conditions) == 0
		})) == 60
	})
	p := s.Proxied()
	result := s.Apply(text, "--timeout=8s").Want(t, 4)
	for i := range 30 {
		if why := reasonsOf(t, result, "Deployment", fmt.Sprintf("web-%d", i)); !strings.Contains(why, "nodes are available") {
			t.Errorf("of web-%d it says:\n%s", i, why)
		}
	}
	reads := map[string]int{}
	for _, r := range p.Requests() {
		for _, kind := range []string{"pods", "replicasets", "events", "nodes"} {
			if r.Method == http.MethodGet && strings.Contains(r.Path, "/"+kind) {
				reads[kind]++
			}
		}
	}
	if n := reads["pods"] + reads["replicasets"] + reads["events"]; n == 0 || n > 30 {
		t.Errorf("it took %v", reads)
	}
	t.Log(reads)
}
