package cli

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

	"brine/bundle"
	"brine/bundle/cluster/clustertest"
	"brine/bundle/plan"
)

// actions are what was done to each object.
func (s outcome) actions(t testing.TB) map[string]plan.Action {
	t.Helper()
	if s.result == nil {
		t.Fatalf("there is no result:\n%s\n%s", s.stderr, clip(s.stdout))
	}
	did := map[string]plan.Action{}
	for _, o := range s.result.Objects {
		did[bundle.Name(o.ID())] = o.Action
	}
	return did
}

// same fails the test unless both runs did the same, object by object.
func same(t testing.TB, preview, apply outcome) {
	t.Helper()
	want, got := preview.actions(t), apply.actions(t)
	for name := range got {
		if _, ok := want[name]; !ok {
			want[name] = "nothing"
		}
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if got[name] != want[name] {
			t.Errorf("%s: the preview reported %s, the apply did %s", name, want[name], got[name])
		}
	}
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

// verified fails the test unless somebody vouches for every object.
func (s outcome) verified(t testing.TB) outcome {
	t.Helper()
	for _, o := range s.result.Objects {
		if o.Verified == "" || strings.HasPrefix(o.Verified, "not verified") {
			t.Errorf("%s is verified by nobody: %s %q", bundle.Name(o.ID()), o.Action, o.Verified)
		}
	}
	return s
}

func TestPreviewOnAnEmptyCluster(t *testing.T) {
	c := clustertest.New(t)
	before, after := realBundle(t, "metalk8s-old"), realBundle(t, "metalk8s-new")
	run := func(command, files string, flags ...string) outcome {
		return brine(t, c.Kubeconfig, append([]string{command, "-f", files, "--inventory", "kube-system/metalk8s"}, flags...)...)
	}
	untouched := func(t *testing.T, files string) outcome {
		t.Helper()
		was := settled(t, c)
		s := run("preview", files).want(t, 0).verified(t)
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
	if s := many.result.Summary; s.Created != 1000 || s.Failed != 0 {
		t.Errorf("summary %+v, want 1000 created", s)
	}

	first := untouched(t, after)
	if s := first.result.Summary; s.Created != 101 || s.Failed != 0 {
		t.Errorf("summary %+v, want 101 created", s)
	}
	same(t, first, run("apply", after, "--wait=applied").want(t, 0))
	brine(t, c.Kubeconfig, "destroy", "--inventory", "kube-system/metalk8s").want(t, 0)

	same(t, untouched(t, before), run("apply", before).want(t, 0))
	up := untouched(t, after)
	same(t, up, run("apply", after).want(t, 0))
	again := untouched(t, after)
	for name, action := range again.actions(t) {
		if action != plan.Unchanged {
			t.Errorf("%s: previewed as %s just after it was applied", name, action)
		}
	}
	run("preview", after, "--detailed-exitcode").want(t, 0)
	run("preview", before, "--detailed-exitcode").want(t, 2)
	down := untouched(t, before)
	if down.result.Summary.Pruned == 0 {
		t.Error("nothing would be pruned on the way back")
	}
	same(t, down, run("apply", before, "--detailed-exitcode").want(t, 2))
}

// thousandObjects are 100 namespaces with nine objects each, and their CRD.
func thousandObjects() string {
	var b strings.Builder
	b.WriteString(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: pumps.thousand.example.com}
spec:
  group: thousand.example.com
  names: {kind: Pump, plural: pumps}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties: {spec: {type: object, properties: {rate: {type: integer, default: 7}}}}
`)
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
	s := newFixture(t)
	ns := s.ns + "-new"
	s.create("v1/configmaps", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: same, namespace: {ns}}\ndata: {live: inside-the-surrogate}\n")
	s.create("v1/resourcequotas", "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: none, namespace: {ns}}\nspec: {hard: {services: \"0\"}}\n")
	p := s.preview(documents(
		"apiVersion: v1\nkind: Namespace\nmetadata: {name: {ns}-new}\n",
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: same, namespace: {ns}-new}\ndata: {mine: \"1\"}\n",
		"apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: {ns}-new}\nspec: {ports: [{port: 80}], selector: {app: web}}\n",
		"apiVersion: v1\nkind: Pod\nmetadata: {name: one, namespace: {ns}-new}\nspec: {serviceAccountName: worker, containers: [{name: c, image: pause}]}\n",
		"apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: worker, namespace: {ns}-new}\n",
		"apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: b, namespace: {ns}-new}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}\nsubjects: [{kind: ServiceAccount, name: worker, namespace: {ns}-new}]\n",
	)).want(t, 0).verified(t)
	for _, o := range p.result.Objects {
		if o.Action != plan.Created {
			t.Errorf("%s is %s", o.Name, o.Action)
		}
		if o.Kind != "Namespace" && (o.Namespace != ns || !strings.Contains(o.Diff, "namespace: "+ns) || strings.Contains(o.Diff, "namespace: "+s.ns+"\n") || strings.Contains(o.Diff, "namespace: default")) {
			t.Errorf("%s %s is not shown where it will be:\n%s", o.Kind, o.Name, o.Diff)
		}
	}
	if d := p.object(t, "ConfigMap", "same").Diff; strings.Contains(d, "inside-the-surrogate") || !strings.Contains(d, "name: same") {
		t.Errorf("it is mixed with the one of the surrogate:\n%s", d)
	}
	if d := p.object(t, "Pod", "one").Diff; !strings.Contains(d, "serviceAccountName: worker") || strings.Contains(d, "serviceAccountName: default") {
		t.Errorf("the pod lost its ServiceAccount:\n%s", d)
	}
	if d := p.object(t, "Service", "web").Diff; strings.Contains(d, "clusterIP:") || !strings.Contains(d, "sessionAffinity: None") {
		t.Errorf("the server's own answer is not shown, or an address that it will not have:\n%s", d)
	}
}

const pumpCRD = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: pumps.{ns}.example.com}
spec:
  group: {ns}.example.com
  names: {kind: Pump, plural: pumps}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              rate: {type: integer, default: 7}
              limit: {type: integer}
            x-kubernetes-validations:
            - {rule: "!has(self.limit) || self.rate <= self.limit", message: rate is over the limit}
`

func pump(name, spec string) string {
	return "apiVersion: {ns}.example.com/v1\nkind: Pump\nmetadata:\n  name: " + name + "\n  namespace: {ns}\nspec:\n" + spec
}

func TestPreviewValidatesByTheCRDOfTheBundle(t *testing.T) {
	s := newFixture(t)
	s.goneAfter("apiextensions.k8s.io/v1/customresourcedefinitions", "pumps."+s.ns+".example.com")
	good := pump("good", "  limit: 9\n")
	p := s.preview(documents(pumpCRD, good)).want(t, 0)
	o := p.did(t, "Pump", "good", plan.Created)
	if o.Verified != "bundle CRD" || !strings.Contains(o.Diff, "rate: 7") {
		t.Errorf("verified by %q:\n%s", o.Verified, o.Diff)
	}

	bad := s.preview(documents(pumpCRD, pump("schema", "  rate: fast\n"), pump("rule", "  rate: 9\n  limit: 3\n"), pump("unknown", "  rte: 1\n"))).want(t, 1)
	for name, words := range map[string]string{"schema": "spec.rate", "rule": "rate is over the limit", "unknown": "spec.rte"} {
		o := bad.did(t, "Pump", name, plan.Failed)
		if !strings.Contains(o.Error, words) || !strings.Contains(o.Error, "bundle.yaml:") {
			t.Errorf("%s: %q does not tell %q, or where", name, o.Error, words)
		}
		if !slices.ContainsFunc(bad.result.Errors, func(e string) bool { return strings.Contains(e, words) && strings.Contains(e, "bundle.yaml:") }) {
			t.Errorf("%q with file and line is not among the errors: %q", words, bad.result.Errors)
		}
	}

	s.apply(documents(pumpCRD, good)).want(t, 0)
	changed := strings.Replace(pumpCRD, "limit: {type: integer}", "limit: {type: integer}\n              hue: {type: string, default: blue}", 1)
	text := documents(changed, pump("good", "  limit: 10\n"))
	o = s.preview(text).want(t, 0).did(t, "Pump", "good", plan.Configured)
	if o.Verified != "bundle CRD" || !strings.Contains(o.Diff, "+  hue: blue") {
		t.Errorf("verified by %q:\n%s", o.Verified, o.Diff)
	}
	same(t, s.preview(text), s.apply(text).want(t, 0))
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
	patch := func(s *fixture, resource, name, body string, manager string) {
		s.Helper()
		if _, err := s.resources(resource).Namespace(s.ns).Patch(s.Context(), name, types.MergePatchType, []byte(body), metav1.PatchOptions{FieldManager: manager}); err != nil {
			s.Fatal(err)
		}
	}
	base := documents(configMap("a"), configMap("b"), deployment("web", 1, "1m"))
	for _, test := range []struct {
		name  string
		first string
		live  func(*fixture)
		then  string
		flags []string
		exit  int
		want  map[string]plan.Action
		tells string
	}{
		{name: "nothing moved", first: base, then: base, want: map[string]plan.Action{"a": plan.Unchanged, "web": plan.Unchanged}},
		{name: "ask about everything", first: base, then: base, flags: []string{"--verify=full"}, want: map[string]plan.Action{"a": plan.Unchanged, "web": plan.Unchanged}},
		{name: "changed by kubectl", first: base, then: base, want: map[string]plan.Action{"a": plan.Failed, "b": plan.Unchanged}, exit: 1, tells: "kubectl-edit",
			live: func(s *fixture) { patch(s, "v1/configmaps", "a", `{"data":{"key":"other"}}`, "kubectl-edit") }},
		{name: "changed by kubectl and taken back", first: base, then: base, flags: []string{"--force-conflicts"}, want: map[string]plan.Action{"a": plan.Configured, "b": plan.Unchanged}, tells: "takes .data.key from kubectl-edit",
			live: func(s *fixture) { patch(s, "v1/configmaps", "a", `{"data":{"key":"other"}}`, "kubectl-edit") }},
		{name: "a field beside ours", first: base, then: base, want: map[string]plan.Action{"a": plan.Unchanged},
			live: func(s *fixture) { patch(s, "v1/configmaps", "a", `{"data":{"more":"x"}}`, "kubectl-edit") }},
		{name: "deleted", first: base, then: base, want: map[string]plan.Action{"a": plan.Created, "b": plan.Unchanged},
			live: func(s *fixture) {
				if err := s.resources("v1/configmaps").Namespace(s.ns).Delete(s.Context(), "a", metav1.DeleteOptions{}); err != nil {
					s.Fatal(err)
				}
			}},
		{name: "the label is gone", first: base, then: base, want: map[string]plan.Action{"a": plan.Configured},
			live: func(s *fixture) {
				patch(s, "v1/configmaps", "a", `{"metadata":{"labels":{"applyset.kubernetes.io/part-of":null}}}`, "kubectl-label")
			}},
		{name: "not ours any more", first: base, then: configMap("b"), want: map[string]plan.Action{"a": plan.Detached, "b": plan.Unchanged, "web": plan.Pruned},
			live: func(s *fixture) {
				patch(s, "v1/configmaps", "a", `{"metadata":{"annotations":{"config.k8s.io/owning-inventory":null}}}`, "kubectl-annotate")
			}},
		{name: "pruned and detached and kept", first: documents(configMap("a"), configMap("b", "annotations: {client.lifecycle.config.k8s.io/deletion: detach}"), configMap("c")),
			then: documents(configMap("c"), configMap("d")), want: map[string]plan.Action{"a": plan.Pruned, "b": plan.Detached, "c": plan.Unchanged, "d": plan.Created}},
		{name: "no pruning", first: base, then: configMap("b"), flags: []string{"--no-prune"}, want: map[string]plan.Action{"a": plan.Skipped, "web": plan.Skipped}},
		{name: "another's object", first: base, then: documents(base, configMap("foreign")), exit: 1, want: map[string]plan.Action{"foreign": plan.Failed},
			live: func(s *fixture) {
				s.create("v1/configmaps", configMap("foreign", "annotations: {config.k8s.io/owning-inventory: else}"))
			}},
		{name: "adopted", first: base, then: documents(base, configMap("found")), flags: []string{"--force-conflicts"}, want: map[string]plan.Action{"found": plan.Configured},
			live: func(s *fixture) { s.create("v1/configmaps", configMap("found")) }},
		{name: "immutable", first: job("a"), then: job("b"), exit: 1, want: map[string]plan.Action{"once": plan.Failed}, tells: "--recreate"},
		{name: "recreated", first: job("a"), then: job("b"), flags: []string{"--recreate=Job", "--wait=applied"}, want: map[string]plan.Action{"once": plan.Recreated}, tells: "immutable"},
		{name: "recreated by annotation", first: job("a"), then: job("b", "annotations: {brine.dev/on-immutable: recreate}"), flags: []string{"--wait=applied"}, want: map[string]plan.Action{"once": plan.Recreated}},
		{name: "invalid", first: base, then: documents(configMap("a"), strings.Replace(deployment("web", 1, "1m"), "replicas: 1", "replicas: -1", 1)), exit: 1, want: map[string]plan.Action{"web": plan.Failed}, tells: "spec.replicas is at"},
		{name: "needs what fails", first: configMap("a"), exit: 1,
			then: documents(strings.Replace(deployment("web", 1, "1m"), "replicas: 1", "replicas: -1", 1), configMap("after", `annotations: {config.kubernetes.io/depends-on: "apps/namespaces/{ns}/Deployment/web"}`)),
			want: map[string]plan.Action{"web": plan.Failed, "after": plan.Skipped, "a": plan.Skipped}},
		{name: "never changed", first: documents(configMap("a", "annotations: {client.lifecycle.config.k8s.io/mutation: ignore}")),
			then: strings.Replace(configMap("a", "annotations: {client.lifecycle.config.k8s.io/mutation: ignore}"), "key: value", "key: new", 1), want: map[string]plan.Action{"a": plan.Unchanged}},
		{name: "dropped field", first: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: {ns}}\ndata: {x: \"1\", y: \"2\"}\n",
			then: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: {ns}}\ndata: {x: \"1\"}\n", want: map[string]plan.Action{"a": plan.Configured}},
		{name: "a default made explicit", first: deployment("web", 1, "1m"), then: strings.Replace(deployment("web", 1, "1m"), "  replicas: 1\n", "  replicas: 1\n  revisionHistoryLimit: 10\n", 1), want: map[string]plan.Action{"web": plan.Configured}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newFixture(t)
			s.apply(test.first).want(t, 0)
			if test.live != nil {
				test.live(s)
			}
			was := s.live("v1/configmaps", s.ns, "inv").GetResourceVersion()
			p := s.preview(test.then, slices.DeleteFunc(slices.Clone(test.flags), func(f string) bool { return f == "--wait=applied" })...).want(t, test.exit)
			if s.live("v1/configmaps", s.ns, "inv").GetResourceVersion() != was {
				t.Error("the preview wrote the inventory")
			}
			for name, action := range test.want {
				found := false
				for _, o := range p.result.Objects {
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
			p.prints(t, test.tells)
			same(t, p, s.apply(test.then, test.flags...).want(t, test.exit))
		})
	}
}
