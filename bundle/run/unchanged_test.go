package run_test

import (
	"net/http"
	"strings"
	"testing"

	"brine/bundle/cluster/clustertest"
	"brine/bundle/report"
	"brine/cmd/brine/clitest"
)

// A run that has nothing to change writes nothing, the lock included. It writes
// what the inventory does not say yet, and waits with the lock only.
func TestRunThatChangesNothingWritesNothing(t *testing.T) {
	s := clitest.New(t)
	text := clitest.Documents(clitest.ConfigMap("a"), clitest.ConfigMap("gate", clitest.Annotations(`brine.dev/ready-when: "has(self.data.open)"`)))
	s.Apply(text, "--timeout=10s").Want(t, report.ExitNotReady)

	leased := 0
	p := s.Proxied()
	p.Intercept(func(r clustertest.Request) clustertest.Action {
		if r.IsWrite() && strings.Contains(r.Path, "/leases") {
			leased++
		}
		return clustertest.Action{}
	})
	s.Apply(text, "--timeout=10s").Want(t, report.ExitNotReady)
	if leased == 0 {
		t.Error("it waited without the lock")
	}
	s.Merge("v1/configmaps", s.NS, "gate", `{"data":{"open":"yes"}}`)

	leased = 0
	s.Apply(text).Want(t, 0)
	if by := methods(p.Writes()); leased != 2 || by[http.MethodPut] < 3 || by[http.MethodDelete] > 0 {
		t.Errorf("gate is ready by now, and the inventory is to say so: %d writes of the lock, %v", leased, by)
	}
	p.Forget()
	got := s.Apply(text).Want(t, 0)
	if w := p.Writes(); len(w) > 0 {
		t.Errorf("it wrote %v", clitest.Describe(w))
	}
	if got.Result.Summary.Unchanged != 2 || got.Result.Revision == 0 {
		t.Errorf("the result holds %d unchanged, revision %d", got.Result.Summary.Unchanged, got.Result.Revision)
	}
}

// What is kept of the members that left the bundle needs no write either, once the history
// has the bundle.
func TestRunThatKeepsMembersWritesNothing(t *testing.T) {
	s := clitest.New(t)
	late := clitest.PodWith("late", "schedulingGates: [{name: example.com/wait}]")
	s.Apply(clitest.Documents(clitest.ConfigMap("a"), late), "--wait=applied").Want(t, 0)
	text := clitest.ConfigMap("a")
	s.Apply(text, "--no-prune").Want(t, 0)
	s.Holds("ConfigMap a", "Pod late") // it is waited for no more
	p := s.Proxied()
	got := s.Apply(text, "--no-prune").Want(t, 0)
	if w := p.Writes(); len(w) > 0 || got.Result.Revision != 2 {
		t.Errorf("it wrote %v, revision %d", clitest.Describe(w), got.Result.Revision)
	}
}

func methods(requests []clustertest.Request) map[string]int {
	by := map[string]int{}
	for _, r := range requests {
		by[r.Method]++
	}
	return by
}

// Another run that writes the inventory while this one finds everything unchanged is
// the later one: what it says stays.
func TestRunThatChangesNothingGivesWay(t *testing.T) {
	s := clitest.New(t)
	text := clitest.ConfigMap("a")
	s.Apply(text, "--history-limit=0").Want(t, 0)
	direct := *s
	p := s.Proxied()
	done := false
	p.Intercept(func(r clustertest.Request) clustertest.Action {
		if r.IsWrite() && strings.Contains(r.Path, "/leases") && !done {
			done = true
			direct.Apply(clitest.Documents(text, clitest.ConfigMap("b"))).Want(t, 0)
		}
		return clustertest.Action{}
	})
	s.Apply(text).Want(t, 0) // its revision is not there yet
	if !done {
		t.Fatal("it never asked for the lock")
	}
	s.Holds("ConfigMap a", "ConfigMap b")
}
