package cli

import (
	"bytes"
	"net/http"
	"slices"
	"strings"
	"testing"

	"brine/bundle/cluster/clustertest"
)

// complete is what the shell would offer at the end of a command line.
func (s *fixture) complete(args ...string) []string {
	s.Helper()
	line := append([]string{"__complete", args[0], "--kubeconfig", s.kubeconfig}, args[1:]...)
	var out, err bytes.Buffer
	if code := Run(s.Context(), Streams{In: strings.NewReader(""), Out: &out, Err: &err}, line); code != 0 {
		s.Fatalf("complete %v: exit code %d: %s", args, code, &err)
	}
	words := strings.Split(strings.TrimSpace(out.String()), "\n")
	if last := words[len(words)-1]; last != ":4" { // no files
		s.Errorf("complete %v ends with %q", args, last)
	}
	return words[:len(words)-1]
}

func TestCompletionFromTheCluster(t *testing.T) {
	s := newFixture(t)
	s.apply(configMap("a")).want(t, 0)
	s.apply(configMap("b")).want(t, 0)
	s.create("v1/configmaps", configMap("no-inventory"))

	for _, test := range []struct {
		offers string
		line   []string
	}{
		{s.inventory, []string{"status", "--inventory", ""}},
		{s.inventory, []string{"apply", "-f", "x", "--inventory", s.ns}},
		{"inv", []string{"destroy", "-n", s.ns, "--name", ""}},
		{s.ns, []string{"preview", "--namespace", ""}},
		{"Deployment.apps", []string{"apply", "--recreate", ""}},
		{"Job.batch,ConfigMap", []string{"rollback", "--recreate", "Job.batch,Conf"}},
	} {
		// A slow cluster may not answer in time.
		s.eventually(test.offers+" is offered", func() bool { return slices.Contains(s.complete(test.line...), test.offers) })
	}
	s.eventually("the only inventory of the namespace is offered", func() bool {
		return slices.Equal(s.complete("history", "-n", s.ns, "--name", ""), []string{"inv"})
	})
	var got []string
	s.eventually("revisions are offered", func() bool {
		got = s.complete("rollback", "--inventory", s.inventory, "")
		return len(got) > 0
	})
	if len(got) != 2 || !strings.HasPrefix(got[0], "2\t") || !strings.HasPrefix(got[1], "1\t") || !strings.Contains(got[0], "applied, 1 object") {
		t.Errorf("the revisions are %q", got)
	}
	if got := s.complete("rollback", "--inventory", s.inventory, "1", ""); len(got) > 0 {
		t.Errorf("after a revision it offers %v", got)
	}
}

// A shell that completes shows no error, whatever the cluster does.
func TestCompletionWithoutAnAnswerIsEmpty(t *testing.T) {
	s := newFixture(t)
	p := s.proxied()
	p.Intercept(func(clustertest.Request) clustertest.Action {
		return clustertest.Action{Status: http.StatusForbidden}
	})
	for _, line := range [][]string{{"status", "--inventory", ""}, {"apply", "-n", ""}, {"rollback", "--inventory", s.inventory, ""}} {
		if got := s.complete(line...); len(got) > 0 {
			t.Errorf("complete %q offers %v", line, got)
		}
	}
	s.kubeconfig = "/nowhere"
	if got := s.complete("status", "--inventory", ""); len(got) > 0 {
		t.Errorf("without a cluster it offers %v", got)
	}
}

func TestCompletionOfAnEnum(t *testing.T) {
	s := offline(t, "__complete", "inventory", "repair", "--dry-run", "").want(t, 0)
	if s.stdout != "none\nserver\n:4\n" {
		t.Errorf("it offers %q", s.stdout)
	}
}
