package main_test

import (
	"context"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"brine/bundle/cluster/clustertest"
	"brine/bundle/plan"
	"brine/bundle/report"
	"brine/cmd/brine/clitest"
	"brine/inventory"
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

// Two releases of a real platform, to and fro, while one of three API servers ends
// and starts again, five seconds after the one before it was ready: before that a
// balancer that looks at /readyz would not send anybody there. BRINE_TEST_ROLLING is the number of runs.
func TestPlatformWhileServersRestart(t *testing.T) {
	runs, err := strconv.Atoi(os.Getenv("BRINE_TEST_ROLLING"))
	if err != nil {
		t.Skip("scripts/test matrix runs this, for minutes")
	}
	balance := os.Getenv("BRINE_TEST_BALANCE")
	if balance == "" {
		balance = "connection"
	}
	t.Setenv("BRINE_TEST_APISERVERS", "")
	newer, older := clitest.RealBundle(t, "metalk8s-new"), clitest.RealBundle(t, "metalk8s-old")
	c := clustertest.New(t, "--apiservers", "3", "--balance", balance)
	ctx, stop := context.WithCancel(t.Context())
	signal := syscall.SIGKILL
	if c.Minor(t) < 34 { // killed, it may leave an address allocated that no Service has
		signal = syscall.SIGTERM
	}
	restarted := make(chan int, 1)
	go func() {
		n := 0
		defer func() { restarted <- n }()
		for ; ctx.Err() == nil; n++ {
			select {
			case <-ctx.Done():
				return
			case <-time.After(5 * time.Second):
			}
			if err := c.RestartServer(ctx, n%3+1, signal); err != nil {
				t.Errorf("restart a server: %v", err)
				return
			}
		}
	}()
	where := []string{"--name", "platform", "--timeout=5m"}
	for i := range runs {
		args := [][]string{{"apply", "-f", newer}, {"apply", "-f", older}, {"apply", "-f", newer}, {"destroy"}}[i%4]
		start := time.Now()
		got := clitest.Run(t, c.Kubeconfig, append(args, where...)...)
		t.Logf("run %d, %s: exit code %d after %s", i+1, args[0], got.Exit, time.Since(start).Round(time.Second))
		if time.Since(start) > 30*time.Second && got.Result != nil {
			t.Logf("it took so long because of %+v, with the warnings %q", got.Result.CriticalPath, got.Result.Warnings)
		}
		if got.Exit != 0 {
			stop() // what the cluster is like now counts
			t.Errorf("run %d: %v", i+1, got.Result.Errors)
			for _, o := range got.Result.Objects {
				if o.Ready != report.StateReady {
					t.Errorf("%s %s/%s: %s, %q: %s", o.Kind, o.Namespace, o.Name, o.Action, o.Ready, o.Reason)
				}
			}
			break
		}
		owned, members := ownedBy(t, c, "platform"), 0
		if args[0] == "apply" {
			for _, o := range clitest.Run(t, c.Kubeconfig, "status", "--inventory", "default/platform").Want(t, 0).Result.Objects {
				if members++; !slices.Contains(owned, o.Kind+" "+o.Namespace+"/"+o.Name) {
					t.Errorf("run %d: %s %s/%s is a member, and not owned", i+1, o.Kind, o.Namespace, o.Name)
				}
			}
		}
		if len(owned) != members {
			t.Errorf("run %d: %d members, and these are owned: %v", i+1, members, owned)
		}
	}
	stop()
	t.Logf("%d restarts of an API server", <-restarted)
}

// ownedBy are the live objects with the ownership metadata of an inventory of default.
func ownedBy(t *testing.T, c *clustertest.Cluster, name string) []string {
	t.Helper()
	s := &clitest.Fixture{TB: t, Cluster: c, API: c.Dynamic(t)}
	var owned []string
	for _, resource := range []string{
		"v1/namespaces", "v1/configmaps", "v1/secrets", "v1/serviceaccounts", "v1/services", "v1/persistentvolumes", "v1/persistentvolumeclaims",
		"apps/v1/deployments", "apps/v1/statefulsets", "apps/v1/daemonsets", "batch/v1/jobs", "storage.k8s.io/v1/storageclasses", "networking.k8s.io/v1/ingresses",
		"networking.k8s.io/v1/ingressclasses", "policy/v1/poddisruptionbudgets", "admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
		"admissionregistration.k8s.io/v1/mutatingwebhookconfigurations", "apiextensions.k8s.io/v1/customresourcedefinitions", "rbac.authorization.k8s.io/v1/roles",
		"rbac.authorization.k8s.io/v1/rolebindings", "rbac.authorization.k8s.io/v1/clusterroles", "rbac.authorization.k8s.io/v1/clusterrolebindings", "monitoring.coreos.com/v1/servicemonitors",
	} {
		for try := 1; ; try++ { // a server may be down
			list, err := s.Resources(resource).List(t.Context(), metav1.ListOptions{})
			if apierrors.IsNotFound(err) && strings.HasPrefix(resource, "monitoring") {
				break // with its CRD
			}
			if err != nil && try < 30 {
				time.Sleep(time.Second)
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, u := range list.Items {
				if u.GetAnnotations()[inventory.OwningInventory] == inventory.DefaultID("default", name) && u.GetDeletionTimestamp() == nil {
					owned = append(owned, u.GetKind()+" "+u.GetNamespace()+"/"+u.GetName())
				}
			}
			break
		}
	}
	return owned
}
