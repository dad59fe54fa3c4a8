package apply_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"brine/cmd/brine/clitest"
)

// The result says what every object waited for, and which chain of them took the
// run's time.
func TestCriticalPathOfARun(t *testing.T) {
	s := clitest.New(t)
	slow := clitest.ConfigMap("slow", clitest.Annotations(`brine.dev/ready-when: "has(self.data.open)"`))
	text := clitest.Documents(slow, clitest.ConfigMap("next", clitest.DependsOn("/namespaces/{ns}/ConfigMap/slow")), clitest.ConfigMap("other"))
	opened := make(chan struct{})
	go func() {
		defer close(opened)
		s.Eventually("slow is there", func() bool { return s.ConfigMap("slow") != nil })
		s.Merge("v1/configmaps", s.NS, "slow", `{"data":{"open":"yes"}}`)
	}()
	page := filepath.Join(t.TempDir(), "run.html")
	got := s.Apply(text, "--report", page).Want(t, 0)
	<-opened
	path := got.Result.CriticalPath
	if path == nil || len(path.Steps) != 2 || path.Steps[0].Name != "slow" || path.Steps[1].Name != "next" || path.Longest != 0 {
		t.Fatalf("the critical path is %+v", path)
	}
	if first, second := path.Steps[0], path.Steps[1]; !strings.Contains(first.Reason, "ready-when") || second.From != first.Until || second.Until != path.Seconds {
		t.Errorf("its steps are %+v", path.Steps)
	}
	next := got.Object(t, "ConfigMap", "next")
	if next.After == nil || next.After.Name != "slow" || next.After.Want != "ready" || next.QueuedAt < got.Object(t, "ConfigMap", "slow").ReadyAt || next.StartedAt < next.QueuedAt {
		t.Errorf("next: %+v after %+v", next, next.After)
	}
	if other := got.Object(t, "ConfigMap", "other"); other.After != nil || len(other.Waits) > 0 {
		t.Errorf("other: %+v", other)
	}
	if text, err := os.ReadFile(page); err != nil || !strings.Contains(string(text), `id="time"`) {
		t.Errorf("the page shows no times: %v", err)
	}
	if s.Preview(text).Want(t, 0).Result.CriticalPath != nil {
		t.Error("a preview has a critical path")
	}
	gone := s.Destroy().Want(t, 0)
	if path := gone.Result.CriticalPath; path == nil || path.Steps[len(path.Steps)-1].Name != "slow" {
		t.Errorf("the critical path of the destroy is %+v", path)
	}
}
