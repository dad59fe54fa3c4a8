package cli_test

import (
	"bytes"
	"net/http"
	"slices"
	"strings"
	"testing"

	"brine/bundle/cluster/clustertest"
	"brine/cmd/brine/cli"
	"brine/cmd/brine/clitest"
)

// completions is what the shell would offer at the end of a command line.
func completions(s *clitest.Fixture, args ...string) []string {
	s.Helper()
	line := append([]string{"__complete", args[0], "--kubeconfig", s.Kubeconfig}, args[1:]...)
	var out, err bytes.Buffer
	if code := cli.Run(s.Context(), cli.Streams{In: strings.NewReader(""), Out: &out, Err: &err}, line); code != 0 {
		s.Fatalf("complete %v: exit code %d: %s", args, code, &err)
	}
	words := strings.Split(strings.TrimSpace(out.String()), "\n")
	if last := words[len(words)-1]; last != ":4" { // no files
		s.Errorf("complete %v ends with %q", args, last)
	}
	return words[:len(words)-1]
}

func TestCompletionFromTheCluster(t *testing.T) {
	s := clitest.New(t)
	s.Apply(clitest.ConfigMap("a")).Want(t, 0)
	s.Apply(clitest.ConfigMap("b")).Want(t, 0)
	s.Create("v1/configmaps", clitest.ConfigMap("no-inventory"))

	for _, test := range []struct {
		offers string
		line   []string
	}{
		{s.Inventory, []string{"status", "--inventory", ""}},
		{s.Inventory, []string{"apply", "-f", "x", "--inventory", s.NS}},
		{"inv", []string{"destroy", "-n", s.NS, "--name", ""}},
		{s.NS, []string{"preview", "--namespace", ""}},
		{"Deployment.apps", []string{"apply", "--recreate", ""}},
		{"Job.batch,ConfigMap", []string{"rollback", "--recreate", "Job.batch,Conf"}},
	} {
		// A slow cluster may not answer in time.
		s.Eventually(test.offers+" is offered", func() bool { return slices.Contains(completions(s, test.line...), test.offers) })
	}
	s.Eventually("the only inventory of the namespace is offered", func() bool {
		return slices.Equal(completions(s, "history", "-n", s.NS, "--name", ""), []string{"inv"})
	})
	var got []string
	s.Eventually("revisions are offered", func() bool {
		got = completions(s, "rollback", "--inventory", s.Inventory, "")
		return len(got) > 0
	})
	if len(got) != 2 || !strings.HasPrefix(got[0], "2\t") || !strings.HasPrefix(got[1], "1\t") || !strings.Contains(got[0], "applied, 1 object") {
		t.Errorf("the revisions are %q", got)
	}
	if got := completions(s, "rollback", "--inventory", s.Inventory, "1", ""); len(got) > 0 {
		t.Errorf("after a revision it offers %v", got)
	}
}

// A shell that completes shows no error, whatever the cluster does.
func TestCompletionWithoutAnAnswerIsEmpty(t *testing.T) {
	s := clitest.New(t)
	p := s.Proxied()
	p.Intercept(func(clustertest.Request) clustertest.Action {
		return clustertest.Action{Status: http.StatusForbidden}
	})
	for _, line := range [][]string{{"status", "--inventory", ""}, {"apply", "-n", ""}, {"rollback", "--inventory", s.Inventory, ""}} {
		if got := completions(s, line...); len(got) > 0 {
			t.Errorf("complete %q offers %v", line, got)
		}
	}
	s.Kubeconfig = "/nowhere"
	if got := completions(s, "status", "--inventory", ""); len(got) > 0 {
		t.Errorf("without a cluster it offers %v", got)
	}
}

func TestCompletionOfAnEnum(t *testing.T) {
	s := clitest.Offline(t, "__complete", "inventory", "repair", "--dry-run", "").Want(t, 0)
	if s.Stdout != "none\nserver\n:4\n" {
		t.Errorf("it offers %q", s.Stdout)
	}
}
