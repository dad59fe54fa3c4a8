package cluster_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"brine/bundle/cluster/clustertest"
	"brine/bundle/report"
	"brine/cmd/brine/clitest"
)

// An API server that starts refuses what another one has allowed.
func TestRefusalOfWhatWasAllowedIsRetried(t *testing.T) {
	text := clitest.Documents(clitest.ServiceAccount("a"), strings.Replace(clitest.ServiceAccount("b"), "{name: b,", "{name: b, "+clitest.DependsOn("/namespaces/{ns}/ServiceAccount/a")+",", 1))
	denied := func(s *clitest.Fixture) clustertest.Action {
		return clustertest.Action{Status: http.StatusForbidden, Message: fmt.Sprintf(`serviceaccounts "b" is forbidden: User "jane" cannot patch resource "serviceaccounts" in API group "" in the namespace %q`, s.NS)}
	}
	for name, c := range map[string]struct {
		refuse  func(s *clitest.Fixture, r clustertest.Request, n int32) (clustertest.Action, bool)
		exit    int
		says    string
		patches int // of serviceaccounts; 0: any number
	}{
		"once": {
			refuse: func(s *clitest.Fixture, r clustertest.Request, n int32) (clustertest.Action, bool) {
				return denied(s), strings.HasSuffix(r.Path, "/serviceaccounts/b") && n == 2
			},
			says: "retrying", patches: 3,
		},
		"for good": {
			refuse: func(s *clitest.Fixture, r clustertest.Request, _ int32) (clustertest.Action, bool) {
				return denied(s), strings.HasSuffix(r.Path, "/serviceaccounts/b")
			},
			exit: report.ExitFailed, says: "it was allowed earlier in this run: the right was taken away",
		},
		"never allowed": {
			refuse: func(s *clitest.Fixture, r clustertest.Request, _ int32) (clustertest.Action, bool) {
				return denied(s), strings.Contains(r.Path, "/serviceaccounts/")
			},
			exit: report.ExitFailed, says: "cannot patch resource", patches: 1,
		},
		"by admission": {
			refuse: func(_ *clitest.Fixture, r clustertest.Request, _ int32) (clustertest.Action, bool) {
				return clustertest.Action{Status: http.StatusForbidden, Message: `serviceaccounts "b" is forbidden: exceeded quota: q`}, strings.HasSuffix(r.Path, "/serviceaccounts/b")
			},
			exit: report.ExitFailed, says: "exceeded quota", patches: 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := clitest.New(t)
			p := s.Proxied()
			var n atomic.Int32
			p.Intercept(func(r clustertest.Request) clustertest.Action {
				if r.Method != http.MethodPatch || !strings.Contains(r.Path, "/serviceaccounts/") {
					return clustertest.Action{}
				}
				if action, refused := c.refuse(s, r, n.Add(1)); refused {
					return action
				}
				return clustertest.Action{}
			})
			s.Apply(text).Want(t, c.exit).Prints(t, c.says)
			if c.patches > 0 && int(n.Load()) != c.patches {
				t.Errorf("%d patches, want %d", n.Load(), c.patches)
			}
		})
	}
}
