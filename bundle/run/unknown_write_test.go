package run_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"brine/bundle/cluster/clustertest"
	"brine/cmd/brine/clitest"
	"brine/cmd/brine/output/salt"
)

// So may an object with generateName, which no second request looks for.
func TestCreationWhoseAnswerIsLost(t *testing.T) {
	s := clitest.New(t)
	s.Proxied().Intercept(func(r clustertest.Request) clustertest.Action {
		if r.Method == http.MethodPost && strings.HasSuffix(r.Path, "/"+s.NS+"/serviceaccounts") && !r.DryRun {
			return clustertest.Action{CutAfter: true}
		}
		return clustertest.Action{}
	})
	got := s.Apply("apiVersion: v1\nkind: ServiceAccount\nmetadata: {generateName: once-, namespace: \"{ns}\"}\n", "--allow-generate-name").Want(t, 1).Prints(t, "it may have been created nevertheless")
	if comment, _ := salt.State(got.Result, time.Now())["comment"].(string); !got.Result.Objects[0].Unknown || !strings.Contains(comment, "Failed, and objects may have changed: inventory ") {
		t.Errorf("Salt is told %q", comment)
	}
}

// A write whose answer was lost may have been stored: no output says that nothing was changed.
func TestWriteWhoseAnswerIsLost(t *testing.T) {
	for name, test := range map[string]struct {
		action  clustertest.Action
		unknown bool
		says    string
	}{
		"lost":    {clustertest.Action{CutAfter: true}, true, "Failed, and objects may have changed: inventory "},
		"refused": {clustertest.Action{Status: 422, Message: "no"}, false, "Failed, and nothing was changed: inventory "},
	} {
		t.Run(name, func(t *testing.T) {
			s := clitest.New(t)
			s.Apply(clitest.ConfigMap("a")).Want(t, 0)
			s.Proxied().Intercept(func(r clustertest.Request) clustertest.Action {
				if r.IsWrite() && strings.HasSuffix(r.Path, "/configmaps/a") && !r.DryRun {
					return test.action
				}
				return clustertest.Action{}
			})
			got := s.Apply(strings.Replace(clitest.ConfigMap("a"), "key: value", "key: other", 1), "--retry-timeout=1s").Want(t, 1)
			if len(got.Result.Objects) != 1 || got.Result.Objects[0].Unknown != test.unknown {
				t.Errorf("the result has %s", clitest.Clip(got.Stdout))
			}
			if comment, _ := salt.State(got.Result, time.Now())["comment"].(string); !strings.Contains(comment, test.says) {
				t.Errorf("Salt is told %q, and not %q", comment, test.says)
			}
		})
	}
}
