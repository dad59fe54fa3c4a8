package order

import "testing"

// backed is a webhook's backend: a Service and the Deployment it selects.
const backed = `
{apiVersion: v1, kind: Service, metadata: {name: hook, namespace: sys}, spec: {selector: {app: hook}}}
{apiVersion: apps/v1, kind: Deployment, metadata: {name: hook, namespace: sys}, spec: {template: {metadata: {labels: {app: hook}}, spec: {serviceAccountName: hook, containers: [{name: c}]}}}}`

// configuration writes a webhook configuration with that backend.
func configuration(kind, rest string) string {
	return "\n{apiVersion: admissionregistration.k8s.io/v1, kind: " + kind +
		", metadata: {name: w}, webhooks: [{name: a.b.c, clientConfig: {service: {name: hook, namespace: sys}}, " + rest + "}]}"
}

const validating, mutating = "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"

func TestWebhooks(t *testing.T) {
	const after = `
			ValidatingWebhookConfiguration.admissionregistration.k8s.io w
			  applied Service sys/hook: backend Service hook
			  ready Deployment.apps sys/hook: backend of Service hook`
	const some = `
{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: i, namespace: app}}
{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: app, labels: {judge: me}}}
{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: far}}
{apiVersion: v1, kind: Namespace, metadata: {name: app, labels: {env: prod}}}
{apiVersion: example.com/v1, kind: Gateway, metadata: {name: g, namespace: far}}
{apiVersion: example.com/v1, kind: Ox, metadata: {name: o}}
{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: oxen.example.com}, spec: {scope: Cluster, group: example.com, names: {kind: Ox, plural: oxen}}}`
	judged := func(names ...string) string {
		want := ""
		for _, line := range []struct{ id, rest string }{
			{"Ingress.networking.k8s.io app/i", "\n			  applied Namespace app: namespace app"},
			{"ConfigMap app/c", "\n			  applied Namespace app: namespace app"},
			{"ConfigMap far/c", ""},
			{"Namespace app", ""},
			{"Gateway.example.com far/g", ""},
			{"Ox.example.com o", "\n			  ready CustomResourceDefinition.apiextensions.k8s.io oxen.example.com: defined by CustomResourceDefinition oxen.example.com"},
			{"CustomResourceDefinition.apiextensions.k8s.io oxen.example.com", ""},
		} {
			rest := line.rest
			for _, n := range names {
				if n == line.id {
					rest += "\n			  applied ValidatingWebhookConfiguration.admissionregistration.k8s.io w: validated or changed by ValidatingWebhookConfiguration w"
				}
			}
			if rest != "" {
				want += "\n			" + line.id + rest
			}
		}
		return want + after
	}
	const (
		ingress, near, far, ns = "Ingress.networking.k8s.io app/i", "ConfigMap app/c", "ConfigMap far/c", "Namespace app"
		gateway, ox            = "Gateway.example.com far/g", "Ox.example.com o"
	)
	rule := func(groups, versions, resources, more string) string {
		return "rules: [{apiGroups: [" + groups + "], apiVersions: [" + versions + "], operations: [CREATE], resources: [" + resources + "]" + more + "}]"
	}
	var cases []graphCase
	for _, c := range []struct {
		name, hook string
		judged     []string
		live       bool
	}{
		{"by group and plural", rule("networking.k8s.io", "v1", "ingresses", ""), []string{ingress}, false},
		{"plurals that follow no rule come from the CRD", rule("example.com", "v1", "oxen, gateways", ""), []string{gateway, ox}, false},
		{"every resource of a group", rule("example.com", "'*'", "'*/*'", ""), []string{gateway, ox}, false},
		{"subresources alone judge nothing that is applied", rule("''", "v1", "configmaps/status", ""), nil, false},
		{"with all of its subresources", rule("''", "v1", "configmaps/*", ""), []string{near, far}, false},
		{"any version by default", rule("networking.k8s.io", "v1beta1", "ingresses", ""), []string{ingress}, false},
		{"exact versions only", "matchPolicy: Exact, " + rule("networking.k8s.io", "v1beta1", "ingresses", ""), nil, false},
		{"cluster scope", rule("example.com, ''", "v1", "'*'", ", scope: Cluster"), []string{ns, ox}, false},
		{"namespaced scope", rule("example.com", "v1", "'*'", ", scope: Namespaced"), []string{gateway}, false},
		{"objects by label", "objectSelector: {matchLabels: {judge: me}}, " + rule("''", "v1", "configmaps", ""), []string{near}, false},
		{"namespaces by label; of one outside the bundle any may be there", "namespaceSelector: {matchLabels: {env: test}}, " + rule("''", "v1", "configmaps, namespaces", ""), []string{far}, false},
		{"namespaces by name", "namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: [far]}]}, " + rule("''", "v1", "configmaps, namespaces", ""), []string{near, ns}, false},
		{"a namespace selector lets all cluster-scoped objects through", "namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: test}}, " + rule("example.com", "v1", "oxen", ""), []string{ox}, false},
		{"deletion alone does not matter when applying", "rules: [{apiGroups: [example.com], apiVersions: [v1], operations: [DELETE], resources: ['*']}]", nil, false},
		{"deletion matters when deleting", "rules: [{apiGroups: [example.com], apiVersions: [v1], operations: [DELETE], resources: ['*']}]", []string{gateway, ox}, true},
	} {
		cases = append(cases, graphCase{
			name: c.name, in: some[1:] + configuration(validating, c.hook) + backed,
			want: judged(c.judged...), options: Options{Live: c.live},
		})
	}
	runGraphs(t, cases)
}

func TestWebhooksAndPods(t *testing.T) {
	runGraphs(t, []graphCase{{
		name: "who makes pods waits for the webhook that judges pods; the backend itself does not, nor does what it needs",
		in: `{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: app}, spec: {template: {metadata: {labels: {inject: "yes"}}, spec: {containers: [{name: c}]}}}}
{apiVersion: apps/v1, kind: Deployment, metadata: {name: e, namespace: app}, spec: {template: {spec: {containers: [{name: c}]}}}}
{apiVersion: v1, kind: ServiceAccount, metadata: {name: hook, namespace: sys}}
{apiVersion: v1, kind: Namespace, metadata: {name: sys}}` +
			configuration(mutating, "rules: [{apiGroups: ['*'], apiVersions: ['*'], operations: ['*'], resources: [pods, serviceaccounts, namespaces]}]") + backed,
		want: `
			Deployment.apps app/d
			  applied MutatingWebhookConfiguration.admissionregistration.k8s.io w: its pods are validated or changed by MutatingWebhookConfiguration w
			Deployment.apps app/e
			  applied MutatingWebhookConfiguration.admissionregistration.k8s.io w: its pods are validated or changed by MutatingWebhookConfiguration w
			ServiceAccount sys/hook
			  applied Namespace sys: namespace sys
			MutatingWebhookConfiguration.admissionregistration.k8s.io w
			  applied Service sys/hook: backend Service hook
			  ready Deployment.apps sys/hook: backend of Service hook
			Service sys/hook
			  applied Namespace sys: namespace sys
			Deployment.apps sys/hook
			  applied ServiceAccount sys/hook: runs as ServiceAccount hook
			  applied Namespace sys: namespace sys
			dropped: ServiceAccount sys/hook
			  applied MutatingWebhookConfiguration.admissionregistration.k8s.io w: validated or changed by MutatingWebhookConfiguration w
			dropped: Namespace sys
			  applied MutatingWebhookConfiguration.admissionregistration.k8s.io w: validated or changed by MutatingWebhookConfiguration w
			dropped: Deployment.apps sys/hook
			  applied MutatingWebhookConfiguration.admissionregistration.k8s.io w: its pods are validated or changed by MutatingWebhookConfiguration w`,
	}, {
		name: "resources wait for what converts them, their CRD does not",
		in: `{apiVersion: example.com/v1, kind: Thing, metadata: {name: t}}
{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: things.example.com}, spec: {scope: Cluster, group: example.com, names: {kind: Thing, plural: things}, conversion: {strategy: Webhook, webhook: {clientConfig: {service: {name: hook, namespace: sys}}}}}}` + backed,
		want: `
			Thing.example.com t
			  ready CustomResourceDefinition.apiextensions.k8s.io things.example.com: defined by CustomResourceDefinition things.example.com
			  applied Service sys/hook: converted by Service hook
			  ready Deployment.apps sys/hook: converted by Deployment hook`,
	}, {
		name: "a policy, its parameters, its binding",
		in: `{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicyBinding, metadata: {name: b}, spec: {policyName: p, paramRef: {name: limits, namespace: app}}}
{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, metadata: {name: p}, spec: {paramKind: {apiVersion: example.com/v1, kind: Limit}}}
{apiVersion: example.com/v1, kind: Limit, metadata: {name: limits, namespace: app}}
{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: limits.example.com}, spec: {group: example.com, names: {kind: Limit, plural: limits}}}`,
		want: `
			ValidatingAdmissionPolicyBinding.admissionregistration.k8s.io b
			  applied ValidatingAdmissionPolicy.admissionregistration.k8s.io p: binds ValidatingAdmissionPolicy p
			  applied Limit.example.com app/limits: parameters from Limit limits
			ValidatingAdmissionPolicy.admissionregistration.k8s.io p
			  ready CustomResourceDefinition.apiextensions.k8s.io limits.example.com: parameters of kind Limit
			Limit.example.com app/limits
			  ready CustomResourceDefinition.apiextensions.k8s.io limits.example.com: defined by CustomResourceDefinition limits.example.com`,
	}})
}
