package ready_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"brine/cmd/brine/clitest"
)

// reasonsOf is what the result says of an object that is not ready, in one text.
func reasonsOf(t testing.TB, s clitest.Outcome, kind, name string) string {
	t.Helper()
	return strings.Join(s.Object(t, kind, name).Why, "\n")
}

func TestDiagnosisOfAnUnschedulablePod(t *testing.T) {
	s := clitest.New(t)
	text := strings.Replace(clitest.Deployment("web", 2, "1m"), "      containers:", "      nodeSelector: {foo: bar}\n      containers:", 1)
	result := s.Apply(text, "--timeout=5s").Want(t, 4)
	if why := reasonsOf(t, result, "Deployment", "web"); !strings.Contains(why, "0/") || !strings.Contains(why, "nodes are available") {
		t.Errorf("it says:\n%s", why)
	}
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
	result := s.Apply(clitest.Documents(quota, clitest.Deployment("web", 1, "1m")), "--timeout=8s").Want(t, 4)
	if why := reasonsOf(t, result, "Deployment", "web"); !strings.Contains(why, "exceeded quota: none") {
		t.Errorf("it says:\n%s", why)
	}
}

func TestDiagnosisOfImageAndCrashLoop(t *testing.T) {
	for name, state := range map[string]string{
		"ImagePullBackOff": `{"waiting":{"reason":"ImagePullBackOff","message":"Back-off pulling image \"nowhere/app:1\""}}`,
		"CrashLoopBackOff": `{"waiting":{"reason":"CrashLoopBackOff","message":"back-off 40s restarting failed container"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			s := clitest.New(t)
			go s.SetContainerState("late", state)
			result := s.Apply(clitest.PodWith("late", "nodeName: ghost"), "--timeout=5s").Want(t, 4)
			if why := reasonsOf(t, result, "Pod", "late") + result.Object(t, "Pod", "late").Reason; !strings.Contains(why, name) {
				t.Errorf("it says:\n%s", why)
			}
		})
	}
}

func TestDiagnosisTakesFewRequests(t *testing.T) {
	s := clitest.New(t)
	var texts []string
	for i := range 30 {
		texts = append(texts, strings.Replace(clitest.Deployment(fmt.Sprintf("web-%d", i), 2, "1m"), "      containers:", "      nodeSelector: {foo: bar}\n      containers:", 1))
	}
	p := s.Proxied()
	result := s.Apply(clitest.Documents(texts...), "--timeout=8s").Want(t, 4)
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
