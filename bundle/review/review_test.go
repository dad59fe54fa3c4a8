package review

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/bundle/bundletest"
	"brine/bundle/diff"
	"brine/bundle/plan"
)

// changed is the change between two texts; action "" is what follows from them.
func changed(t *testing.T, action plan.Action, before, after string) Change {
	t.Helper()
	c := Change{Action: action, Before: bundletest.Object(t, before), After: bundletest.Object(t, after)}
	one := c.After
	switch {
	case c.Before == nil && action == "":
		c.Action = plan.Created
	case c.After == nil && action == "":
		c.Action, one = plan.Pruned, c.Before
	case action == "":
		c.Action = plan.Configured
	}
	if one == nil {
		one = c.Before
	}
	c.ID = bundle.ID{GroupKind: one.GroupVersionKind().GroupKind(), Namespace: one.GetNamespace(), Name: one.GetName()}
	if c.Before != nil && c.After != nil {
		c.Fields = diff.Objects(c.Before, c.After, nil).Changes
	}
	return c
}

// lines are the risks, with their details, as "type Kind/name: text".
func lines(r *Review) []string {
	var out []string
	for _, risk := range r.Risks {
		var names []string
		for _, o := range risk.Objects {
			names = append(names, o.Kind+"/"+o.Name)
		}
		text := strings.TrimSpace(risk.Subject + " " + risk.Text)
		if risk.Severe {
			text = "! " + text
		}
		out = append(out, fmt.Sprintf("%s %s: %s", risk.Type, strings.Join(names, ","), text))
		for _, d := range risk.Details {
			out = append(out, "  "+d)
		}
	}
	return out
}

const web = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: app, image: 'registry/web:1'}]
`

func withStatus(text, status string) string { return text + "status: " + status + "\n" }

func TestRisks(t *testing.T) {
	image := func(text string) string { return strings.Replace(text, "web:1", "web:2", 1) }
	one := func(text string) string { return strings.Replace(text, "replicas: 3", "replicas: 1", 1) }
	kind := func(text, kind string) string { return strings.Replace(text, "kind: Deployment", "kind: "+kind, 1) }
	spec := func(text, more string) string { return strings.Replace(text, "spec:\n", "spec:\n  "+more+"\n", 1) }
	claims := spec(kind(web, "StatefulSet"), "persistentVolumeClaimRetentionPolicy: {whenScaled: Delete}")
	pod := func(text, more string) string {
		return strings.Replace(text, "      containers:", "      "+more+"\n      containers:", 1)
	}
	container := func(text, more string) string { return strings.Replace(text, "name: app,", "name: app, "+more+",", 1) }
	role := func(kind, rules string) string {
		return "apiVersion: rbac.authorization.k8s.io/v1\nkind: " + kind + "\nmetadata: {name: reader}\nrules: " + rules
	}
	binding := func(subjects string) string {
		return "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: readers}\nroleRef: {kind: ClusterRole, name: reader}\nsubjects: " + subjects
	}
	service := "apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: shop}\nspec: {type: ClusterIP, selector: {app: web}, ports: [{port: 80}]}\n"
	crd := "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: things.example.com}\n" +
		"spec: {group: example.com, names: {kind: Thing, plural: things}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}}}]}\n"
	claim := "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data, namespace: shop}\nstatus: {capacity: {storage: 5Gi}}\n"
	namespace := "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop, labels: {pod-security.kubernetes.io/enforce: restricted}}\n"
	hook := "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\nmetadata: {name: gate}\nwebhooks: [{name: gate.example.com, rules: [{operations: [CREATE], apiGroups: [''], resources: [pods]}]}]\n"
	budget := "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: web, namespace: shop}\nspec: {minAvailable: 3, selector: {matchLabels: {app: web}}}\nstatus: {disruptionsAllowed: 0}\n"

	for name, c := range map[string]struct {
		action        plan.Action
		before, after string
		cluster       Cluster
		want          []string
	}{
		"nothing dangerous": {before: strings.Replace(service, "name: web,", "name: web, labels: {a: b},", 1), after: service},
		"pods restart": {before: withStatus(web, "{replicas: 3}"), after: image(web),
			want: []string{"restart Deployment/web: all 3 pods restart; new ones have to be ready first (container app: image)"}},
		"arguments": {before: withStatus(container(web, "args: ['--level=info', '--old', '--at=a']"), "{replicas: 3}"), after: container(web, "args: ['--level=debug', '--at=a', '--new=b']"),
			want: []string{"restart Deployment/web: all 3 pods restart; new ones have to be ready first (container app: args --level info → debug, removes --old, adds --new=b)"}},
		"ports of nodes": {before: withStatus(container(kind(web, "DaemonSet"), "ports: [{containerPort: 80, hostPort: 80}, {containerPort: 81}, {containerPort: 443, hostPort: 443}]"), "{desiredNumberScheduled: 2}"),
			after: image(container(kind(web, "DaemonSet"), "ports: [{containerPort: 80, hostPort: 80}, {containerPort: 81}, {containerPort: 443, hostPort: 443}]")),
			want:  []string{"restart DaemonSet/web: all 2 pods restart, one after another; while a pod restarts, nothing answers on its node's hostPort 80, 443 (container app: image)"}},
		"the only pod of a Deployment": {before: withStatus(one(web), "{replicas: 1}"), after: image(one(web)),
			want: []string{"restart Deployment/web: its only pod restarts; the new one has to be ready first (container app: image)"}},
		"the only pod, without surge": {before: withStatus(one(web), "{replicas: 1}"), after: spec(image(one(web)), "strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}"),
			want: []string{"restart Deployment/web: its only pod restarts; until the new one is ready there is none (container app: image)"}},
		"all stop first": {before: withStatus(web, "{replicas: 3}"), after: spec(image(web), "strategy: {type: Recreate}"),
			want: []string{"restart Deployment/web: all 3 pods stop before the new ones start (strategy Recreate) (container app: image)"}},
		"the only pod of a StatefulSet": {before: withStatus(kind(one(web), "StatefulSet"), "{replicas: 1}"), after: image(kind(one(web), "StatefulSet")),
			want: []string{"restart StatefulSet/web: its only pod restarts; until the new one is ready there is none (container app: image)"}},
		"a partition": {before: withStatus(kind(web, "StatefulSet"), "{replicas: 3}"), after: spec(image(kind(web, "StatefulSet")), "updateStrategy: {rollingUpdate: {partition: 2}}"),
			want: []string{"restart StatefulSet/web: the pods from number 2 on restart (partition) (container app: image)"}},
		"pods of a DaemonSet": {before: withStatus(kind(web, "DaemonSet"), "{desiredNumberScheduled: 7}"), after: spec(image(kind(web, "DaemonSet")), "updateStrategy: {rollingUpdate: {maxUnavailable: 30%}}"),
			want: []string{"restart DaemonSet/web: all 7 pods restart, 3 at once (container app: image)"}},
		"on delete": {before: withStatus(kind(web, "DaemonSet"), "{desiredNumberScheduled: 2}"), after: spec(image(kind(web, "DaemonSet")), "updateStrategy: {type: OnDelete}"),
			want: []string{"restart DaemonSet/web: its 2 pods restart when somebody deletes them (updateStrategy OnDelete) (container app: image)"}},
		"paused": {before: withStatus(web, "{replicas: 3}"), after: spec(image(web), "paused: true"),
			want: []string{"restart Deployment/web: is paused: its 3 pods restart once it is resumed (container app: image)"}},
		"without pods": {before: withStatus(web, "{replicas: 0}"), after: image(web),
			want: []string{"restart Deployment/web: has no pods now (container app: image)"}},
		"a budget": {before: withStatus(web, "{replicas: 3}"), after: image(web), cluster: Cluster{Budgets: []unstructured.Unstructured{*bundletest.Object(t, budget)}},
			want: []string{"restart Deployment/web: all 3 pods restart; new ones have to be ready first (container app: image)",
				"  PodDisruptionBudget web allows no disruption now (minAvailable 3): a rollout does not ask it, a drain of a node does"}},
		"a budget of all pods": {before: withStatus(web, "{replicas: 3}"), after: image(web), cluster: Cluster{Budgets: []unstructured.Unstructured{*bundletest.Object(t, strings.Replace(budget, "{matchLabels: {app: web}}", "{}", 1))}},
			want: []string{"restart Deployment/web: all 3 pods restart; new ones have to be ready first (container app: image)",
				"  PodDisruptionBudget web allows no disruption now (minAvailable 3): a rollout does not ask it, a drain of a node does"}},
		"a budget of other pods": {before: withStatus(web, "{replicas: 3}"), after: image(web), cluster: Cluster{Budgets: []unstructured.Unstructured{*bundletest.Object(t, strings.Replace(budget, "app: web", "app: db", 1))}},
			want: []string{"restart Deployment/web: all 3 pods restart; new ones have to be ready first (container app: image)"}},
		"budgets unknown": {before: withStatus(web, "{replicas: 3}"), after: image(web), cluster: Cluster{BudgetsUnknown: "no right to list poddisruptionbudgets.policy"},
			want: []string{"restart Deployment/web: all 3 pods restart; new ones have to be ready first (container app: image)",
				"  its PodDisruptionBudgets are unknown: no right to list poddisruptionbudgets.policy"}},
		"no cluster": {before: web, after: image(web), cluster: Cluster{Unread: true},
			want: []string{"restart Deployment/web: all 3 pods restart; new ones have to be ready first (container app: image)"}},
		"fewer replicas": {before: withStatus(web, "{replicas: 3}"), after: one(web), want: []string{"deleted Deployment/web: scales from 3 pods to 1"}},
		"fewer replicas with claims": {before: withStatus(claims, "{replicas: 3}"), after: one(claims), want: []string{
			"data StatefulSet/web: the claims of the pods that go, and their data, are deleted (persistentVolumeClaimRetentionPolicy)", "deleted StatefulSet/web: scales from 3 pods to 1"}},
		"a deleted workload": {before: withStatus(web, "{replicas: 2}"), want: []string{"deleted Deployment/web: deleted with its 2 pods, at the end of the run"}},
		"a deleted workload, no cluster": {before: kind(web, "DaemonSet"), cluster: Cluster{Unread: true},
			want: []string{"deleted DaemonSet/web: deleted with its pods"}},
		"a deleted Service": {before: service, want: []string{"deleted Service/web: its clients no longer reach anything; no other object of the bundle or the inventory names it"}},
		"a claim":           {before: claim, want: []string{"data PersistentVolumeClaim/data: the claim of 5Gi and its data are deleted, unless its volume is retained"}},
		"claims of a StatefulSet": {before: withStatus(spec(kind(web, "StatefulSet"), "persistentVolumeClaimRetentionPolicy: {whenDeleted: Delete}"), "{replicas: 3}"),
			want: []string{"data StatefulSet/web: its claims and their data are deleted with it (persistentVolumeClaimRetentionPolicy)"}},
		"a namespace": {before: namespace, cluster: Cluster{Counts: map[bundle.ID]Count{{GroupKind: bundle.NamespaceKind, Name: "shop"}: {N: 2}}},
			want: []string{"data Namespace/shop: the namespace is deleted with all that is in it: 2 PersistentVolumeClaims"}},
		"a CRD": {before: crd, cluster: Cluster{Counts: map[bundle.ID]Count{{GroupKind: bundle.CRDKind, Name: "things.example.com"}: {N: 1}}},
			want: []string{"data CustomResourceDefinition/things.example.com: the kind Thing is deleted with all its resources: 1 resource"}},
		"a CRD that cannot be counted": {before: crd, cluster: Cluster{Counts: map[bundle.ID]Count{{GroupKind: bundle.CRDKind, Name: "things.example.com"}: {Unknown: "no right to list things.example.com"}}},
			want: []string{"data CustomResourceDefinition/things.example.com: the kind Thing is deleted with all its resources: how many resources is unknown (no right to list things.example.com)"}},
		"a field of a CRD": {before: crd, after: strings.Replace(crd, "size:", "length:", 1), cluster: Cluster{Counts: map[bundle.ID]Count{{GroupKind: bundle.CRDKind, Name: "things.example.com"}: {N: 4}}},
			want: []string{"api CustomResourceDefinition/things.example.com: 1 field added, 1 field removed; 4 resources on the cluster", "  v1 spec.size: removed"}},
		"recreated": {action: plan.Recreated, before: withStatus(web, "{replicas: 3}"), after: web,
			want: []string{"recreated Deployment/web: deleted and created again: its 3 pods stop before the new ones start"}},
		"a role gains": {before: role("ClusterRole", "[{apiGroups: [''], resources: [pods], verbs: [get, list]}]"), after: role("ClusterRole", "[{apiGroups: [''], resources: [pods, secrets], verbs: [get]}]"),
			want: []string{"rights ClusterRole/reader: ! whoever is bound to ClusterRole reader may wherever it is bound: read Secrets", "  get: secrets"}},
		"a role gains a verb": {before: role("ClusterRole", "[{apiGroups: [''], resources: [pods], verbs: [get]}]"), after: role("ClusterRole", "[{apiGroups: [''], resources: [pods], verbs: ['*']}]"),
			want: []string{"rights ClusterRole/reader: ! whoever is bound to ClusterRole reader may wherever it is bound: start pods", "  *: pods"}},
		"a role loses": {before: role("ClusterRole", "[{apiGroups: ['*'], resources: ['*'], verbs: ['*']}]"), after: role("ClusterRole", "[{apiGroups: [''], resources: [pods], verbs: [get]}]")},
		"a role is split": {before: role("ClusterRole", "[{apiGroups: [''], resources: [pods, services], verbs: [get]}]"),
			after: role("ClusterRole", "[{apiGroups: [''], resources: [pods], verbs: [get]}, {apiGroups: [''], resources: [services], verbs: [get]}]")},
		"a new role nobody has": {after: role("ClusterRole", "[{apiGroups: [apps], resources: [deployments], verbs: [get]}]"),
			want: []string{"rights ClusterRole/reader: whoever is bound to ClusterRole reader may wherever it is bound: get: deployments.apps"}},
		"a new binding": {after: binding("[{kind: ServiceAccount, name: web, namespace: shop}]"),
			want: []string{"rights ClusterRoleBinding/readers: ! ServiceAccount shop/web may in the whole cluster: do all that ClusterRole reader allows, which is not known here"}},
		"a binding gains": {before: binding("[{kind: User, name: a}]"), after: binding("[{kind: User, name: a}, {kind: Group, name: b}]"),
			want: []string{"rights ClusterRoleBinding/readers: ! Group b may in the whole cluster: do all that ClusterRole reader allows, which is not known here"}},
		"another account": {before: web, after: pod(web, "serviceAccountName: admin"),
			want: []string{"missing Deployment/web: no pod is created: ServiceAccount admin (neither in the bundle nor on the cluster)", "  ServiceAccount admin: spec.template.spec.serviceAccountName",
				"restart Deployment/web: all 3 pods restart; new ones have to be ready first; the rollout stops at the first new pod, which does not start while what it names is missing (serviceAccountName)", "rights Deployment/web: its pods run as ServiceAccount admin instead of default"}},
		"privileges": {before: withStatus(web, "{replicas: 0}"), after: container(pod(web, "hostNetwork: true\n      volumes: [{name: log, hostPath: {path: /var/log}}]"), "securityContext: {privileged: true, runAsUser: 0, capabilities: {add: [NET_ADMIN]}}"),
			want: []string{"restart Deployment/web: has no pods now (container app: securityContext, hostNetwork, volumes)",
				"privileges Deployment/web: its pods get: hostNetwork, hostPath /var/log, privileged container app, capability NET_ADMIN (container app), user root (container app)"}},
		"privileges as before": {before: pod(web, "hostNetwork: true"), after: pod(strings.Replace(web, "replicas: 3", "replicas: 4", 1), "hostNetwork: true")},
		"new privileges":       {after: pod(web, "hostPID: true"), want: []string{"privileges Deployment/web: new; its pods have: hostPID"}},
		"less pod security": {before: namespace, after: strings.Replace(namespace, "restricted", "baseline", 1),
			want: []string{"privileges Namespace/shop: enforces Pod Security baseline instead of restricted"}},
		"a webhook in some namespaces": {after: strings.Replace(hook, "rules:", "namespaceSelector: {matchExpressions: [{key: gated, operator: NotIn, values: ['no']}]}, rules:", 1),
			want: []string{"webhook ValidatingWebhookConfiguration/gate: new", "  gate.example.com is asked about create of pods in the core group, in namespaces with labels gated notin (no); they fail if it cannot be reached"}},
		"a new webhook": {after: hook, want: []string{"webhook ValidatingWebhookConfiguration/gate: new", "  gate.example.com is asked about create of pods in the core group; they fail if it cannot be reached"}},
		"a selector": {before: service, after: strings.Replace(service, "app: web", "app: shop", 1),
			want: []string{"network Service/web: changes: spec.selector.app web → shop"}},
		"a port is opened": {before: service, after: strings.Replace(service, "ClusterIP", "NodePort", 1), want: []string{"network Service/web: changes: spec.type ClusterIP → NodePort"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := lines(Of([]Change{changed(t, c.action, c.before, c.after)}, c.cluster))
			if !slices.Equal(got, c.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
}

// A new binding says what its role may do, where the change holds the role; the
// role itself is not listed again.
func TestShareOfTheInventory(t *testing.T) {
	for _, c := range []struct {
		pruned, kept, created int
		want                  string
	}{
		{pruned: 5, kept: 9, want: "5 of 14 objects are pruned: is the bundle whole?"},
		{pruned: 5, kept: 10},
		{pruned: 5, kept: 9, created: 20, want: "5 of 14 objects are pruned: is the bundle whole?"},
		{pruned: 4, kept: 1},
		{pruned: 9}, // destroyed
	} {
		var changes []Change
		add := func(n int, action plan.Action, o *bundle.Object) {
			for range n {
				changes = append(changes, Change{ID: bundle.ID{Name: fmt.Sprint("o", len(changes)), GroupKind: bundle.ConfigMapKind}, Action: action, Object: o})
			}
		}
		add(c.kept, plan.Unchanged, &bundle.Object{})
		add(c.created, plan.Created, &bundle.Object{})
		add(c.pruned, plan.Pruned, nil)
		got := ""
		if risks := Of(changes, Cluster{}).Risks; len(risks) > 0 && risks[0].Type == Share {
			got = risks[0].Text
		}
		if got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}

func TestBindingNamesTheRightsOfItsRole(t *testing.T) {
	r := Of([]Change{
		changed(t, "", "", "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: keys, namespace: shop}\nrules: [{apiGroups: [''], resources: [secrets], verbs: [get, update]}]"),
		changed(t, "", "", "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: keys, namespace: shop}\nroleRef: {kind: Role, name: keys}\nsubjects: [{kind: ServiceAccount, name: web}]"),
	}, Cluster{})
	want := []string{"rights RoleBinding/keys: ServiceAccount shop/web may in namespace shop: read Secrets; write Secrets", "  get, update: secrets"}
	if got := lines(r); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// What nobody could be asked about is one risk for each reason; the worst risks
// come first.
func TestUnverifiedAndOrder(t *testing.T) {
	a, b := changed(t, "", "", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}"), changed(t, "", "", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}")
	a.Unverified, b.Unverified = "a webhook cannot be asked now: gate", "a webhook cannot be asked now: gate"
	b.Taken = []string{".data.x from kubectl"}
	claim := changed(t, "", "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}", "")
	want := []string{
		"data PersistentVolumeClaim/data: the claim and its data are deleted, unless its volume is retained",
		"conflict ConfigMap/b: takes .data.x from kubectl",
		"unverified ConfigMap/a,ConfigMap/b: a webhook cannot be asked now: gate",
	}
	if got := lines(Of([]Change{a, b, claim}, Cluster{})); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// The cluster is asked about what is dangerous alone.
func TestAsk(t *testing.T) {
	configMap := changed(t, "", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: b}", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: c}")
	labels := changed(t, "", withStatus(web, "{replicas: 3}"), strings.Replace(web, "name: web,", "name: web, labels: {a: b},", 1))
	if q := Ask([]Change{configMap, labels}); len(q.Budgets)+len(q.Count) > 0 {
		t.Errorf("asked %+v", q)
	}
	restart := changed(t, "", withStatus(web, "{replicas: 3}"), strings.Replace(web, "web:1", "web:2", 1))
	namespace := changed(t, "", "apiVersion: v1\nkind: Namespace\nmetadata: {name: old}", "")
	q := Ask([]Change{configMap, restart, namespace, restart})
	if !slices.Equal(q.Budgets, []string{"shop"}) || len(q.Count) != 1 || q.Count[0].Name != "old" {
		t.Errorf("asked %+v", q)
	}
}

func TestImagesAndVersions(t *testing.T) {
	labelled := func(kind, name, chart, version, more string) string {
		return fmt.Sprintf("apiVersion: v1\nkind: %s\nmetadata: {name: %s, namespace: shop, labels: {helm.sh/chart: %s, app.kubernetes.io/version: '%s'}}\n%s", kind, name, chart, version, more)
	}
	var changes []Change
	for _, name := range []string{"a", "b", "c"} {
		changes = append(changes, changed(t, "", labelled("ServiceAccount", name, "web-1.0.0", "1", ""), labelled("ServiceAccount", name, "web-1.2.0", "2", "")))
	}
	for _, name := range []string{"x", "y", "z"} {
		changes = append(changes, changed(t, "", labelled("ConfigMap", name, "web-1.0.0", "1", "data: {level: info}"), labelled("ConfigMap", name, "web-1.2.0", "2", "data: {level: debug}")))
	}
	changes = append(changes,
		changed(t, "", web, strings.Replace(web, "web:1", "web:2", 1)),
		changed(t, "", "", strings.NewReplacer("name: web,", "name: new,", "web:1", "new@sha256:"+strings.Repeat("a", 64)).Replace(web)),
		changed(t, "", strings.NewReplacer("name: web,", "name: old,", "web:1", "old:1").Replace(web), ""),
		changed(t, "", "", labelled("ConfigMap", "n", "cache-0.1.0", "7", "")),
	)
	r := Of(changes, Cluster{})
	got, err := json.Marshal(map[string]any{"images": r.Images, "versions": r.Versions, "same": r.Same})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`{"image":"registry/web","from":"1","to":"2","objects":[{"group":"apps","kind":"Deployment","namespace":"shop","name":"web"}]}`,
		`{"image":"registry/new","to":"sha256:aaaa`, `{"image":"registry/old","from":"1","objects"`,
		`{"component":"web","chartFrom":"1.0.0","chartTo":"1.2.0","from":"1","to":"2","objects":6,"action":"configured"}`,
		`{"component":"cache","chartTo":"0.1.0","to":"7","objects":1,"action":"created"}`,
		`"labels":true,"objects":[{"group":"","kind":"ServiceAccount","namespace":"shop","name":"a"}`,
		`{"fields":[{"path":"data.level","old":"info","new":"debug"}],"labels":false,"objects":[{"group":"","kind":"ConfigMap","namespace":"shop","name":"x"}`,
	} {
		if !strings.Contains(string(got), want) {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
}

// Values of Secrets are masked in the fields, so that different changes look the
// same: these are not folded.
func TestSecretsAreNotFolded(t *testing.T) {
	var changes []Change
	for _, name := range []string{"a", "b", "c", "d"} {
		text := "apiVersion: v1\nkind: Secret\nmetadata: {name: " + name + "}\nstringData: {password: %s}"
		changes = append(changes, changed(t, "", fmt.Sprintf(text, "old"+name), fmt.Sprintf(text, "new"+name)))
	}
	if r := Of(changes, Cluster{}); len(r.Same) != 0 {
		t.Errorf("folded: %+v", r.Same)
	}
}
