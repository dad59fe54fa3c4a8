package preview_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"

	"brine/bundle/cluster/clustertest"
	"brine/bundle/plan"
	"brine/cmd/brine/clitest"
)

func TestDryRunChangesNothing(t *testing.T) {
	s := clitest.New(t)
	s.Apply(clitest.Documents(clitest.ConfigMap("old"), clitest.ConfigMap("stays"))).Want(t, 0)
	p := s.Proxied()
	changed := clitest.Documents(clitest.ConfigMap("new"), strings.Replace(clitest.ConfigMap("stays"), "key: value", "key: changed", 1))
	result := s.Apply(changed, "--dry-run=server").Want(t, 0)
	result.Did(t, "ConfigMap", "new", plan.Created)
	result.Did(t, "ConfigMap", "stays", plan.Configured)
	result.Did(t, "ConfigMap", "old", plan.Pruned)
	s.Apply(changed, "--dry-run=client").Want(t, 0)
	if w := p.Writes(); len(w) > 0 {
		t.Errorf("a dry run wrote %v", clitest.Describe(w))
	}
	s.Exists("v1/configmaps", "old", "stays")
	s.Missing("v1/configmaps", "new")
}

// versions are the resourceVersions of all objects on the cluster, but for
// those that controllers write all the time.
func versions(t testing.TB, c *clustertest.Cluster) map[string]string {
	t.Helper()
	disco, err := discovery.NewDiscoveryClientForConfig(c.Config(t))
	if err != nil {
		t.Fatal(err)
	}
	lists, err := disco.ServerPreferredResources()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	api := c.Dynamic(t)
	for _, list := range lists {
		gv, _ := schema.ParseGroupVersion(list.GroupVersion)
		for _, r := range list.APIResources {
			if !slices.Contains(r.Verbs, "list") || r.Kind == "Event" || r.Kind == "Node" || r.Kind == "ComponentStatus" {
				continue
			}
			items, err := api.Resource(gv.WithResource(r.Name)).List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for _, item := range items.Items {
				if r.Kind == "Lease" && strings.HasPrefix(item.GetNamespace(), "kube-") {
					continue
				}
				all[fmt.Sprintf("%s %s/%s", r.Name, item.GetNamespace(), item.GetName())] = item.GetResourceVersion()
			}
		}
	}
	return all
}

// settled waits until no controller writes anything any more.
func settled(t testing.TB, c *clustertest.Cluster) map[string]string {
	t.Helper()
	was := versions(t, c)
	for range 60 {
		time.Sleep(time.Second)
		is := versions(t, c)
		if maps.Equal(was, is) {
			return is
		}
		was = is
	}
	t.Fatal("the cluster does not come to rest")
	return nil
}

func TestPreviewOnAnEmptyCluster(t *testing.T) {
	c := clustertest.New(t)
	before, after := clitest.RealBundle(t, "metalk8s-old"), clitest.RealBundle(t, "metalk8s-new")
	run := func(command, files string, flags ...string) clitest.Outcome {
		return clitest.Run(t, c.Kubeconfig, append([]string{command, "-f", files, "--inventory", "kube-system/metalk8s"}, flags...)...)
	}
	untouched := func(t *testing.T, files string) clitest.Outcome {
		t.Helper()
		was := settled(t, c)
		s := run("preview", files).Want(t, 0).AllVerified(t)
		is := versions(t, c)
		for name := range maps.Keys(is) {
			if is[name] != was[name] {
				t.Errorf("the preview changed %s: %q, then %q", name, was[name], is[name])
			}
		}
		if len(is) != len(was) {
			t.Errorf("there were %d objects, then %d", len(was), len(is))
		}
		return s
	}

	thousand := filepath.Join(t.TempDir(), "thousand.yaml")
	if err := os.WriteFile(thousand, []byte(thousandObjects()), 0o600); err != nil {
		t.Fatal(err)
	}
	many := untouched(t, thousand)
	if s := many.Result.Summary; s.Created != 1000 || s.Failed != 0 {
		t.Errorf("summary %+v, want 1000 created", s)
	}

	first := untouched(t, after)
	if s := first.Result.Summary; s.Created != 101 || s.Failed != 0 {
		t.Errorf("summary %+v, want 101 created", s)
	}
	clitest.SameActions(t, first, run("apply", after, "--wait=applied").Want(t, 0))
	clitest.Run(t, c.Kubeconfig, "destroy", "--inventory", "kube-system/metalk8s").Want(t, 0)

	clitest.SameActions(t, untouched(t, before), run("apply", before).Want(t, 0))
	up := untouched(t, after)
	clitest.SameActions(t, up, run("apply", after).Want(t, 0))
	again := untouched(t, after)
	for name, action := range again.Actions(t) {
		if action != plan.Unchanged {
			t.Errorf("%s: previewed as %s just after it was applied", name, action)
		}
	}
	run("preview", after, "--detailed-exitcode").Want(t, 0)
	run("preview", before, "--detailed-exitcode").Want(t, 2)
	down := untouched(t, before)
	if down.Result.Summary.Pruned == 0 {
		t.Error("nothing would be pruned on the way back")
	}
	clitest.SameActions(t, down, run("apply", before, "--detailed-exitcode").Want(t, 2))
}

// thousandObjects are 100 namespaces with nine objects each, and their CRD.
func thousandObjects() string {
	var b strings.Builder
	b.WriteString(strings.ReplaceAll(clitest.PumpCRD, "{ns}", "thousand"))
	n := 1
	for i := 0; n < 1000; i++ {
		ns := fmt.Sprintf("thousand-%d", i)
		for _, text := range []string{
			"apiVersion: v1\nkind: Namespace\nmetadata: {name: " + ns + "}\n",
			"apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: app, namespace: " + ns + "}\n",
			"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: kube-root-ca.crt, namespace: " + ns + "}\ndata: {a: b}\n",
			"apiVersion: v1\nkind: Secret\nmetadata: {name: app, namespace: " + ns + "}\nstringData: {a: b}\n",
			"apiVersion: v1\nkind: Service\nmetadata: {name: app, namespace: " + ns + "}\nspec: {ports: [{port: 80}], selector: {app: app}}\n",
			"apiVersion: v1\nkind: Pod\nmetadata: {name: app, namespace: " + ns + "}\nspec: {serviceAccountName: app, containers: [{name: c, image: pause}]}\n",
			"apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: app, namespace: " + ns + "}\nrules: []\n",
			"apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: app, namespace: " + ns + "}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: app}\nsubjects: [{kind: ServiceAccount, name: app, namespace: " + ns + "}]\n",
			"apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: app, namespace: " + ns + "}\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n",
			"apiVersion: thousand.example.com/v1\nkind: Pump\nmetadata: {name: app, namespace: " + ns + "}\nspec: {}\n",
		} {
			if n < 1000 {
				b.WriteString("---\n" + text)
				n++
			}
		}
	}
	return b.String()
}

// What a surrogate answers is shown as it will be.
func TestPreviewInASurrogateNamespace(t *testing.T) {
	s := clitest.New(t)
	ns := s.NS + "-new"
	s.Create("v1/configmaps", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: same, namespace: {ns}}\ndata: {live: inside-the-surrogate}\n")
	s.Create("v1/resourcequotas", "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: none, namespace: {ns}}\nspec: {hard: {services: \"0\"}}\n")
	p := s.Preview(clitest.Documents(
		"apiVersion: v1\nkind: Namespace\nmetadata: {name: {ns}-new}\n",
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: same, namespace: {ns}-new}\ndata: {mine: \"1\"}\n",
		"apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: {ns}-new}\nspec: {ports: [{port: 80}], selector: {app: web}}\n",
		"apiVersion: v1\nkind: Pod\nmetadata: {name: one, namespace: {ns}-new}\nspec: {serviceAccountName: worker, containers: [{name: c, image: pause}]}\n",
		"apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: worker, namespace: {ns}-new}\n",
		"apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: b, namespace: {ns}-new}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}\nsubjects: [{kind: ServiceAccount, name: worker, namespace: {ns}-new}]\n",
	)).Want(t, 0).AllVerified(t)
	for _, o := range p.Result.Objects {
		if o.Action != plan.Created {
			t.Errorf("%s is %s", o.Name, o.Action)
		}
		if o.Kind != "Namespace" && (o.Namespace != ns || !strings.Contains(o.Diff, "namespace: "+ns) || strings.Contains(o.Diff, "namespace: "+s.NS+"\n") || strings.Contains(o.Diff, "namespace: default")) {
			t.Errorf("%s %s is not shown where it will be:\n%s", o.Kind, o.Name, o.Diff)
		}
	}
	if d := p.Object(t, "ConfigMap", "same").Diff; strings.Contains(d, "inside-the-surrogate") || !strings.Contains(d, "name: same") {
		t.Errorf("it is mixed with the one of the surrogate:\n%s", d)
	}
	if d := p.Object(t, "Pod", "one").Diff; !strings.Contains(d, "serviceAccountName: worker") || strings.Contains(d, "serviceAccountName: default") {
		t.Errorf("the pod lost its ServiceAccount:\n%s", d)
	}
	if d := p.Object(t, "Service", "web").Diff; strings.Contains(d, "clusterIP:") || !strings.Contains(d, "sessionAffinity: None") {
		t.Errorf("the server's own answer is not shown, or an address that it will not have:\n%s", d)
	}
}

func TestPreviewValidatesByTheCRDOfTheBundle(t *testing.T) {
	s := clitest.New(t)
	s.GoneAfter("apiextensions.k8s.io/v1/customresourcedefinitions", "pumps."+s.NS+".example.com")
	good := clitest.Pump("good", "  limit: 9\n")
	p := s.Preview(clitest.Documents(clitest.PumpCRD, good)).Want(t, 0)
	o := p.Did(t, "Pump", "good", plan.Created)
	if o.Verified != "bundle CRD" || !strings.Contains(o.Diff, "rate: 7") {
		t.Errorf("verified by %q:\n%s", o.Verified, o.Diff)
	}

	bad := s.Preview(clitest.Documents(clitest.PumpCRD, clitest.Pump("schema", "  rate: fast\n"), clitest.Pump("rule", "  rate: 9\n  limit: 3\n"), clitest.Pump("unknown", "  rte: 1\n"))).Want(t, 3)
	for name, words := range map[string]string{"schema": "spec.rate", "rule": "rate is over the limit", "unknown": "spec.rte"} {
		o := bad.Did(t, "Pump", name, plan.Failed)
		if !strings.Contains(o.Error, words) || !strings.Contains(o.Error, "bundle.yaml:") {
			t.Errorf("%s: %q does not tell %q, or where", name, o.Error, words)
		}
		if !slices.ContainsFunc(bad.Result.Errors, func(e string) bool { return strings.Contains(e, words) && strings.Contains(e, "bundle.yaml:") }) {
			t.Errorf("%q with file and line is not among the errors: %q", words, bad.Result.Errors)
		}
	}

	s.Apply(clitest.Documents(clitest.PumpCRD, good)).Want(t, 0)
	changed := strings.Replace(clitest.PumpCRD, "limit: {type: integer}", "limit: {type: integer}\n              hue: {type: string, default: blue}", 1)
	text := clitest.Documents(changed, clitest.Pump("good", "  limit: 10\n"))
	o = s.Preview(text).Want(t, 0).Did(t, "Pump", "good", plan.Configured)
	if o.Verified != "bundle CRD" || !strings.Contains(o.Diff, "+  hue: blue") {
		t.Errorf("verified by %q:\n%s", o.Verified, o.Diff)
	}
	clitest.SameActions(t, s.Preview(text), s.Apply(text).Want(t, 0))
}

// live is a state of the cluster, made from one in which the first bundle was
// applied.
func TestPreviewIsWhatApplyDoes(t *testing.T) {
	job := func(image string, metadata ...string) string {
		text := "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: once\n  namespace: {ns}\n"
		for _, m := range metadata {
			text += "  " + m + "\n"
		}
		return text + "spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: " + image + "}]}}}\n"
	}
	patch := func(s *clitest.Fixture, resource, name, body string, manager string) {
		s.Helper()
		if _, err := s.Resources(resource).Namespace(s.NS).Patch(s.Context(), name, types.MergePatchType, []byte(body), metav1.PatchOptions{FieldManager: manager}); err != nil {
			s.Fatal(err)
		}
	}
	base := clitest.Documents(clitest.ConfigMap("a"), clitest.ConfigMap("b"), clitest.Deployment("web", 1, "1m"))
	for _, test := range []struct {
		name  string
		first string
		live  func(*clitest.Fixture)
		then  string
		flags []string
		exit  int
		want  map[string]plan.Action
		tells string
	}{
		{name: "nothing moved", first: base, then: base, want: map[string]plan.Action{"a": plan.Unchanged, "web": plan.Unchanged}},
		{name: "ask about everything", first: base, then: base, flags: []string{"--verify=full"}, want: map[string]plan.Action{"a": plan.Unchanged, "web": plan.Unchanged}},
		{name: "changed by kubectl", first: base, then: base, want: map[string]plan.Action{"a": plan.Failed, "b": plan.Unchanged}, exit: 1, tells: "kubectl-edit",
			live: func(s *clitest.Fixture) { patch(s, "v1/configmaps", "a", `{"data":{"key":"other"}}`, "kubectl-edit") }},
		{name: "changed by kubectl and taken back", first: base, then: base, flags: []string{"--force-conflicts"}, want: map[string]plan.Action{"a": plan.Configured, "b": plan.Unchanged}, tells: "takes .data.key from kubectl-edit",
			live: func(s *clitest.Fixture) { patch(s, "v1/configmaps", "a", `{"data":{"key":"other"}}`, "kubectl-edit") }},
		{name: "a field beside ours", first: base, then: base, want: map[string]plan.Action{"a": plan.Unchanged},
			live: func(s *clitest.Fixture) { patch(s, "v1/configmaps", "a", `{"data":{"more":"x"}}`, "kubectl-edit") }},
		{name: "deleted", first: base, then: base, want: map[string]plan.Action{"a": plan.Created, "b": plan.Unchanged},
			live: func(s *clitest.Fixture) {
				if err := s.Resources("v1/configmaps").Namespace(s.NS).Delete(s.Context(), "a", metav1.DeleteOptions{}); err != nil {
					s.Fatal(err)
				}
			}},
		{name: "the label is gone", first: base, then: base, want: map[string]plan.Action{"a": plan.Configured},
			live: func(s *clitest.Fixture) {
				patch(s, "v1/configmaps", "a", `{"metadata":{"labels":{"applyset.kubernetes.io/part-of":null}}}`, "kubectl-label")
			}},
		{name: "not ours any more", first: base, then: clitest.ConfigMap("b"), want: map[string]plan.Action{"a": plan.Detached, "b": plan.Unchanged, "web": plan.Pruned},
			live: func(s *clitest.Fixture) {
				patch(s, "v1/configmaps", "a", `{"metadata":{"annotations":{"config.k8s.io/owning-inventory":null}}}`, "kubectl-annotate")
			}},
		{name: "pruned and detached and kept", first: clitest.Documents(clitest.ConfigMap("a"), clitest.ConfigMap("b", "annotations: {client.lifecycle.config.k8s.io/deletion: detach}"), clitest.ConfigMap("c")),
			then: clitest.Documents(clitest.ConfigMap("c"), clitest.ConfigMap("d")), want: map[string]plan.Action{"a": plan.Pruned, "b": plan.Detached, "c": plan.Unchanged, "d": plan.Created}},
		{name: "no pruning", first: base, then: clitest.ConfigMap("b"), flags: []string{"--no-prune"}, want: map[string]plan.Action{"a": plan.Skipped, "web": plan.Skipped}},
		{name: "another's object", first: base, then: clitest.Documents(base, clitest.ConfigMap("foreign")), exit: 1, want: map[string]plan.Action{"foreign": plan.Failed},
			live: func(s *clitest.Fixture) {
				s.Create("v1/configmaps", clitest.ConfigMap("foreign", "annotations: {config.k8s.io/owning-inventory: else}"))
			}},
		{name: "adopted", first: base, then: clitest.Documents(base, clitest.ConfigMap("found")), flags: []string{"--force-conflicts"}, want: map[string]plan.Action{"found": plan.Configured},
			live: func(s *clitest.Fixture) { s.Create("v1/configmaps", clitest.ConfigMap("found")) }},
		{name: "immutable", first: job("a"), then: job("b"), exit: 1, want: map[string]plan.Action{"once": plan.Failed}, tells: "--recreate"},
		{name: "recreated", first: job("a"), then: job("b"), flags: []string{"--recreate=Job", "--wait=applied"}, want: map[string]plan.Action{"once": plan.Recreated}, tells: "immutable"},
		{name: "recreated by annotation", first: job("a"), then: job("b", "annotations: {brine.dev/on-immutable: recreate}"), flags: []string{"--wait=applied"}, want: map[string]plan.Action{"once": plan.Recreated}},
		{name: "invalid", first: base, then: clitest.Documents(clitest.ConfigMap("a"), clitest.RefusedService("bad")), exit: 1, want: map[string]plan.Action{"bad": plan.Failed}, tells: "spec.clusterIPs is at"},
		{name: "needs what fails", first: clitest.ConfigMap("a"), exit: 1,
			then: clitest.Documents(clitest.RefusedService("bad"), clitest.ConfigMap("after", clitest.DependsOn("/namespaces/{ns}/Service/bad"))),
			want: map[string]plan.Action{"bad": plan.Failed, "after": plan.Skipped, "a": plan.Skipped}},
		{name: "never changed", first: clitest.Documents(clitest.ConfigMap("a", "annotations: {client.lifecycle.config.k8s.io/mutation: ignore}")),
			then: strings.Replace(clitest.ConfigMap("a", "annotations: {client.lifecycle.config.k8s.io/mutation: ignore}"), "key: value", "key: new", 1), want: map[string]plan.Action{"a": plan.Unchanged}},
		{name: "dropped field", first: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: {ns}}\ndata: {x: \"1\", y: \"2\"}\n",
			then: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: {ns}}\ndata: {x: \"1\"}\n", want: map[string]plan.Action{"a": plan.Configured}},
		{name: "a default made explicit", first: clitest.Deployment("web", 1, "1m"), then: strings.Replace(clitest.Deployment("web", 1, "1m"), "  replicas: 1\n", "  replicas: 1\n  revisionHistoryLimit: 10\n", 1), want: map[string]plan.Action{"web": plan.Configured}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := clitest.New(t)
			s.Apply(test.first).Want(t, 0)
			if test.live != nil {
				test.live(s)
			}
			was := s.ConfigMap("inv").GetResourceVersion()
			p := s.Preview(test.then, slices.DeleteFunc(slices.Clone(test.flags), func(f string) bool { return f == "--wait=applied" })...).Want(t, test.exit)
			if s.ConfigMap("inv").GetResourceVersion() != was {
				t.Error("the preview wrote the inventory")
			}
			for name, action := range test.want {
				found := false
				for _, o := range p.Result.Objects {
					if o.Name == name {
						found = true
						if o.Action != action {
							t.Errorf("%s is previewed as %s (%s), want %s", name, o.Action, o.Reason, action)
						}
					}
				}
				if !found {
					t.Errorf("%s is not in the preview", name)
				}
			}
			p.Prints(t, test.tells)
			clitest.SameActions(t, p, s.Apply(test.then, test.flags...).Want(t, test.exit))
		})
	}
}
