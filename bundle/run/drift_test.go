package run_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"brine/bundle/cluster/clustertest"
	"brine/bundle/diff"
	"brine/bundle/plan"
	"brine/cmd/brine/clitest"
)

// drift runs brine drift on the fixture's inventory.
func drift(s *clitest.Fixture, flags ...string) clitest.Outcome {
	s.Helper()
	return clitest.Run(s.TB, s.Kubeconfig, append([]string{"drift", "--inventory", s.Inventory, "--namespace", s.NS}, flags...)...)
}

func changeOf(t *testing.T, changes []diff.Change, path string) diff.Change {
	t.Helper()
	i := slices.IndexFunc(changes, func(c diff.Change) bool { return c.Path == path })
	if i < 0 {
		t.Fatalf("%s is not in %v", path, changes)
	}
	return changes[i]
}

// Drift is reported field by field, with both values, who wrote and when. Nothing
// is written.
func TestDrift(t *testing.T) {
	s := clitest.New(t)
	bundle := clitest.Documents(
		clitest.ConfigMapOf("edited", `{key: one, other: two}`), clitest.ConfigMap("deleted"), clitest.ConfigMap("stays"), clitest.ConfigMap("disowned"),
		clitest.Deployment("web", 1, "1m"), clitest.Job("once", "backoffLimit: 0"))
	s.Apply(bundle).Want(t, 0)
	p := s.Proxied()
	none := drift(s).Want(t, 0)
	if n := len(none.Result.Objects); n != 6 || none.Result.Wanted != "revision 1" || none.Result.DryRun != "server" || none.Result.Command != "drift" {
		t.Errorf("%d objects, %+v", n, none.Result)
	}
	drift(s, "-o", "text").Want(t, 0).Prints(t, "Drift of inventory "+s.Inventory+" from revision 1", "no drift in")
	for _, r := range p.Requests() {
		if r.Method != http.MethodGet {
			t.Errorf("an unchanged inventory costs %s %s", r.Method, r.Path)
		}
	}

	s.PatchAs("kubectl-edit", "v1/configmaps", "edited", `{"data":{"key":"changed","added":"by somebody"}}`)
	scale(s, "web", 3)
	s.PatchAs("kubectl-set", "apps/v1/deployments", "web", `{"spec":{"template":{"spec":{"containers":[{"name":"c","image":"other:1"}]}}}}`)
	s.DeleteConfigMap("deleted")
	s.PatchAs("kubectl-annotate", "v1/configmaps", "disowned", `{"metadata":{"annotations":{"config.k8s.io/owning-inventory":null}}}`)
	before := versionsOf(s)
	p.Forget()
	for _, verify := range []string{"changed", "full"} {
		found := drift(s, "--verify="+verify).Want(t, 2)
		found.Did(t, "ConfigMap", "stays", plan.Unchanged)
		found.Did(t, "Job", "once", plan.Unchanged)
		found.Did(t, "ConfigMap", "deleted", plan.Created)
		if o := found.Did(t, "ConfigMap", "disowned", plan.Configured); !strings.Contains(o.Reason, "belongs to no inventory any more") {
			t.Errorf("the reason is %q", o.Reason)
		}
		edited := found.Did(t, "ConfigMap", "edited", plan.Configured)
		if c := changeOf(t, edited.Changes, "data.key"); len(edited.Changes) != 1 || !strings.Contains(edited.Diff, "+++ wanted") || c.Old != "changed" || c.New != "one" || c.Manager != "kubectl-edit" || c.Time == "" {
			t.Errorf("the changes are %+v", edited.Changes)
		}
		web := found.Did(t, "Deployment", "web", plan.Configured)
		if c := changeOf(t, web.Changes, "spec.replicas"); c.Manager != "kubectl (subresource scale)" || c.Old != 3.0 || c.New != 1.0 {
			t.Errorf("the change is %+v", c)
		}
		if c := changeOf(t, web.Changes, "spec.template.spec.containers[name=c].image"); c.Manager != "kubectl-set" || c.Time == "" {
			t.Errorf("the change is %+v", c)
		}
		if len(found.Result.Errors)+len(found.Result.Warnings) > 0 {
			t.Errorf("it says %q %q", found.Result.Errors, found.Result.Warnings)
		}
	}
	drift(s, "-o", "text").Want(t, 2).Prints(t, "Different (3):", "Missing (1):", "data.key was written by kubectl-edit at ", "drift in")
	drift(s, "-o", "html").Want(t, 2).Prints(t, "Drift of inventory", "data.key was written by kubectl-edit at ")
	if w := p.Writes(); len(w) > 0 {
		t.Errorf("drift wrote %v", clitest.Describe(w))
	}
	for _, r := range p.Requests() {
		if strings.Contains(r.Path, "/leases") || r.Method != http.MethodGet && (r.Method != http.MethodPatch || !r.DryRun) {
			t.Errorf("drift sent %s %s", r.Method, r.Path)
		}
	}
	if after := versionsOf(s); after != before {
		t.Errorf("the objects changed:\n%s\n%s", before, after)
	}

	// A bundle instead of the revision: what it does not have is not wanted.
	found := drift(s, "-f", s.File(clitest.Documents(clitest.ConfigMapOf("edited", `{key: changed}`), clitest.ConfigMap("new")))).Want(t, 2)
	found.Did(t, "ConfigMap", "new", plan.Created)
	found.Did(t, "ConfigMap", "stays", plan.Pruned)
	found.Did(t, "ConfigMap", "disowned", plan.Unchanged)
	if c := changeOf(t, found.Did(t, "ConfigMap", "edited", plan.Configured).Changes, "data.other"); c.Manager != "brine" || c.New != nil {
		t.Errorf("the change is %+v", c)
	}
	s.Apply(bundle, "--force-conflicts").Want(t, 0)
	drift(s).Want(t, 0)
}

// versionsOf are the ConfigMaps, Leases and Secrets of the fixture's namespace with
// their versions.
func versionsOf(s *clitest.Fixture) string {
	s.Helper()
	var all []string
	for _, resource := range []string{"v1/configmaps", "v1/secrets", "coordination.k8s.io/v1/leases"} {
		list, err := s.Resources(resource).Namespace(s.NS).List(s.Context(), metav1.ListOptions{})
		if err != nil {
			s.Fatal(err)
		}
		for _, u := range list.Items {
			all = append(all, u.GetKind()+" "+u.GetName()+" "+u.GetResourceVersion())
		}
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

// Fields that the run left to others are no drift.
func TestDriftOfFieldsOfOthers(t *testing.T) {
	s := clitest.New(t)
	rules := s.File("- {kind: Deployment, name: ruled, fields: [/spec/replicas]}\n")
	s.Apply(clitest.Documents(
		clitest.Deployment("annotated", 1, "1m", clitest.Annotations(replicasIgnored)), clitest.Deployment("ruled", 1, "1m"), clitest.ConfigMapOf("left", "{key: one}")),
		"--ignore-fields="+rules, "--conflicts=other=leave").Want(t, 0)
	scale(s, "annotated", 2)
	scale(s, "ruled", 2)
	s.PatchAs("other", "v1/configmaps", "left", `{"data":{"key":"theirs"}}`)
	for _, verify := range []string{"changed", "full"} {
		drift(s, "--verify="+verify).Want(t, 0)
	}
	s.PatchAs("stranger", "v1/configmaps", "left", `{"data":{"key":"another"}}`)
	drift(s).Want(t, 2).Did(t, "ConfigMap", "left", plan.Configured)
}

// An object that could not be compared is no "no drift", and the last good revision
// counts, whatever came after it.
func TestDriftThatIsUnknown(t *testing.T) {
	s := clitest.New(t)
	drift(s).Want(t, 3).Prints(t, "there is no inventory")
	s.Apply(clitest.ConfigMapOf("a", "{key: one}")).Want(t, 0)
	take(s, "a")
	s.Apply(clitest.ConfigMapOf("a", "{key: two}")).Want(t, 1)
	found := drift(s).Want(t, 2).Prints(t, "revision 2, the last one, is failed: the cluster is compared with revision 1, the last one that was applied")
	if c := changeOf(t, found.Did(t, "ConfigMap", "a", plan.Configured).Changes, "data.key"); c.Old != "theirs" || c.New != "one" || c.Manager != "somebody" {
		t.Errorf("the change is %+v", c)
	}
	p := s.Proxied()
	p.Intercept(func(r clustertest.Request) clustertest.Action {
		if r.Method == http.MethodPatch {
			return clustertest.Action{Status: 400, Message: "admission webhook does not support dry run"}
		}
		return clustertest.Action{}
	})
	drift(s).Want(t, 1).Did(t, "ConfigMap", "a", plan.Failed)

	s = s.Other("never-good")
	take(s, "b")
	s.Apply(clitest.ConfigMapOf("b", "{key: one}")).Want(t, 1)
	drift(s).Want(t, 3).Prints(t, "no revision that was applied without an error")
}

// Without the right to dry-run, the answer is the missing right.
func TestDriftWithoutRights(t *testing.T) {
	s := clitest.New(t)
	bundle := clitest.ConfigMapOf("a", "{key: one}")
	s.Apply(bundle).Want(t, 0)
	admin := s.Kubeconfig
	clitest.Grant(t, s.Cluster, clitest.RBAC(t, "-f", s.File(bundle), "--inventory", s.Inventory, "--role", s.NS+"-reader", "--user", s.NS+"-reader", "--read-only"))
	s.Kubeconfig = s.Cluster.Proxy(t, clustertest.ProxyOptions{User: s.NS + "-reader"}).Kubeconfig
	drift(s).Want(t, 0)
	s.PatchAs("kubectl-edit", "v1/configmaps", "a", `{"data":{"key":"changed"}}`)
	drift(s).Want(t, 6).Prints(t, "missing right: patch configmaps")
	s.Kubeconfig = admin
	drift(s).Want(t, 2)
}

// A field that cannot be changed is still drift. So is an object that
// another inventory has taken.
func TestDriftThatNoApplyCanUndo(t *testing.T) {
	s := clitest.New(t)
	fixed := strings.Replace(clitest.ConfigMap("fixed", clitest.Annotations("brine.dev/on-immutable: recreate")), "\ndata:", "\nimmutable: true\ndata:", 1)
	s.Apply(clitest.Documents(fixed, clitest.ConfigMap("taken"))).Want(t, 0)
	s.DeleteConfigMap("fixed")
	s.Create("v1/configmaps", strings.Replace(fixed, "key: value", "key: other", 1))
	s.Other("thief").Apply(clitest.ConfigMap("taken"), "--inventory-policy=adopt-all").Want(t, 0)
	found := drift(s).Want(t, 2)
	o := found.Did(t, "ConfigMap", "fixed", plan.Recreated)
	if c := changeOf(t, o.Changes, "data.key"); c.Old != "other" || c.New != "value" || strings.Contains(o.Reason, "--recreate") {
		t.Errorf("the change is %+v: %s", c, o.Reason)
	}
	if o := found.Did(t, "ConfigMap", "taken", plan.Configured); !strings.Contains(o.Reason, "belongs to inventory ") {
		t.Errorf("the reason is %q", o.Reason)
	}
}

// A run that applied everything, and of which not all got ready, is what the cluster is
// to look like: its writes are no drift. A rollback does not go to it by itself, and says
// how.
func TestDriftAfterARunThatWasNotReady(t *testing.T) {
	s := clitest.New(t)
	never := clitest.ConfigMapOf("a", "{key: one}", clitest.Annotations("brine.dev/ready-when: 'false'"))
	s.Apply(never, "--timeout=10s").Want(t, 4)
	s.Apply(never+"---\n"+clitest.ConfigMap("more"), "--timeout=10s").Want(t, 4)
	s.Rollback().Want(t, 3).Prints(t, "revision 1 does not count: it is applied, but not all of its objects got ready", "brine rollback NUMBER")
	drift(s).Want(t, 0)
	s.Apply(clitest.Documents(clitest.ConfigMapOf("a", "{key: two}"), clitest.ConfigMap("more"))).Want(t, 0)
	drift(s).Want(t, 0)
	found := drift(s, "--revision=2").Want(t, 2)
	if c := changeOf(t, found.Did(t, "ConfigMap", "a", plan.Configured).Changes, "data.key"); c.Old != "two" || c.New != "one" {
		t.Errorf("the change is %+v", c)
	}
	drift(s, "--revision=9").Want(t, 3).Prints(t, "no such revision")
}
