package review

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle"
	"brine/bundle/bundletest"
	"brine/bundle/plan"
)

func roleOfRules(kind, name, rules string) string {
	return "apiVersion: rbac.authorization.k8s.io/v1\nkind: " + kind + "\nmetadata: {name: " + name + "}\nrules: " + rules
}

func boundTo(name, role, subjects string) string {
	return "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: " + name + "}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: " + role + "}\nsubjects: " + subjects
}

// Rights are put together by who gains them. Those that open the cluster come first.
func TestRightsBySubject(t *testing.T) {
	web, other := "[{kind: ServiceAccount, name: web, namespace: shop}]", "[{kind: ServiceAccount, name: other, namespace: shop}]"
	got := lines(Of([]Change{
		changed(t, "", "", roleOfRules("ClusterRole", "pods", "[{apiGroups: [''], resources: [pods], verbs: [get, list]}]")),
		changed(t, "", "", boundTo("a", "pods", other)),
		changed(t, "", "", boundTo("b", "pods", web)),
		changed(t, "", "", roleOfRules("ClusterRole", "keys", "[{apiGroups: [''], resources: [secrets], verbs: [get]}, {apiGroups: [apiextensions.k8s.io], resources: [customresourcedefinitions], verbs: [patch]}]")),
		changed(t, "", "", boundTo("c", "keys", web)),
		changed(t, "", "", boundTo("d", "of-the-cluster", "[{kind: Group, name: system:authenticated}]")),
		changed(t, "", roleOfRules("ClusterRole", "grows", "[]"), roleOfRules("ClusterRole", "grows", "[{apiGroups: [apps], resources: [deployments], verbs: [create]}]")),
		changed(t, plan.Unchanged, boundTo("e", "grows", other), boundTo("e", "grows", other)),
	}, Cluster{Found: map[bundle.ID]*unstructured.Unstructured{
		{GroupKind: roleOf(&Change{After: bundletest.Object(t, boundTo("d", "of-the-cluster", ""))}).GroupKind, Name: "of-the-cluster"}: bundletest.Object(t, roleOfRules("ClusterRole", "of-the-cluster", "[{apiGroups: [''], resources: [services], verbs: [get]}]")),
	}}))
	want := []string{
		"rights ClusterRoleBinding/a,ClusterRole/grows: ! ServiceAccount shop/other may in the whole cluster: start pods", "  get, list: pods", "  create: deployments.apps",
		"rights ClusterRoleBinding/b,ClusterRoleBinding/c: ! ServiceAccount shop/web may in the whole cluster: read Secrets; write customresourcedefinitions",
		"  get, list: pods", "  get: secrets", "  patch: customresourcedefinitions.apiextensions.k8s.io",
		"rights ClusterRoleBinding/d: ! Group system:authenticated may in the whole cluster: get: services",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// Another role is a gain for all that a binding names, and the webhook of a CRD is asked about all its objects.
func TestWhatIsAskedOfOthers(t *testing.T) {
	web := "[{kind: ServiceAccount, name: web, namespace: shop}]"
	crd := func(conversion string) string {
		return "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: things.example.com}\nspec: {group: example.com, conversion: " + conversion + "}\n"
	}
	hook := "{strategy: Webhook, webhook: {clientConfig: {service: {namespace: shop, name: things}}}}"
	for name, c := range map[string]struct {
		before, after string
		want          []string
	}{
		"another role":  {boundTo("a", "view", web), boundTo("a", "cluster-admin", web), []string{"rights ClusterRoleBinding/a: ! ServiceAccount shop/web may in the whole cluster: do everything", "  *: *.*"}},
		"the same role": {boundTo("a", "view", web), strings.Replace(boundTo("a", "view", web), "name: a", "name: a, labels: {a: b}", 1), nil},
		"a conversion":  {crd("{strategy: None}"), crd(hook), []string{"webhook CustomResourceDefinition/things.example.com: changes: a webhook converts its objects, Service shop/things"}},
		"no conversion": {crd(hook), crd("{strategy: None}"), nil},
	} {
		if got := lines(Of([]Change{changed(t, "", c.before, c.after)}, Cluster{})); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// What goes with a custom resource its controller decides.
func TestDeletedCustomResource(t *testing.T) {
	r := Of([]Change{changed(t, "", "apiVersion: ceph.example.com/v1\nkind: CephCluster\nmetadata: {name: c, namespace: shop}\n", "")}, Cluster{})
	if slices.Contains(r.Clear, Data) || slices.Contains(r.Clear, Deleted) || !slices.Contains(r.Unchecked, Unchecked{"what goes with CephCluster.ceph.example.com shop/c", "their controllers decide"}) {
		t.Errorf("%q, %q", r.Clear, r.Unchecked)
	}
}

// What a ClusterRole gets from others is not in it: no one says that there are no wider rights.
func TestAggregatedRights(t *testing.T) {
	role := func(to string) string {
		return "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: all}\naggregationRule: {clusterRoleSelectors: [{matchLabels: {to: " + to + "}}]}\nrules: []\n"
	}
	for name, test := range map[string]struct {
		changes []Change
		clear   bool
	}{
		"another selector": {[]Change{changed(t, "", role("view"), role("admin"))}, false},
		"the same":         {[]Change{changed(t, "", role("view"), strings.Replace(role("view"), "name: all", "name: all, labels: {a: b}", 1))}, true},
		"a new one":        {[]Change{changed(t, "", "", role("view")), changed(t, "", "", boundTo("b", "all", "[{kind: User, name: u}]"))}, false},
	} {
		if r := Of(test.changes, Cluster{}); slices.Contains(r.Clear, Rights) != test.clear || len(r.Unchecked) == 0 && !test.clear {
			t.Errorf("%s: clear %v, unchecked %v, risks %v", name, r.Clear, r.Unchecked, r.Risks)
		}
	}
}

// What leads to more comes first. A ClusterRole that others bind, or that is collected into
// another one, may hold in one namespace alone.
func TestOrderAndScopeOfRights(t *testing.T) {
	var changes []Change
	for name, rules := range map[string]string{
		"hooks":    "[{apiGroups: [admissionregistration.k8s.io, apiregistration.k8s.io], resources: [mutatingwebhookconfigurations, apiservices], verbs: [patch]}, {apiGroups: [''], resources: [secrets], verbs: [get]}]",
		"reads":    "[{apiGroups: [''], resources: [secrets], verbs: [get]}]",
		"starts":   "[{apiGroups: [''], resources: [pods], verbs: [create]}]",
		"binds":    "[{apiGroups: [rbac.authorization.k8s.io], resources: [clusterroles], verbs: [bind]}]",
		"harmless": "[{apiGroups: [''], resources: [pods], verbs: [get]}]",
	} {
		changes = append(changes, changed(t, "", "", roleOfRules("ClusterRole", name, rules)), changed(t, "", "", boundTo(name, name, "[{kind: User, name: "+name+"}]")))
	}
	collected := "[{apiGroups: [example.com], resources: [things], verbs: [get]}]\n"
	for _, to := range []string{"view", "cluster-reader"} {
		changes = append(changes, changed(t, "", "", strings.Replace(roleOfRules("ClusterRole", "for-"+to, collected), "metadata: {", "metadata: {labels: {rbac.authorization.k8s.io/aggregate-to-"+to+": 'true'}, ", 1)))
	}
	var got []string
	for _, risk := range Of(changes, Cluster{}).Risks {
		got = append(got, risk.Subject+" "+risk.Text)
	}
	want := []string{
		"User binds may in the whole cluster: bind clusterroles",
		"User starts may in the whole cluster: start pods",
		"User hooks may in the whole cluster: write mutatingwebhookconfigurations and apiservices; read Secrets",
		"User reads may in the whole cluster: read Secrets",
		"User harmless may in the whole cluster: get: pods",
		"whoever has ClusterRole view may wherever it is bound: get: things.example.com",
		"whoever has ClusterRole cluster-reader (not a default ClusterRole: perhaps there is none) may wherever it is bound: get: things.example.com",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// What is deleted besides workloads and Services is named with them, and it is said where
// no PodDisruptionBudget is about the pods.
func TestDeletedAsWell(t *testing.T) {
	account := changed(t, "", "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: web, namespace: shop}\n", "")
	if r := Of([]Change{account}, Cluster{}); len(r.Risks) > 0 || r.NoBudget {
		t.Errorf("a ServiceAccount alone: %q", lines(r))
	}
	pods := changed(t, "", withStatus(web, "{replicas: 2}"), "")
	r := Of([]Change{account, pods}, Cluster{})
	if want := []string{"deleted Deployment/web: deleted with its 2 pods, at the end of the run", "deleted ServiceAccount/web: deleted as well"}; !slices.Equal(lines(r), want) || !r.NoBudget {
		t.Errorf("%q, no budget: %t", lines(r), r.NoBudget)
	}
	if Of([]Change{pods}, Cluster{BudgetsUnknown: "no right"}).NoBudget || Of([]Change{pods}, Cluster{Unread: true}).NoBudget {
		t.Error("unknown budgets are taken for none")
	}
}

func TestNotableRights(t *testing.T) {
	for rule, want := range map[string]string{
		"{apiGroups: ['*'], resources: ['*'], verbs: ['*']}":                                                                                            "! do everything",
		"{apiGroups: [rbac.authorization.k8s.io], resources: [clusterroles], verbs: [escalate, bind]}":                                                  "! escalate clusterroles; bind clusterroles",
		"{apiGroups: [''], resources: [users], verbs: [impersonate]}":                                                                                   "! impersonate users",
		"{apiGroups: [''], resources: [pods/exec], verbs: [create]}":                                                                                    "! use pods/exec",
		"{apiGroups: [''], resources: [nodes/proxy], verbs: [get]}":                                                                                     "! use nodes/proxy",
		"{apiGroups: [''], resources: [serviceaccounts/token], verbs: [create]}":                                                                        "! make tokens of ServiceAccounts",
		"{apiGroups: [certificates.k8s.io], resources: [signers], resourceNames: [kubernetes.io/kubelet-serving], verbs: [approve]}":                    "! approve certificates of signer kubernetes.io/kubelet-serving",
		"{apiGroups: [certificates.k8s.io], resources: [certificatesigningrequests/approval], verbs: [update]}":                                         "! approve certificates",
		"{apiGroups: [apiregistration.k8s.io], resources: [apiservices], verbs: [patch]}":                                                               "! write apiservices",
		"{apiGroups: [apiregistration.k8s.io], resources: [apiservices/status], verbs: [patch]}":                                                        "",
		"{apiGroups: [''], resources: [secrets], resourceNames: [one], verbs: [get]}":                                                                   "",
		"{apiGroups: [''], resources: [secrets], verbs: [get]}":                                                                                         "! read Secrets",
		"{apiGroups: [apps], resources: [daemonsets], verbs: ['*']}":                                                                                    "! start pods",
		"{apiGroups: [''], resources: [services], verbs: ['*']}":                                                                                        "! do everything with services",
		"{apiGroups: [example.com], resources: ['*'], verbs: ['*']}":                                                                                    `* everything of group "example.com"`,
		"{apiGroups: [example.com], resources: [things], verbs: ['*']}":                                                                                 "",
		"{apiGroups: [''], resources: [services, pods], verbs: [create, get]}":                                                                          "! redirect traffic by services; start pods",
		"{apiGroups: [networking.k8s.io, gateway.networking.k8s.io], resources: [ingresses, httproutes, httproutes/status, gateways], verbs: [update]}": "redirect traffic by ingresses, httproutes and gateways",
		"{apiGroups: [networking.k8s.io], resources: [ingresses], verbs: [delete]}":                                                                     "",
		"{nonResourceURLs: [/metrics], verbs: [get]}":                                                                                                   "",
	} {
		text, severe, _ := notable(permissions(bundletest.Object(t, roleOfRules("ClusterRole", "r", "["+rule+"]")).Object), true)
		if severe {
			text = "! " + text
		}
		if text != want {
			t.Errorf("%s: %q, want %q", rule, text, want)
		}
	}
	if _, severe, _ := notable([]permission{{verb: "get", resource: "secrets"}}, false); severe {
		t.Error("Secrets of one namespace open the cluster")
	}
}

// An empty list is never to be guessed: a type of risks (but Share, of which few are none) is either found, or there is
// none, or it could not be looked for.
func TestCheckedAndUnchecked(t *testing.T) {
	of := func(c Cluster, changes ...Change) *Review { return Of(changes, c) }
	settings := changed(t, "", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: b}", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: c}")
	// Of SLS and files that are gone, which are looked for where something is deleted, nothing is said.
	if r := of(Cluster{}, settings); !slices.Equal(r.Clear, Types[2:]) || len(r.Unchecked) > 0 {
		t.Errorf("clear %q, unchecked %v", r.Clear, r.Unchecked)
	}
	same := settings
	same.Action = plan.Unchanged
	if r := of(Cluster{}, same); len(r.Clear)+len(r.Unchecked) > 0 {
		t.Errorf("nothing changes, and it says %q, %v", r.Clear, r.Unchecked)
	}
	failed := changed(t, plan.Failed, "", web)
	failed.After = nil
	if r := of(Cluster{}, settings, failed); slices.Contains(r.Clear, Rights) || !slices.Contains(r.Clear, Data) || len(r.Unchecked) != 1 || !strings.Contains(r.Unchecked[0].What, "Deployment shop/web") {
		t.Errorf("clear %q, unchecked %v", r.Clear, r.Unchecked)
	}
	pod := strings.Replace(web, "      containers:", "      imagePullSecrets: [{name: pull}]\n      containers:", 1)
	secret := bundle.ID{GroupKind: bundle.SecretKind, Namespace: "shop", Name: "pull"}
	if r := of(Cluster{Unknown: map[bundle.ID]string{secret: "no right to get secrets"}}, changed(t, "", "", pod)); slices.Contains(r.Clear, Missing) || len(r.Unchecked) != 1 || r.Unchecked[0].Why != "no right to get secrets" {
		t.Errorf("clear %q, unchecked %v", r.Clear, r.Unchecked)
	}
	if r := of(Cluster{Unread: true}, changed(t, "", "", pod)); slices.Contains(r.Clear, Missing) || slices.Contains(r.Clear, Restart) || slices.Contains(r.Clear, Data) || !slices.Contains(r.Clear, Rights) {
		t.Errorf("without a cluster: clear %q, unchecked %v", r.Clear, r.Unchecked)
	}
}

func TestMissing(t *testing.T) {
	pod := strings.Replace(web, "      containers:", "      volumes: [{name: a, secret: {secretName: tls}}, {name: b, configMap: {name: settings}}]\n      containers:", 1)
	tls, settings := "apiVersion: v1\nkind: Secret\nmetadata: {name: tls, namespace: shop}\n", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: shop}\n"
	certificate := "apiVersion: cert-manager.io/v1\nkind: Certificate\nmetadata: {name: web, namespace: shop}\nspec: {secretName: tls}\n"
	namespace := "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n"
	fresh := changed(t, "", "", pod)
	backend := func(text, service string) string {
		return strings.Replace(text, "name: app,", "name: app, env: [{name: NS, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}], args: ['--backend-service="+service+"', '--service-account=shop/robot', '--config=shop/file'],", 1)
	}
	trusting := changed(t, "", "", strings.Replace(web, "      containers:", "      volumes: [{name: a, projected: {sources: [{clusterTrustBundle: {name: roots, path: ca.crt}}]}}]\n      containers:", 1))
	roots := "apiVersion: certificates.k8s.io/v1beta1\nkind: ClusterTrustBundle\nmetadata: {name: roots}\n"
	claim := "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data, namespace: shop}\nspec: {volumeAttributesClassName: gold}\n"
	gold := "apiVersion: storage.k8s.io/v1\nkind: VolumeAttributesClass\nmetadata: {name: gold}\n"
	database := "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: db, namespace: shop}\nspec:\n  template: {spec: {containers: [{name: c}]}}\n  volumeClaimTemplates: [{metadata: {name: d}, spec: {volumeAttributesClassName: gold}}]\n"
	devices := "apiVersion: resource.k8s.io/v1\nkind: ResourceClaimTemplate\nmetadata: {name: gpus, namespace: shop}\nspec: {spec: {devices: {requests: [{name: a, exactly: {deviceClassName: gpu}}]}}}\n"
	for name, c := range map[string]struct {
		changes []Change
		asked   string
		want    []string
	}{
		"a kind without namespaces":                {[]Change{trusting}, "ClusterTrustBundle.certificates.k8s.io roots", []string{"missing Deployment/web: its pods do not start: ClusterTrustBundle roots (neither in the bundle nor on the cluster)"}},
		"a kind without namespaces, in the bundle": {[]Change{trusting, changed(t, "", "", roots)}, "", nil},
		"a claim's class": {[]Change{changed(t, "", "", claim)}, "VolumeAttributesClass.storage.k8s.io gold",
			[]string{"missing PersistentVolumeClaim/data: claims of this class stay Pending: VolumeAttributesClass gold (neither in the bundle nor on the cluster)"}},
		"a claim's class, as before":          {[]Change{changed(t, "", claim, strings.Replace(claim, "data,", "data, labels: {a: b},", 1))}, "", nil},
		"the class of a StatefulSet's claims": {[]Change{changed(t, "", "", database), changed(t, "", "", gold)}, "", nil},
		"devices": {[]Change{changed(t, "", "", devices)}, "DeviceClass.resource.k8s.io gpu",
			[]string{"missing ResourceClaimTemplate/gpus: pods that claim its devices stay Pending: DeviceClass gpu (neither in the bundle nor on the cluster)"}},
		"devices whose class goes": {[]Change{changed(t, plan.Unchanged, devices, devices), changed(t, "", "apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {name: gpu}\n", "")}, "",
			[]string{"missing ResourceClaimTemplate/gpus: pods that claim its devices stay Pending: DeviceClass gpu (deleted by this run)"}},
		"neither":             {[]Change{fresh}, "ConfigMap shop/settings, Secret shop/tls", []string{"missing Deployment/web: its pods do not start: ConfigMap settings, Secret tls (neither in the bundle nor on the cluster)"}},
		"in the bundle":       {[]Change{fresh, changed(t, "", "", tls), changed(t, plan.Unchanged, settings, settings)}, "", nil},
		"made of another one": {[]Change{fresh, changed(t, "", "", certificate), changed(t, "", "", settings)}, "", nil},
		"a new namespace":     {[]Change{fresh, changed(t, "", "", namespace), changed(t, "", "", tls)}, "", []string{"missing Deployment/web: its pods do not start: ConfigMap settings (neither in the bundle nor on the cluster)"}},
		"deleted by the run": {[]Change{changed(t, plan.Unchanged, pod, pod), changed(t, "", tls, "")}, "",
			[]string{"missing Deployment/web: its pods do not start: Secret tls (deleted by this run)"}},
		"live pods name it, too": {[]Change{changed(t, "", withStatus(pod, "{replicas: 3, readyReplicas: 2}"), strings.Replace(pod, "web:1", "web:2", 1)), changed(t, "", "", settings)}, "Secret shop/tls",
			[]string{"missing Deployment/web: its pods do not start: Secret tls (neither in the bundle nor on the cluster; not new: the live Deployment names the same, ready pods: 2 of 3)"}},
		"a Service in an argument": {[]Change{changed(t, "", "", backend(web, "ui/ui"))}, "Service ui/ui",
			[]string{"missing Deployment/web: an argument of its pods names what is missing: Service ui/ui (neither in the bundle nor on the cluster)"}},
		"a Service of the bundle in an argument": {[]Change{changed(t, "", "", backend(web, "$(NS)/api")), changed(t, "", "", api)}, "", nil},
		"a Service in an argument, deleted": {[]Change{changed(t, plan.Unchanged, backend(web, "$(NS)/api"), backend(web, "$(NS)/api")), changed(t, "", api, "")}, "",
			[]string{"missing Deployment/web: an argument of its pods names what is missing: Service api (deleted by this run)"}},
		"pods as before": {[]Change{changed(t, "", pod, strings.Replace(pod, "name: web,", "name: web, labels: {a: b},", 1))}, "", nil},
	} {
		var asked []string
		for _, id := range Ask(c.changes).Find {
			asked = append(asked, bundle.Name(id))
		}
		if text := strings.Join(asked, ", "); text != c.asked {
			t.Errorf("%s: asked %q, want %q", name, text, c.asked)
		}
		var got []string
		for _, line := range lines(Of(c.changes, Cluster{})) {
			if strings.HasPrefix(line, "missing ") {
				got = append(got, line)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

const api = "apiVersion: v1\nkind: Service\nmetadata: {name: api, namespace: shop}\n"

// A Secret that something in the bundle may create is unknown, not dangerous: argo-cd's
// init container makes argocd-redis.
func TestMissingThatSomethingMayCreate(t *testing.T) {
	pod := strings.Replace(web, "      containers:", "      volumes: [{name: a, secret: {secretName: tls}}]\n      containers:", 1)
	role := func(namespace, rule string) string {
		return "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: maker, namespace: " + namespace + "}\nrules: [" + rule + "]\n"
	}
	binding := func(namespace, kind string) string {
		return "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: maker, namespace: " + namespace + "}\n" +
			"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: maker}\nsubjects: [{kind: " + kind + ", name: maker, namespace: shop}]\n"
	}
	creates := "{apiGroups: [''], resources: [secrets], verbs: [create]}"
	for name, c := range map[string]struct {
		before, namespace, rule, kind string
		may                           bool
	}{
		"its ServiceAccount may": {"", "shop", creates, "ServiceAccount", true},
		"in another namespace":   {"", "other", creates, "ServiceAccount", false},
		"it may only read":       {"", "shop", "{apiGroups: [''], resources: [secrets], verbs: [get]}", "ServiceAccount", false},
		"it may make ConfigMaps": {"", "shop", "{apiGroups: [''], resources: [configmaps], verbs: [create]}", "ServiceAccount", false},
		"with a name it may not": {"", "shop", "{apiGroups: [''], resources: [secrets], resourceNames: [tls], verbs: [create]}", "ServiceAccount", false},
		"a person may":           {"", "shop", creates, "User", false},
		"live pods miss it, too": {strings.Replace(pod, "web:1", "web:0", 1), "shop", creates, "ServiceAccount", false},
	} {
		changes := []Change{changed(t, "", c.before, pod), changed(t, "", "", role(c.namespace, c.rule)), changed(t, "", "", binding(c.namespace, c.kind))}
		r := Of(changes, Cluster{})
		missing := slices.ContainsFunc(r.Risks, func(risk Risk) bool { return risk.Type == Missing })
		said := slices.ContainsFunc(r.Unchecked, func(u Unchecked) bool {
			return strings.Contains(u.What, "Secret shop/tls") && strings.Contains(u.Why, "something may create it: RoleBinding shop/maker permits it")
		})
		if missing == c.may || said != c.may || slices.Contains(r.Clear, Missing) {
			t.Errorf("%s: dangerous %t, said %t, clear %q, unchecked %v", name, missing, said, r.Clear, r.Unchecked)
		}
	}
}

// Who names a deleted Service is said, and whether that ends with the change. A name that
// may be another one's is not.
func TestClientsOfADeletedService(t *testing.T) {
	pod := func(namespace, container string) string {
		return strings.NewReplacer("namespace: shop", "namespace: "+namespace, "name: app,", "name: app, "+container+",").Replace(web)
	}
	route := func(kind, group, spec string) string {
		return "apiVersion: " + group + "/v1\nkind: " + kind + "\nmetadata: {name: web, namespace: shop}\n" + spec
	}
	for name, c := range map[string]struct{ client, where string }{
		"ns/name":                     {pod("shop", "args: [--default-backend-service=shop/api]"), "container app: argument --default-backend-service"},
		"a variable in it":            {pod("shop", "env: [{name: NS, value: shop}], args: [--backend, $(NS)/api]"), "container app: argument --backend"},
		"a URL":                       {pod("shop", "env: [{name: X, value: 'http://api:80/x'}]"), "container app: variable X"},
		"a host":                      {pod("other", "env: [{name: X, value: api.shop.svc.cluster.local}]"), "container app: variable X"},
		"a host and port":             {pod("other", "args: ['api.shop:443']"), "container app: argument"},
		"the name alone":              {pod("shop", "env: [{name: API_HOST, value: api}]"), "container app: variable API_HOST"},
		"an Ingress":                  {route("Ingress", "networking.k8s.io", "spec: {rules: [{http: {paths: [{backend: {service: {name: api}}}]}}]}"), "its backend"},
		"a default backend":           {route("Ingress", "networking.k8s.io", "spec: {defaultBackend: {service: {name: api}}}"), "its backend"},
		"a route":                     {route("HTTPRoute", "gateway.networking.k8s.io", "spec: {rules: [{backendRefs: [{name: api, port: 80}]}]}"), "its backend"},
		"a webhook":                   {route("MutatingWebhookConfiguration", "admissionregistration.k8s.io", "webhooks: [{clientConfig: {service: {name: api, namespace: shop}}}]"), "its backend"},
		"a Service of another one":    {pod("other", "env: [{name: API_HOST, value: api}, {name: URL, value: 'http://api'}]"), ""},
		"another Service":             {pod("shop", "args: ['--backend-service=shop/api-2', 'http://my-api:80', 'api.shop.example.com']"), ""},
		"not a Service":               {pod("shop", "args: ['--configmap=shop/api', '--name=api', '--service-account=shop/api', '--image=registry/api:1']"), ""},
		"a route of another kind":     {route("HTTPRoute", "gateway.networking.k8s.io", "spec: {rules: [{backendRefs: [{kind: Bucket, name: api}]}]}"), ""},
		"an Ingress with another one": {route("Ingress", "networking.k8s.io", "spec: {defaultBackend: {service: {name: web}}}"), ""},
	} {
		text := "none"
		for _, risk := range Of([]Change{changed(t, plan.Unchanged, c.client, c.client), changed(t, "", api, "")}, Cluster{}).Risks {
			if risk.Type == Deleted {
				text = risk.Text + ": " + strings.Join(risk.Details, "|")
			}
		}
		want := "its clients no longer reach anything; no other object of the bundle or the inventory names it: "
		if c.where != "" {
			one := bundletest.Object(t, c.client)
			want = "its clients no longer reach anything; 1 object still names it: " + plain(bundle.ID{GroupKind: one.GroupVersionKind().GroupKind(), Namespace: one.GetNamespace(), Name: one.GetName()}) + " still names it afterwards (" + c.where + ")"
		}
		if text != want {
			t.Errorf("%s: %s, want %s", name, text, want)
		}
	}
	before, after := pod("shop", "args: [--backend-service=shop/api]"), pod("shop", "args: [--backend-service=shop/other]")
	got := Of([]Change{changed(t, "", before, after), changed(t, "", api, "")}, Cluster{}).Risks[0]
	if want := "Deployment shop/web names it now, no longer after the change (container app: argument --backend-service)"; !slices.Equal(got.Details, []string{want}) || !strings.HasSuffix(got.Text, "1 object names it now, none after the change") {
		t.Errorf("%+v, want %s", got, want)
	}
}

// A nodeSelector that is new or changed is compared with the nodes. Unknown is not none.
func TestNodeSelectors(t *testing.T) {
	with := func(text, selector string) string {
		return strings.Replace(text, "      containers:", "      nodeSelector: "+selector+"\n      containers:", 1)
	}
	daemons := strings.Replace(web, "kind: Deployment", "kind: DaemonSet", 1)
	nodes := []map[string]string{{"role": "master", "disk": "ssd"}, {"role": "worker"}}
	for name, c := range map[string]struct {
		before, after string
		cluster       Cluster
		asked         bool
		want          []string // missing, restart, what could not be checked, and notes of new pods
	}{
		"some have it":         {"", with(web, "{role: master}"), Cluster{Nodes: nodes}, true, []string{"its nodeSelector matches 1 of 2 nodes"}},
		"none has all":         {"", with(web, "{role: worker, disk: ssd}"), Cluster{Nodes: nodes}, true, []string{"its pods stay Pending: no node has the labels of its nodeSelector (disk=ssd,role=worker)", "its nodeSelector matches 0 of 2 nodes"}},
		"none, of a DaemonSet": {"", with(daemons, "{role: db}"), Cluster{Nodes: nodes}, true, []string{"it gets no pods: no node has the labels of its nodeSelector (role=db)", "one on each node that it selects; its nodeSelector matches 0 of 2 nodes"}},
		"unknown":              {"", with(web, "{role: db}"), Cluster{NodesUnknown: "no right to list nodes"}, true, []string{"whether a node has the labels that the nodeSelector of Deployment shop/web asks for (role=db): no right to list nodes", ""}},
		"changed":              {with(web, "{role: a}"), with(web, "{role: worker}"), Cluster{Nodes: nodes}, true, []string{"all 3 pods restart; new ones have to be ready first (nodeSelector.role)", "its nodeSelector matches 1 of 2 nodes"}},
		"as before":            {with(web, "{role: db}"), strings.Replace(with(web, "{role: db}"), "web:1", "web:2", 1), Cluster{Nodes: nodes}, false, []string{"all 3 pods restart; new ones have to be ready first (container app: image)"}},
		"the system":           {"", with(web, "{kubernetes.io/os: linux}"), Cluster{}, false, []string{""}},
	} {
		changes := []Change{changed(t, "", c.before, c.after)}
		if asked := Ask(changes).Nodes; asked != c.asked {
			t.Errorf("%s: asked %t", name, asked)
		}
		r := Of(changes, c.cluster)
		var got []string
		for _, risk := range r.Risks {
			if got = append(got, risk.Text); risk.Type == Restart {
				got = append(got, risk.Details...)
			}
		}
		for _, u := range r.Unchecked {
			got = append(got, u.What+": "+u.Why)
		}
		for _, s := range r.Starts {
			got = append(got, s.Note)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// Keys that pods name are looked for wherever the object comes from.
func TestMissingKeys(t *testing.T) {
	pod := strings.Replace(web, "      containers:", `      volumes:
      - {name: a, secret: {secretName: tls, items: [{key: tls.crt, path: a}, {key: ca.crt, path: b}]}}
      - {name: b, projected: {sources: [{configMap: {name: settings, items: [{key: app.conf, path: c}]}}, {configMap: {name: perhaps, optional: true, items: [{key: x, path: x}]}}]}}
      containers:`, 1)
	pod = strings.Replace(pod, "image: ", `env: [{name: A, valueFrom: {secretKeyRef: {name: tls, key: ca.crt}}}, {name: B, valueFrom: {configMapKeyRef: {name: settings, key: level}}}, {name: C, valueFrom: {configMapKeyRef: {name: settings, key: more, optional: true}}}], image: `, 1)
	if !strings.Contains(pod, "env: ") {
		t.Fatal(pod)
	}
	tls := func(more string) string {
		return "apiVersion: v1\nkind: Secret\nmetadata: {name: tls, namespace: shop}\n" + more + "\n"
	}
	settings := func(data string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: shop}\n" + data + "\n"
	}
	id := func(u *unstructured.Unstructured) bundle.ID {
		return bundle.ID{GroupKind: u.GroupVersionKind().GroupKind(), Namespace: u.GetNamespace(), Name: u.GetName()}
	}
	on := func(texts ...string) Cluster {
		c := Cluster{Found: map[bundle.ID]*unstructured.Unstructured{}}
		for _, text := range texts {
			u := bundletest.Object(t, text)
			c.Found[id(u)] = u
		}
		return c
	}
	const fine = "data: {app.conf: a}\nbinaryData: {level: YQ==}"
	fresh, running := changed(t, "", "", pod), changed(t, plan.Unchanged, pod, pod)
	allKeys := tls("data: {tls.crt: YQ==}\nstringData: {ca.crt: a}")
	failed := changed(t, plan.Failed, "", tls(""))
	failed.After = nil
	guessed := changed(t, "", tls(""), tls("data: {a: Yg==}"))
	guessed.Unverified = "no right"
	for name, c := range map[string]struct {
		changes []Change
		cluster Cluster
		want    []string
	}{
		"all there":           {[]Change{fresh, changed(t, "", "", allKeys)}, on(settings(fine)), nil},
		"not in the bundle's": {[]Change{fresh, changed(t, "", "", tls("data: {tls.crt: YQ==}")), changed(t, "", "", settings(fine))}, Cluster{}, []string{"missing Deployment/web: its pods do not start: key ca.crt of Secret tls (it has no such key after this run)", "  key ca.crt of Secret tls: spec.template.spec.volumes[0].secret.items[1].key"}},
		"not on the cluster": {[]Change{fresh}, on(allKeys, settings("data: {}")), []string{"missing Deployment/web: its pods do not start: key app.conf of ConfigMap settings, key level of ConfigMap settings (it has no such key on the cluster)",
			"  key app.conf of ConfigMap settings: spec.template.spec.volumes[1].projected.sources[0].configMap.items[0].key", "  key level of ConfigMap settings: spec.template.spec.containers[0].env[1].valueFrom.configMapKeyRef.key"}},
		"unchanged ones": {[]Change{fresh, changed(t, plan.Unchanged, allKeys, allKeys), changed(t, plan.Unchanged, settings("data: {level: a}"), settings("data: {level: a}"))}, Cluster{},
			[]string{"missing Deployment/web: its pods do not start: key app.conf of ConfigMap settings (it has no such key after this run)", "  key app.conf of ConfigMap settings: spec.template.spec.volumes[1].projected.sources[0].configMap.items[0].key"}},
		"taken from running pods": {[]Change{running, changed(t, "", allKeys, tls("data: {tls.crt: YQ==}")), changed(t, "", settings("data: {app.conf: a}"), settings("data: {app.conf: b}"))}, Cluster{},
			[]string{"missing Deployment/web: its pods do not start: key ca.crt of Secret tls (deleted by this run)", "  key ca.crt of Secret tls: spec.template.spec.volumes[0].secret.items[1].key"}},
		"filled by a controller": {[]Change{fresh, changed(t, "", "", tls("")), changed(t, "", "", settings(fine))}, Cluster{}, nil},
		"a token":                {[]Change{fresh, changed(t, "", "", tls("type: kubernetes.io/service-account-token\ndata: {a: YQ==}")), changed(t, "", "", settings(fine))}, Cluster{}, nil},
		"not known":              {[]Change{fresh, failed, changed(t, "", "", settings(fine))}, Cluster{}, nil},
		"not verified":           {[]Change{fresh, guessed, changed(t, "", "", settings(fine))}, Cluster{}, nil},
		"detached":               {[]Change{fresh, changed(t, plan.Detached, allKeys, ""), changed(t, "", "", settings(fine))}, on(tls("data: {tls.crt: YQ==}")), []string{"missing Deployment/web: its pods do not start: key ca.crt of Secret tls (it has no such key on the cluster)", "  key ca.crt of Secret tls: spec.template.spec.volumes[0].secret.items[1].key"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, risk := range Of(c.changes, c.cluster).Risks {
				if risk.Type == Missing {
					got = append(append(got, "missing Deployment/web: "+risk.Text), indented(risk.Details)...)
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
	asked := Ask([]Change{fresh})
	if len(asked.Find) != 2 || len(asked.Keys) != 2 {
		t.Errorf("asked %v, keys of %v", asked.Find, asked.Keys)
	}
}

func indented(lines []string) []string {
	var all []string
	for _, l := range lines {
		all = append(all, "  "+l)
	}
	return all
}

func TestStarts(t *testing.T) {
	kind := func(text, kind string) string { return strings.Replace(text, "kind: Deployment", "kind: "+kind, 1) }
	more := strings.Replace(web, "replicas: 3", "replicas: 5", 1)
	r := Of([]Change{changed(t, "", "", web), changed(t, "", web, more), changed(t, "", more, web), changed(t, "", "", kind(web, "DaemonSet"))}, Cluster{})
	var got []string
	for _, s := range r.Starts {
		got = append(got, strings.TrimSpace(s.Object.Kind+" "+strings.Repeat("*", s.Pods)+" "+s.Note))
	}
	if want := []string{"Deployment ***", "Deployment ** scales from 3 pods to 5", "DaemonSet  one on each node that it selects"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The versions and what they do not count are all objects that change.
func TestVersionsAddUp(t *testing.T) {
	labelled := func(name, version string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", labels: {app.kubernetes.io/name: web, app.kubernetes.io/version: '" + version + "'}}\n"
	}
	r := Of([]Change{
		changed(t, "", labelled("a", "1"), labelled("a", "2")), changed(t, "", "", labelled("new", "2")), changed(t, "", labelled("old", "1"), ""),
		changed(t, "", "", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: plain}\n"), changed(t, plan.Unchanged, labelled("same", "2"), labelled("same", "2")),
	}, Cluster{})
	if len(r.Versions) != 1 || r.Versions[0].Objects != 3 || r.Unversioned != 1 {
		t.Errorf("%+v and %d others", r.Versions, r.Unversioned)
	}
}
