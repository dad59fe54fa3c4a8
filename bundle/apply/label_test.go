package apply_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	"brine/bundle/cluster/clustertest"
	"brine/cmd/brine/clitest"
)

// A watch by a label reports an object that loses it as deleted: it is still there, and
// becomes ready.
func TestAnObjectThatLosesItsLabelIsNotDeleted(t *testing.T) {
	s := clitest.New(t)
	p := s.Proxied()
	var once, then sync.Once
	p.Intercept(func(r clustertest.Request) clustertest.Action {
		switch {
		case r.Query.Has("watch") && strings.HasSuffix(r.Path, "/configmaps"):
			return clustertest.Action{After: func() {
				once.Do(func() { s.PatchConfigMap("web", `{"metadata":{"labels":{"applyset.kubernetes.io/part-of":null}}}`) })
			}}
		case r.Method == http.MethodGet && strings.HasSuffix(r.Path, "/configmaps/web"):
			return clustertest.Action{After: func() {
				if u := s.ConfigMap("web"); u != nil && u.GetLabels()["applyset.kubernetes.io/part-of"] == "" {
					then.Do(func() { s.PatchConfigMap("web", `{"data":{"ready":"yes"}}`) })
				}
			}}
		}
		return clustertest.Action{}
	})
	s.Apply(clitest.ConfigMap("web", `annotations: {brine.dev/ready-when: "has(self.data.ready)"}`)).Want(t, 0)
}
