package run_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"brine/bundle/cluster/clustertest"
	"brine/bundle/plan"
	"brine/bundle/report"
	"brine/cmd/brine/clitest"
)

// What was refused for good, and was no member before, is none afterwards: it
// never became ours, and nothing will ever delete it for us. So does cli-utils.
func TestRefusedObjectsAreNoMembers(t *testing.T) {
	s := clitest.New(t)
	s.Create("v1/configmaps", strings.Replace(clitest.ConfigMap("theirs"), "value", "others", 1))
	text := clitest.Documents(clitest.ConfigMap("ours"), clitest.ConfigMap("theirs"), clitest.RefusedService("refused"),
		clitest.ConfigMap("after", clitest.DependsOn("/namespaces/{ns}/Service/refused")))
	got := s.Apply(text).Want(t, report.ExitFailed).Prints(t, "conflict: ")
	got.Did(t, "ConfigMap", "theirs", plan.Failed)
	got.Did(t, "Service", "refused", plan.Failed)
	got.Did(t, "ConfigMap", "after", plan.Skipped)
	s.Holds("ConfigMap ours")

	s.Apply(clitest.ConfigMap("ours")).Want(t, 0)
	s.Destroy().Want(t, 0)
	if live := s.ConfigMap("theirs"); live == nil || live.GetLabels() != nil || live.GetAnnotations() != nil {
		t.Errorf("somebody else's object is now %v", live)
	}
}

// A member that is refused, or skipped, stays one.
func TestRefusedMembersStay(t *testing.T) {
	s := clitest.New(t)
	after := clitest.ConfigMap("after", "annotations: {config.kubernetes.io/depends-on: apps/namespaces/{ns}/Deployment/web}")
	s.Apply(clitest.Documents(clitest.Deployment("web", 1, "1m"), after)).Want(t, 0)
	refused := strings.ReplaceAll(clitest.Deployment("web", 1, "1m"), "{app: web}", "{app: another}") // immutable
	got := s.Apply(clitest.Documents(refused, strings.Replace(after, "value", "another", 1))).Want(t, report.ExitFailed)
	got.Did(t, "Deployment", "web", plan.Failed)
	got.Did(t, "ConfigMap", "after", plan.Skipped)
	s.Holds("ConfigMap after", "Deployment.apps web")
}

// An object that may have been made before it was refused is kept in mind.
func TestRefusedAfterALostAnswerStays(t *testing.T) {
	s := clitest.New(t)
	p := s.Proxied()
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
	s.Apply(clitest.Documents(clitest.ConfigMap("doubtful"))).Want(t, report.ExitFailed).Did(t, "ConfigMap", "doubtful", plan.Failed)
	s.Exists("v1/configmaps", "doubtful")
	s.Holds("ConfigMap doubtful")
	p.Intercept(nil)
	s.Destroy().Want(t, 0)
	s.Missing("v1/configmaps", "doubtful")
}
