package cli

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"brine/bundle/cluster/clustertest"
	"brine/inventory"
)

// cli-utils' stress suite (its test/stress).

func thousandDeployments() string {
	var texts []string
	for i := range 1000 {
		texts = append(texts, deployment(fmt.Sprintf("web-%d", i), 1, "0"))
	}
	return documents(texts...)
}

// stressEnv set to 1 runs the stress tests, which take minutes.
const stressEnv = "BRINE_TEST_STRESS"

// stress is a fixture that only the stress part of scripts/test sets.
func stress(t *testing.T) *fixture {
	t.Helper()
	if os.Getenv(stressEnv) != "1" {
		t.Skipf("stress takes minutes: %s=1 runs it", stressEnv)
	}
	return fixtureOn(t, clustertest.Shared(t))
}

func TestStressThousandDeployments(t *testing.T) {
	s := stress(t)
	text := thousandDeployments()
	result := s.apply(text, "--timeout=4m").want(t, 0)
	if n := result.result.Summary.Ready; n != 1000 {
		t.Errorf("%d are ready, want 1000", n)
	}
	// One request an object, and a few for all: no GET each. Where a machine is
	// so busy that watches are silent for long, some objects are asked for.
	if n := result.result.Summary.Requests["get"] + result.result.Summary.Requests["list"]; n > 300 {
		t.Errorf("it took %d reads", n)
	}
	again := s.apply(text).want(t, 0)
	if n := again.result.Summary.Unchanged; n != 1000 {
		t.Errorf("%d are unchanged, want 1000", n)
	}
	if again.result.Summary.Requests["patch"] > 0 {
		t.Errorf("it sent %v for nothing", again.result.Summary.Requests)
	}
	s.destroy("--timeout=4m").want(t, 0)
	s.missing("v1/configmaps", "inv")
}

func TestStressThousandDeploymentsRetried(t *testing.T) {
	s := stress(t)
	text := thousandDeployments()
	exits := map[int]int{}
	for try := 1; ; try++ {
		// The time of the whole run: where the machine is slow it ends before the
		// server has been read. Some try has to get further.
		result := s.apply(text, fmt.Sprintf("--timeout=%ds", 3+try/5))
		exits[result.exit]++
		if result.exit == 0 {
			break
		}
		if result.exit != 6 {
			result.want(t, 4)
		}
		if try == 60 {
			t.Fatalf("not done after %d tries: %v", try, exits)
		}
	}
	if len(s.members()) != 1000 {
		t.Error("the inventory does not hold all")
	}
	for try := 1; ; try++ {
		result := s.destroy(fmt.Sprintf("--timeout=%ds", 3+try/5))
		if result.exit == 0 {
			break
		}
		if result.exit != 4 && result.exit != 6 || try == 60 {
			t.Fatalf("try %d of destroy: exit code %d\n%s", try, result.exit, clip(result.stderr))
		}
	}
	left, err := s.resources("apps/v1/deployments").Namespace(s.ns).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(left.Items) > 0 {
		t.Errorf("%d are left: %v", len(left.Items), err)
	}
}

func TestStressThousandNamespaces(t *testing.T) {
	s := stress(t)
	texts := []string{widgets}
	for i := range 1000 {
		namespace := fmt.Sprintf("%s-%d", s.ns, i)
		in := strings.NewReplacer("namespace: {ns}\n", "namespace: "+namespace+"\n", `namespace: "{ns}"`, "namespace: "+namespace)
		texts = append(texts, in.Replace(configMap("settings")), in.Replace(widget),
			"apiVersion: v1\nkind: Namespace\nmetadata: {name: "+namespace+"}\n")
	}
	result := s.apply(documents(texts...), "--timeout=4m").want(t, 0)
	if n := result.result.Summary.Created; n != 3001 {
		t.Errorf("%d were created, want 3001", n)
	}
	// The namespace controller takes its time over a thousand: what it has not
	// come to stays in the inventory, and all else is gone.
	result = s.destroy("--timeout=90s")
	if result.exit != 0 {
		result.want(t, 4)
	}
	left := s.members()
	for _, member := range left {
		if !strings.HasPrefix(member, "Namespace ") {
			t.Errorf("%s is left", member)
		}
	}
	namespaces, err := s.resources("v1/namespaces").List(t.Context(), metav1.ListOptions{LabelSelector: inventory.PartOf + "=" + inventory.ApplySetID(s.ns, "inv")})
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range namespaces.Items {
		if !slices.Contains(left, "Namespace "+u.GetName()) {
			t.Errorf("namespace %s still stands, and the inventory has forgotten it", u.GetName())
		}
	}
	t.Logf("%d namespaces were left to the controller", len(left))
	if got := s.live("apiextensions.k8s.io/v1/customresourcedefinitions", "", "widgets."+s.ns+".example.com"); got != nil {
		t.Error("the CRD is there")
	}
}
