package cli

import (
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"brine/bundle/cluster/clustertest"
	"brine/bundle/plan"
	"brine/bundle/report"
)

// holds fails the test unless the inventory holds just these ConfigMaps and
// Deployments, named "Kind name".
func (s *fixture) holds(want ...string) {
	s.Helper()
	var got []string
	for _, m := range s.members() {
		kind, name, _ := strings.Cut(m, " "+s.ns+"/")
		got = append(got, kind+" "+name)
	}
	if !slices.Equal(got, want) {
		s.Errorf("the inventory holds %q, want %q", got, want)
	}
}

// What was refused for good, and was no member before, is none afterwards: it
// never became ours, and nothing will ever delete it for us. So does cli-utils.
func TestRefusedObjectsAreNoMembers(t *testing.T) {
	s := newFixture(t)
	s.create("v1/configmaps", strings.Replace(configMap("theirs"), "value", "others", 1))
	refused := strings.Replace(deployment("refused", 1, "1m"), "matchLabels: {app: refused}", "matchLabels: {app: another}", 1)
	text := documents(configMap("ours"), configMap("theirs"), refused,
		configMap("after", "annotations: {config.kubernetes.io/depends-on: apps/namespaces/{ns}/Deployment/refused}"))
	got := s.apply(text).want(t, report.ExitFailed).prints(t, "conflict: ")
	got.did(t, "ConfigMap", "theirs", plan.Failed)
	got.did(t, "Deployment", "refused", plan.Failed)
	got.did(t, "ConfigMap", "after", plan.Skipped)
	s.holds("ConfigMap ours")

	s.apply(configMap("ours")).want(t, 0)
	s.destroy().want(t, 0)
	if live := s.live("v1/configmaps", s.ns, "theirs"); live == nil || live.GetLabels() != nil || live.GetAnnotations() != nil {
		t.Errorf("somebody else's object is now %v", live)
	}
}

// A member that is refused, or skipped, stays one.
func TestRefusedMembersStay(t *testing.T) {
	s := newFixture(t)
	after := configMap("after", "annotations: {config.kubernetes.io/depends-on: apps/namespaces/{ns}/Deployment/web}")
	s.apply(documents(deployment("web", 1, "1m"), after)).want(t, 0)
	refused := strings.Replace(deployment("web", 1, "1m"), "labels: {app: web}", "labels: {app: another}", 1)
	got := s.apply(documents(refused, strings.Replace(after, "value", "another", 1))).want(t, report.ExitFailed)
	got.did(t, "Deployment", "web", plan.Failed)
	got.did(t, "ConfigMap", "after", plan.Skipped)
	s.holds("ConfigMap after", "Deployment.apps web")
}

// An object that may have been made before it was refused is kept in mind.
func TestRefusedAfterALostAnswerStays(t *testing.T) {
	s := newFixture(t)
	p := s.proxied()
	var tries atomic.Int32
	p.Intercept(func(r clustertest.Request) clustertest.Action {
		if r.Method != http.MethodPatch || !strings.HasSuffix(r.Path, "/configmaps/doubtful") {
			return clustertest.Action{}
		}
		if tries.Add(1) == 1 {
			return clustertest.Action{CutAfter: true}
		}
		return clustertest.Action{Status: http.StatusForbidden, Message: "not any more"}
	})
	s.apply(documents(configMap("doubtful"))).want(t, report.ExitFailed).did(t, "ConfigMap", "doubtful", plan.Failed)
	s.exists("v1/configmaps", "doubtful")
	s.holds("ConfigMap doubtful")
	p.Intercept(nil)
	s.destroy().want(t, 0)
	s.missing("v1/configmaps", "doubtful")
}
