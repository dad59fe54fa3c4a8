package main_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"brine/bundle/cluster/clustertest"
	"brine/bundle/plan"
	"brine/cmd/brine/clitest"
	"brine/inventory"
)

// cli-utils' stress suite (its test/stress).

func thousandDeployments() string {
	var texts []string
	for i := range 1000 {
		texts = append(texts, clitest.Deployment(fmt.Sprintf("web-%d", i), 1, "0"))
	}
	return clitest.Documents(texts...)
}

// stress is a fixture that only the stress part of scripts/test sets.
func stress(t *testing.T) *clitest.Fixture {
	t.Helper()
	if os.Getenv(clitest.StressEnv) != "1" {
		t.Skipf("stress takes minutes: %s=1 runs it", clitest.StressEnv)
	}
	return clitest.On(t, clustertest.Shared(t))
}

func TestStressThousandDeployments(t *testing.T) {
	s := stress(t)
	text := thousandDeployments()
	result := s.Apply(text, "--timeout=4m").Want(t, 0)
	if n := result.Result.Summary.Ready; n != 1000 {
		t.Errorf("%d are ready, want 1000", n)
	}
	// One request an object, and a few for all: no GET each. Where a machine is
	// so busy that watches are silent for long, some objects are asked for.
	if n := result.Result.Summary.Requests["get"] + result.Result.Summary.Requests["list"]; n > 300 {
		t.Errorf("it took %d reads", n)
	}
	again := s.Apply(text).Want(t, 0)
	if n := again.Result.Summary.Unchanged; n != 1000 {
		t.Errorf("%d are unchanged, want 1000", n)
	}
	if again.Result.Summary.Requests["patch"] > 0 {
		t.Errorf("it sent %v for nothing", again.Result.Summary.Requests)
	}
	s.Destroy("--timeout=4m").Want(t, 0)
	s.Missing("v1/configmaps", "inv")
}

func TestStressThousandDeploymentsRetried(t *testing.T) {
	s := stress(t)
	text := thousandDeployments()
	exits := map[int]int{}
	for try := 1; ; try++ {
		// The time of the whole run: where the machine is slow it ends before the
		// server has been read. Some try has to get further.
		result := s.Apply(text, fmt.Sprintf("--timeout=%ds", 3+try/5))
		exits[result.Exit]++
		if result.Exit == 0 {
			break
		}
		if result.Exit != 6 {
			result.Want(t, 4)
		}
		if try == 60 {
			t.Fatalf("not done after %d tries: %v", try, exits)
		}
	}
	if len(s.Members()) != 1000 {
		t.Error("the inventory does not hold all")
	}
	for try := 1; ; try++ {
		result := s.Destroy(fmt.Sprintf("--timeout=%ds", 3+try/5))
		if result.Exit == 0 {
			break
		}
		if result.Exit != 4 && result.Exit != 6 || try == 60 {
			t.Fatalf("try %d of destroy: exit code %d\n%s", try, result.Exit, clitest.Clip(result.Stderr))
		}
	}
	left, err := s.Resources("apps/v1/deployments").Namespace(s.NS).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(left.Items) > 0 {
		t.Errorf("%d are left: %v", len(left.Items), err)
	}
}

func TestStressThousandNamespaces(t *testing.T) {
	s := stress(t)
	texts := []string{clitest.Widgets}
	for i := range 1000 {
		namespace := fmt.Sprintf("%s-%d", s.NS, i)
		in := strings.NewReplacer("namespace: {ns}\n", "namespace: "+namespace+"\n", `namespace: "{ns}"`, "namespace: "+namespace)
		texts = append(texts, in.Replace(clitest.ConfigMap("settings")), in.Replace(clitest.Widget),
			"apiVersion: v1\nkind: Namespace\nmetadata: {name: "+namespace+"}\n")
	}
	result := s.Apply(clitest.Documents(texts...), "--timeout=4m").Want(t, 0)
	if n := result.Result.Summary.Created; n != 3001 {
		t.Errorf("%d were created, want 3001", n)
	}
	// The namespace controller takes its time over a thousand: what it has not
	// come to stays in the inventory, and all else is gone.
	result = s.Destroy("--timeout=90s")
	if result.Exit != 0 {
		result.Want(t, 4)
	}
	left := s.Members()
	for _, member := range left {
		if !strings.HasPrefix(member, "Namespace ") {
			t.Errorf("%s is left", member)
		}
	}
	namespaces, err := s.Resources("v1/namespaces").List(t.Context(), metav1.ListOptions{LabelSelector: inventory.PartOf + "=" + inventory.ApplySetID(s.NS, "inv")})
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range namespaces.Items {
		if !slices.Contains(left, "Namespace "+u.GetName()) {
			t.Errorf("namespace %s still stands, and the inventory has forgotten it", u.GetName())
		}
	}
	t.Logf("%d namespaces were left to the controller", len(left))
	if got := s.Live("apiextensions.k8s.io/v1/customresourcedefinitions", "", "widgets."+s.NS+".example.com"); got != nil {
		t.Error("the CRD is there")
	}
}

// 50,000 members have an origin each. Who comes later is adopted, an unchanged run asks for no
// more than it does of few members, and a rollback deletes nothing of them.
func TestStressOriginsOfFiftyThousandMembers(t *testing.T) {
	s := stress(t)
	texts := make([]string, 50_000)
	for i := range texts {
		texts[i] = clitest.ConfigMap(fmt.Sprintf("c-%d", i))
	}
	few := clitest.New(t)
	few.Apply(texts[0]).Want(t, 0)
	least := few.Apply(texts[0]).Want(t, 0).Result.Summary.Requests

	text := clitest.Documents(texts...)
	s.Apply(text, "--timeout=0").Want(t, 0)
	// Kinds of which there are many are listed in pages of 500; the inventory's own parts are
	// ConfigMaps of the same namespace, on a page more.
	pages := len(texts)/500 + 1
	again := s.Apply(text).Want(t, 0).Result.Summary
	if again.Unchanged != len(texts) || again.Requests["list"] > least["list"]+pages || again.Requests["get"] > least["get"] || again.Requests["patch"] > 0 {
		t.Errorf("%d are unchanged, after %v; of one object it is %v", again.Unchanged, again.Requests, least)
	}
	s.Create("v1/configmaps", clitest.ConfigMapOf("theirs", "{key: theirs}"))
	first := s.Apply(clitest.Documents(text, clitest.ConfigMapOf("theirs", "{key: ours}"), clitest.ConfigMap("new")), "--force-conflicts").Want(t, 0).Result.Summary
	if first.Requests["patch"] > 5 { // two objects, the origins' part, the fingerprints', the revision
		t.Errorf("two of them are applied by %v", first.Requests)
	}
	back := s.Rollback().Want(t, 0)
	back.Did(t, "ConfigMap", "theirs", plan.Detached)
	back.Did(t, "ConfigMap", "new", plan.Pruned)
	if n := back.Result.Summary.Unchanged; n != len(texts) {
		t.Errorf("%d are unchanged", n)
	}
	if live := s.ConfigMap("theirs"); live == nil || fmt.Sprint(live.Object["data"]) != "map[key:theirs]" {
		t.Errorf("it is %v", live)
	}
	s.Destroy("--timeout=0").Want(t, 0)
	s.Missing("v1/configmaps", "inv")
}
