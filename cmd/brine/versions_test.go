package main_test

import (
	"os"
	"strings"
	"testing"

	"brine/bundle/cluster/clustertest"
	"brine/bundle/plan"
	"brine/bundle/report"
	"brine/cmd/brine/clitest"
)

// flows is of a version that Kubernetes 1.29 and 1.31 serve, and 1.33 does not, or of
// its successor.
func flows(version string) string {
	return "apiVersion: flowcontrol.apiserver.k8s.io/" + version + "\nkind: FlowSchema\nmetadata: {name: \"{ns}\"}\n" +
		"spec: {matchingPrecedence: 900, priorityLevelConfiguration: {name: workload-low}, distinguisherMethod: {type: ByUser}}\n"
}

// Kubernetes is upgraded below an inventory, twice, and downgraded once.
func TestKubernetesUpgrade(t *testing.T) {
	if os.Getenv("BRINE_TEST_UPGRADE") == "" {
		t.Skip("scripts/test matrix runs this: it needs three older versions of Kubernetes")
	}
	t.Setenv("BRINE_TEST_KUBERNETES", "1.29")
	s := clitest.On(t, clustertest.New(t))
	text := func(version string) string {
		autoscaler := "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: web, namespace: \"{ns}\"}\n" +
			"spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}, minReplicas: 1, maxReplicas: 3}\n"
		service := "apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: \"{ns}\"}\nspec: {selector: {app: web}, ports: [{port: 80}]}\n"
		return clitest.Documents(platformAfter, autoscaler, service, flows(version))
	}
	unchanged := func(version, text string) {
		t.Helper()
		for _, flag := range []string{"--verify=changed", "--verify=full"} {
			for _, command := range []func(string, ...string) clitest.Outcome{s.Preview, s.Apply} {
				for _, o := range command(text, flag).Want(t, 0).Result.Objects {
					if o.Action != plan.Unchanged {
						t.Errorf("on Kubernetes %s, %s, %s %s is %s: %s\n%s", version, flag, o.Kind, o.Name, o.Action, o.Reason, o.Diff)
					}
				}
			}
		}
		theirs := s.Live("apps/v1/deployments", s.NS, "web")
		owners := map[string]bool{}
		for _, entry := range theirs.GetManagedFields() {
			owners[entry.Manager] = true
		}
		if !owners["brine"] || !owners["somebody"] {
			t.Errorf("on Kubernetes %s the fields are owned by %v", version, owners)
		}
	}
	s.Apply(text("v1beta3")).Want(t, 0)
	s.PatchAs("somebody", "apps/v1/deployments", "web", `{"spec":{"minReadySeconds":1}}`)
	s.Apply(text("v1beta3")).Want(t, 0)
	unchanged("1.29", text("v1beta3"))
	s.Cluster.Upgrade(t, "1.31")
	unchanged("1.31", text("v1beta3"))

	// Before the next upgrade: what it will not serve.
	const gone = "no longer serves flowcontrol.apiserver.k8s.io/v1beta3 FlowSchema, gone since 1.32; write flowcontrol.apiserver.k8s.io/v1 FlowSchema"
	check := func(version string) clitest.Outcome {
		return clitest.Command(t.Context(), nil, "check", "-f", s.File(text("v1beta3")), "--kubernetes-version", version)
	}
	status := func(version string) clitest.Outcome {
		return clitest.Run(t, s.Kubeconfig, "status", "--inventory", s.Inventory, "--kubernetes-version", version)
	}
	check("1.31").Want(t, 0)
	check("1.33").Want(t, report.ExitBadBundle).Prints(t, gone, "bundle.yaml:")
	if o := status("1.33").Want(t, report.ExitBadBundle).Object(t, "FlowSchema", s.NS); !strings.Contains(o.NotServed, gone) {
		t.Errorf("the status says %q", o.NotServed)
	}
	s.Apply(text("v1")).Want(t, 0)
	status("1.33").Want(t, 0)
	s.Cluster.Upgrade(t, "1.33")
	unchanged("1.33", text("v1"))
	s.Apply(text("v1beta3")).Want(t, report.ExitBadBundle).Prints(t, "flowcontrol.apiserver.k8s.io/v1")

	s.Cluster.Upgrade(t, "1.31")
	unchanged("1.31 again", text("v1"))
	s.Destroy().Want(t, 0)
	if left := orphans(s); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
