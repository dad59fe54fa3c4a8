package cli_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"brine/bundle/cluster/clustertest"
	"brine/cmd/brine/clitest"
)

// at runs a command line that names the inventory itself, or does not.
func at(s *clitest.Fixture, line string) clitest.Outcome {
	return clitest.Command(s.Context(), nil, append(strings.Fields(line), "--kubeconfig", s.Kubeconfig)...)
}

func TestInventoryAsArgument(t *testing.T) {
	s := clitest.New(t)
	s.Apply(clitest.ConfigMap("a")).Want(t, 0)
	for _, line := range []string{
		"status " + s.Inventory, "history " + s.Inventory, "drift " + s.Inventory,
		"status inv -n " + s.NS, "destroy --dry-run server " + s.Inventory,
		// Without any, the only one of the namespace.
		"status -n " + s.NS, "history -n " + s.NS, "drift -n " + s.NS, "history show 1 -n " + s.NS, "diff 1 -n " + s.NS,
	} {
		got := at(s, line).Want(t, 0)
		named := strings.Contains(line, " inv ") || strings.Contains(line, "/inv")
		if said := strings.Contains(got.Stderr, "inventory "+s.Inventory+", the only one of the namespace "+s.NS); said == named {
			t.Errorf("%s: stderr is %q", line, got.Stderr)
		}
	}
	t.Run("completion", func(*testing.T) {
		for _, command := range []string{"status", "history", "drift", "destroy"} {
			s.Eventually(command+" offers it", func() bool { return slices.Contains(completions(s, command, ""), s.Inventory) })
		}
	})
	for line, want := range map[string]string{
		"status a b":                  "takes one inventory, not 2: a b",
		"status a --name b":           "give only one of them",
		"destroy a --inventory b":     "give only one of them",
		"status Shop!":                "--inventory=Shop!",
		"destroy -n " + s.NS:          "the inventory has no name",
		"rollback -n " + s.NS:         "the inventory has no name",
		"inventory repair -n " + s.NS: "the inventory has no name",
		"status -n kube-public":       "there is no inventory in the namespace kube-public",
	} {
		if got := at(s, line).Want(t, 3); !strings.Contains(got.Stderr, want) {
			t.Errorf("%s: %s", line, got.Stderr)
		}
	}
	other := s.Other("second")
	other.Apply(clitest.ConfigMap("b")).Want(t, 0)
	if got := at(s, "status -n "+s.NS).Want(t, 3); !strings.Contains(got.Stderr, "the namespace "+s.NS+" has inv, second") {
		t.Errorf("of two it says: %s", got.Stderr)
	}
	s.Proxied().Intercept(func(r clustertest.Request) clustertest.Action {
		if strings.HasSuffix(r.Path, "/configmaps") {
			return clustertest.Action{Status: http.StatusForbidden}
		}
		return clustertest.Action{}
	})
	if got := at(s, "status -n "+s.NS).Want(t, 3); !strings.Contains(got.Stderr, "the inventory has no name") {
		t.Errorf("without the right to list it says: %s", got.Stderr)
	}
}
