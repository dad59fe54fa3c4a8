package traces_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle/cluster/clustertest"
	"brine/cmd/brine/clitest"
	"brine/inventory"
)

// lines are the spans that came since the last call, each with its parent and how it
// ended. The fixture's namespace is left out.
func (g *received) lines(s *clitest.Fixture) []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	names := map[string]string{}
	for _, span := range g.spans {
		names[string(span.GetSpanId())] = span.GetName()
	}
	var lines []string
	for _, span := range g.spans {
		line := span.GetName() + " < " + names[string(span.GetParentSpanId())]
		if span.GetStatus().GetCode() == tracev1.Status_STATUS_CODE_ERROR {
			line += ": error"
		}
		if span.GetStartTimeUnixNano() > span.GetEndTimeUnixNano() {
			s.Errorf("%s ends before it begins", line)
		}
		lines = append(lines, strings.ReplaceAll(line, s.NS+"/", ""))
	}
	if all := fmt.Sprint(g.spans); strings.Contains(all, "swordfish") || strings.Contains(all, "c3dvcmRmaXNo") {
		s.Error("a span has the value of a Secret")
	}
	g.spans = nil
	slices.Sort(lines)
	return lines
}

// The commands send what they did on a cluster.
func TestSpansOfRunsOnACluster(t *testing.T) {
	s := clitest.On(t, clustertest.Shared(t))
	got := listen(t, http.StatusOK)
	wants := func(command string, want ...string) {
		t.Helper()
		lines := got.lines(s)
		want = append(want, "prepare < brine "+command)
		if slices.Sort(want); !slices.Equal(lines, want) {
			t.Errorf("%s sent\n%s\nwant\n%s", command, strings.Join(lines, "\n"), strings.Join(want, "\n"))
		}
	}
	hidden := "apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: {ns}}\nstringData: {password: swordfish-swordfish}\n"
	good := clitest.Documents(hidden, clitest.ConfigMap("a"), clitest.ConfigMap("old"), clitest.Deployment("web", 1, "1m", clitest.DependsOn("/namespaces/{ns}/ConfigMap/a")))
	s.Apply(good).Want(t, 0)
	wants("apply", "finish < brine apply", "brine apply < ", "apply < brine apply", "created ConfigMap a < apply", "created ConfigMap old < apply", "created Deployment.apps web < apply", "created Secret s < apply")

	// The server's answer quotes a name, which is the Secret's value.
	bad := clitest.Documents(hidden, clitest.ConfigMap("a"), clitest.PodWith("p", "priorityClassName: swordfish-swordfish"), clitest.Deployment("web", 1, "2m"))
	s.Preview(bad).Want(t, 1)
	wants("preview", "brine preview < : error") // what it asks about an object has no times
	s.Apply(bad).Want(t, 1)
	wants("apply", "finish < brine apply", "brine apply < : error", "apply < brine apply", "failed Pod p < apply: error", "configured Deployment.apps web < apply")

	s.Destroy().Want(t, 0)
	wants("destroy", "finish < brine destroy", "brine destroy < ", "prune < brine destroy", "pruned ConfigMap a < prune", "pruned ConfigMap old < prune", "pruned Deployment.apps web < prune", "pruned Secret s < prune")
}

// When spans are sent, the run is over: its result and reports are written, and its lock
// is free. A collector that never answers, or is not there, changes nothing of that, and
// one that refuses is asked once.
func TestCollectorThatDoesNotAnswer(t *testing.T) {
	s := clitest.On(t, clustertest.Shared(t))
	file := filepath.Join(t.TempDir(), "result.json")
	free := func() bool {
		lease := s.Live("coordination.k8s.io/v1/leases", s.NS, inventory.LockName("inv"))
		if lease == nil {
			return true
		}
		holder, _, _ := unstructured.NestedString(lease.Object, "spec", "holderIdentity")
		return holder == ""
	}
	asked := 0
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		_, _ = io.Copy(io.Discard, r.Body) // only then the server notices that the client is gone
		if _, err := os.Stat(file); err != nil || !free() {
			t.Errorf("spans are sent before the run is over: %v", err)
		}
		if r.Header.Get("refuse") != "" {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		<-r.Context().Done()
	}))
	defer slow.Close()
	down := httptest.NewServer(nil)
	down.Close()
	for i, c := range []struct{ url, headers string }{{down.URL, ""}, {slow.URL, "refuse=1"}, {slow.URL, ""}} {
		t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", c.url)
		t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", c.headers)
		asked = 0
		did := s.Apply(clitest.ConfigMapOf("a", fmt.Sprintf("{key: v%d}", i)), "--report", file).Want(t, 0)
		if did.Result == nil || did.Result.ExitCode != 0 || strings.Count(did.Stderr, "warning: send traces: ") != 1 {
			t.Errorf("%s: %s", c, did.Stderr)
		}
		if want := min(i, 1); asked != want {
			t.Errorf("%s: it was asked %d times, want %d", c, asked, want)
		}
		if err := os.Remove(file); err != nil {
			t.Error(err)
		}
	}
}
