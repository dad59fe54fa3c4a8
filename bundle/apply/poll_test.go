package apply_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"brine/bundle/cluster/clustertest"
	"brine/bundle/report"
	"brine/cmd/brine/clitest"
)

// Without the right to watch, objects are asked for at a pace: by a LIST where
// they are many, and with a few requests at once where they may not be listed.
func TestPollingWithoutWatchRights(t *testing.T) {
	for _, list := range []bool{true, false} {
		t.Run(fmt.Sprintf("list=%v", list), func(t *testing.T) {
			s := clitest.New(t)
			p := s.Proxied()
			var lists, gets, now, most atomic.Int64
			var applying atomic.Bool
			p.Intercept(func(r clustertest.Request) clustertest.Action {
				applying.CompareAndSwap(false, r.Method == http.MethodPatch)
				if r.Method != http.MethodGet || !strings.Contains(r.Path, "/deployments") {
					return clustertest.Action{}
				}
				if strings.Contains(r.Path, "/deployments/") {
					if !applying.Load() {
						return clustertest.Action{} // they are looked at, before the plan is made
					}
					gets.Add(1)
					n := now.Add(1)
					for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
					}
					time.Sleep(20 * time.Millisecond)
					now.Add(-1)
					return clustertest.Action{}
				}
				if r.Query.Has("watch") || !list {
					return clustertest.Action{Status: http.StatusForbidden, Message: "not for you"}
				}
				lists.Add(1)
				return clustertest.Action{}
			})
			const count = 40
			var texts []string
			for i := range count {
				texts = append(texts, clitest.Deployment(fmt.Sprintf("late-%d", i), 1, "1000000"))
			}
			s.Apply(clitest.Documents(texts...), "--timeout=10s").Want(t, report.ExitNotReady).Prints(t, "missing right: watch deployments.apps")
			t.Logf("%d LISTs, %d GETs, %d at once", lists.Load(), gets.Load(), most.Load())
			if list && (lists.Load() < 2 || gets.Load() > count) {
				t.Errorf("%d LISTs and %d GETs: they are not listed", lists.Load(), gets.Load())
			}
			if !list && (gets.Load() < count/2 || most.Load() > 4) {
				t.Errorf("%d GETs, %d at once", gets.Load(), most.Load())
			}
		})
	}
}
