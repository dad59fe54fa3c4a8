package run_test

import (
	"path/filepath"
	"strings"
	"testing"

	"brine/bundle/plan"
	"brine/cmd/brine/clitest"
)

// A partial run applies the chosen objects, prunes nothing, and leaves the other
// members as they are: also in the inventory, its fingerprints and its history.
func TestPartialRun(t *testing.T) {
	s := clitest.New(t)
	of := func(value, label string) string {
		return clitest.Documents(
			clitest.ConfigMapOf("a", "{key: "+value+"}", "labels: {app: "+label+"}"), clitest.ConfigMapOf("b", "{key: "+value+"}"),
			clitest.ConfigMapOf("needs-b", "{key: "+value+"}", clitest.DependsOn("/namespaces/{ns}/ConfigMap/b")))
	}
	s.Apply(clitest.Documents(of("one", "web"), clitest.ConfigMap("old"))).Want(t, 0)
	s.Apply(of("one", "web"), "--only=app=web").Want(t, 0).Did(t, "ConfigMap", "a", plan.Unchanged)
	wantHistory(s, "1 applied")
	for _, run := range []func(string, ...string) clitest.Outcome{s.Preview, s.Apply} {
		did := run(of("two", "web"), "--only=app=web").Want(t, 0).Prints(t, "partial run: 1 of 3 objects, nothing is pruned")
		did.Did(t, "ConfigMap", "a", plan.Configured)
		if n := len(did.Result.Objects); n != 1 {
			t.Errorf("the result has %d objects", n)
		}
	}
	if s.Data("a")["key"] != "two" || s.Data("b")["key"] != "one" {
		t.Errorf("the objects are %v and %v", s.Data("a")["key"], s.Data("b")["key"])
	}
	s.Holds("ConfigMap a", "ConfigMap b", "ConfigMap needs-b", "ConfigMap old")
	wantHistory(s, "1 applied", "2 partial")
	// Nothing is read from a run of another part: fingerprints are still there.
	p := s.Proxied()
	s.Apply(clitest.Documents(of("one", "web"), clitest.ConfigMap("old")), "--only=ConfigMap/b", "--only=ConfigMap/*/old").Want(t, 0).Did(t, "ConfigMap", "old", plan.Unchanged)
	if w := p.Writes(); len(w) > 0 {
		t.Errorf("it wrote %v", clitest.Describe(w))
	}
	// The last good revision is that of the whole run: drift and rollback go by it.
	drift(s).Want(t, 2).Did(t, "ConfigMap", "a", plan.Configured)
	// The revision is a whole bundle: to go back to it prunes nothing else.
	s.Apply(of("three", "web")).Want(t, 0).Did(t, "ConfigMap", "old", plan.Pruned)
	back := s.Run("rollback", []string{"2"}).Want(t, 0)
	back.Did(t, "ConfigMap", "old", plan.Created)
	if s.Data("a")["key"] != "two" || s.Data("b")["key"] != "one" || back.Result.Summary.Pruned != 0 {
		t.Errorf("after the rollback: %v and %v", s.Data("a")["key"], s.Data("b")["key"])
	}

	// With its needs; and what is neither chosen nor there.
	s = s.Other("needs")
	text := strings.NewReplacer("name: a", "name: x", "name: b", "name: y", "name: needs-b", "name: needs-y", "ConfigMap/b", "ConfigMap/y").Replace(of("one", "web"))
	s.Apply(text, "--only=ConfigMap/needs-y").Want(t, 3).Prints(t, "needs-y: it needs ConfigMap "+s.NS+"/y (depends-on annotation), which is neither chosen nor on the cluster", "--with-needs")
	s.Missing("v1/configmaps", "needs-y")
	did := s.Apply(text, "--only=configmap/"+s.NS+"/needs-*", "--with-needs").Want(t, 0)
	did.Did(t, "ConfigMap", "y", plan.Created)
	did.Did(t, "ConfigMap", "needs-y", plan.Created)
	s.Missing("v1/configmaps", "x")
	wantHistory(s, "1 partial")

	// What selects nothing is refused, with what there is.
	s.Apply(text, "--only=Deployment/x").Want(t, 3).Prints(t, `--only "Deployment/x" selects nothing. The bundle contains ConfigMap `+s.NS+"/x")
	s.Apply(text, "--only=bundle.yaml").Want(t, 0).Did(t, "ConfigMap", "x", plan.Created)
	s.Apply(text, "--only=x", "--rollback-on-failure").Want(t, 3)
	s.Apply(text, "--with-needs").Want(t, 3).Prints(t, "--with-needs is for --only")
}

// A saved plan of a part carries out that part.
func TestPartialPlan(t *testing.T) {
	s := clitest.New(t)
	of := func(value string) string {
		return clitest.Documents(clitest.ConfigMapOf("a", "{key: "+value+"}"), clitest.ConfigMapOf("b", "{key: "+value+"}"))
	}
	s.Apply(of("one")).Want(t, 0)
	saved := filepath.Join(t.TempDir(), "plan.json")
	s.Preview(of("two"), "--only=ConfigMap/a", "--plan-out="+saved).Want(t, 0)
	s.Apply(of("two"), "--plan="+saved, "--only=ConfigMap/b").Want(t, 3).Prints(t, "--only: the plan was made with")
	s.Apply(of("two"), "--plan="+saved, "--rollback-on-failure").Want(t, 3).Prints(t, "is a plan of chosen objects")
	s.Apply(of("two"), "--plan="+saved).Want(t, 0).Did(t, "ConfigMap", "a", plan.Configured)
	if s.Data("a")["key"] != "two" || s.Data("b")["key"] != "one" {
		t.Errorf("the objects are %v and %v", s.Data("a")["key"], s.Data("b")["key"])
	}
}

// The objects of an SLS.
func TestPartialRunOfAnSLS(t *testing.T) {
	s := clitest.New(t)
	s.Apply(clitest.States("one")).Want(t, 0)
	s.Apply(clitest.States("two"), "--only=shop.*").Want(t, 0).Did(t, "ConfigMap", "b", plan.Configured)
}
