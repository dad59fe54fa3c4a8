package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// why is what the result says of an object that is not ready, in one text.
func (s outcome) why(t testing.TB, kind, name string) string {
	t.Helper()
	return strings.Join(s.object(t, kind, name).Why, "\n")
}

func TestDiagnosisOfAnUnschedulablePod(t *testing.T) {
	s := newFixture(t)
	text := strings.Replace(deployment("web", 2, "1m"), "      containers:", "      nodeSelector: {foo: bar}\n      containers:", 1)
	result := s.apply(text, "--timeout=5s").want(t, 4)
	if why := result.why(t, "Deployment", "web"); !strings.Contains(why, "0/") || !strings.Contains(why, "nodes are available") {
		t.Errorf("it says:\n%s", why)
	}
	// The same in text, and in events.
	s.apply(text, "--timeout=5s", "-o", "text").want(t, 4).prints(t, "nodes are available")
	events := s.apply(text, "--timeout=5s", "-o", "events").want(t, 4)
	found := false
	for line := range strings.SplitSeq(events.stdout, "\n") {
		var event struct {
			Type string
			Why  []string
		}
		_ = json.Unmarshal([]byte(line), &event)
		found = found || event.Type == "diagnosed" && strings.Contains(strings.Join(event.Why, " "), "nodes are available")
	}
	if !found {
		t.Errorf("no event says why:\n%s", clip(events.stdout))
	}
}

func TestDiagnosisOfAQuota(t *testing.T) {
	s := newFixture(t)
	quota := "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: none, namespace: \"{ns}\"}\nspec: {hard: {pods: \"0\"}}\n"
	result := s.apply(documents(quota, deployment("web", 1, "1m")), "--timeout=8s").want(t, 4)
	if why := result.why(t, "Deployment", "web"); !strings.Contains(why, "exceeded quota: none") {
		t.Errorf("it says:\n%s", why)
	}
}

// state sets the state of the container of a pod that no kubelet has.
func (s *fixture) state(pod, containerState string) {
	for range 100 {
		_, err := s.resources("v1/pods").Namespace(s.ns).Patch(context.Background(), pod, types.MergePatchType,
			[]byte(`{"status":{"containerStatuses":[{"name":"c","image":"i","imageID":"","ready":false,"restartCount":3,"state":`+containerState+`}]}}`),
			metav1.PatchOptions{}, "status")
		if err == nil {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func TestDiagnosisOfImageAndCrashLoop(t *testing.T) {
	for name, state := range map[string]string{
		"ImagePullBackOff": `{"waiting":{"reason":"ImagePullBackOff","message":"Back-off pulling image \"nowhere/app:1\""}}`,
		"CrashLoopBackOff": `{"waiting":{"reason":"CrashLoopBackOff","message":"back-off 40s restarting failed container"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t)
			go s.state("late", state)
			result := s.apply(podWith("late", "nodeName: ghost"), "--timeout=5s").want(t, 4)
			if why := result.why(t, "Pod", "late") + result.object(t, "Pod", "late").Reason; !strings.Contains(why, name) {
				t.Errorf("it says:\n%s", why)
			}
		})
	}
}

func TestDiagnosisTakesFewRequests(t *testing.T) {
	s := newFixture(t)
	var texts []string
	for i := range 30 {
		texts = append(texts, strings.Replace(deployment(fmt.Sprintf("web-%d", i), 2, "1m"), "      containers:", "      nodeSelector: {foo: bar}\n      containers:", 1))
	}
	p := s.proxied()
	result := s.apply(documents(texts...), "--timeout=8s").want(t, 4)
	for i := range 30 {
		if why := result.why(t, "Deployment", fmt.Sprintf("web-%d", i)); !strings.Contains(why, "nodes are available") {
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
