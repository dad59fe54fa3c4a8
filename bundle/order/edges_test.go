package order

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"brine/bundle"
	"brine/bundle/read/readtest"
)

// graphCase is YAML in, the printed graph out.
type graphCase struct {
	name, in, want string
	options        Options
}

func runGraphs(t *testing.T, cases []graphCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			docs := strings.Join(strings.Split(strings.TrimSpace(c.in), "\n"), "\n---\n")
			g, problems := Build(readtest.Objects(t, docs), c.options)
			sound(t, g)
			if got, want := print(g, problems), trim(c.want); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// trim takes the table's indentation off.
func trim(s string) string {
	s = strings.Trim(s, "\n\t")
	if s == "" {
		return ""
	}
	return strings.ReplaceAll(s, "\n\t\t\t", "\n") + "\n"
}

func TestDefinitions(t *testing.T) {
	runGraphs(t, []graphCase{{
		name: "a namespace comes before what lives in it, even when it stands after it",
		in: `
{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: ns}}
{apiVersion: v1, kind: Namespace, metadata: {name: ns}}
{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: other}}`,
		want: `
			ConfigMap ns/c
			  applied Namespace ns: namespace ns`,
	}, {
		name: "a CRD is ready before its resources, in any version",
		in: `
{apiVersion: example.com/v2, kind: Thing, metadata: {name: t}}
{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: things.example.com}, spec: {scope: Cluster, group: example.com, names: {kind: Thing, plural: things}}}
{apiVersion: other.com/v1, kind: Thing, metadata: {name: t}}`,
		want: `
			Thing.example.com t
			  ready CustomResourceDefinition.apiextensions.k8s.io things.example.com: defined by CustomResourceDefinition things.example.com`,
	}, {
		name: "an APIService waits for its backend, and its objects wait for it",
		in: `
{apiVersion: wardle.example.com/v1, kind: Flunder, metadata: {name: f, namespace: ns}}
{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1.wardle.example.com}, spec: {group: wardle.example.com, version: v1, service: {name: api, namespace: ns}}}
{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1.apps}, spec: {group: apps, version: v1}}
{apiVersion: v1, kind: Service, metadata: {name: api, namespace: ns}, spec: {selector: {app: api}}}
{apiVersion: v1, kind: Endpoints, metadata: {name: api, namespace: ns}}
{apiVersion: apps/v1, kind: Deployment, metadata: {name: server, namespace: ns}, spec: {template: {metadata: {labels: {app: api, x: z}}, spec: {containers: [{name: c}]}}}}
{apiVersion: apps/v1, kind: Deployment, metadata: {name: elsewhere, namespace: m}, spec: {template: {metadata: {labels: {app: api}}, spec: {containers: [{name: c}]}}}}
{apiVersion: apps/v1, kind: Deployment, metadata: {name: unselected, namespace: ns}, spec: {template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c}]}}}}`,
		want: `
			Flunder.wardle.example.com ns/f
			  ready APIService.apiregistration.k8s.io v1.wardle.example.com: served by APIService v1.wardle.example.com
			APIService.apiregistration.k8s.io v1.wardle.example.com
			  applied Service ns/api: backend Service api
			  applied Endpoints ns/api: backend Service api
			  ready Deployment.apps ns/server: backend of Service api`,
	}})
}

func TestWorkloads(t *testing.T) {
	// The spec of one pod that names all there is to be named.
	const pod = `{serviceAccountName: sa, priorityClassName: high, runtimeClassName: gvisor, imagePullSecrets: [{name: pull}], ` +
		`resourceClaims: [{name: g, resourceClaimName: gpu}, {name: h, resourceClaimTemplateName: gput}], ` +
		`volumes: [{name: a, configMap: {name: cm, optional: true}}, {name: b, secret: {secretName: sec}}, {name: c, persistentVolumeClaim: {claimName: pvc}}, ` +
		`{name: d, projected: {sources: [{configMap: {name: pcm}}, {secret: {name: psec}}]}}, {name: e, csi: {driver: d, nodePublishSecretRef: {name: csi}}}, ` +
		`{name: f, ephemeral: {volumeClaimTemplate: {spec: {storageClassName: fast}}}}], ` +
		`initContainers: [{name: i, envFrom: [{configMapRef: {name: envcm}}, {secretRef: {name: envsec}}]}], ` +
		`containers: [{name: c, env: [{name: A, valueFrom: {configMapKeyRef: {name: keycm, key: k}}}, {name: B, valueFrom: {secretKeyRef: {name: keysec, key: k}}}]}]}`
	const named = `
{apiVersion: v1, kind: ServiceAccount, metadata: {name: sa, namespace: ns}}
{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}}
{apiVersion: node.k8s.io/v1, kind: RuntimeClass, metadata: {name: gvisor}}
{apiVersion: v1, kind: Secret, metadata: {name: pull, namespace: ns}}
{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: gpu, namespace: ns}}
{apiVersion: resource.k8s.io/v1, kind: ResourceClaimTemplate, metadata: {name: gput, namespace: ns}}
{apiVersion: v1, kind: ConfigMap, metadata: {name: cm, namespace: ns}}
{apiVersion: v1, kind: Secret, metadata: {name: sec, namespace: ns}}
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: pvc, namespace: ns}, spec: {storageClassName: ""}}
{apiVersion: v1, kind: ConfigMap, metadata: {name: pcm, namespace: ns}}
{apiVersion: v1, kind: Secret, metadata: {name: psec, namespace: ns}}
{apiVersion: v1, kind: Secret, metadata: {name: csi, namespace: ns}}
{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: fast}}
{apiVersion: v1, kind: ConfigMap, metadata: {name: envcm, namespace: ns}}
{apiVersion: v1, kind: Secret, metadata: {name: envsec, namespace: ns}}
{apiVersion: v1, kind: ConfigMap, metadata: {name: keycm, namespace: ns}}
{apiVersion: v1, kind: Secret, metadata: {name: keysec, namespace: ns}}
{apiVersion: v1, kind: Secret, metadata: {name: sec, namespace: other}}`
	const needs = `
			  applied ServiceAccount ns/sa: runs as ServiceAccount sa
			  applied PriorityClass.scheduling.k8s.io high: priority by PriorityClass high
			  applied RuntimeClass.node.k8s.io gvisor: runs in RuntimeClass gvisor
			  applied Secret ns/pull: pulls images with Secret pull
			  applied ResourceClaim.resource.k8s.io ns/gpu: uses ResourceClaim gpu
			  applied ResourceClaimTemplate.resource.k8s.io ns/gput: uses ResourceClaimTemplate gput
			  applied ConfigMap ns/cm: mounts ConfigMap cm
			  applied Secret ns/sec: mounts Secret sec
			  applied PersistentVolumeClaim ns/pvc: mounts PersistentVolumeClaim pvc
			  applied ConfigMap ns/pcm: mounts ConfigMap pcm
			  applied Secret ns/psec: mounts Secret psec
			  applied Secret ns/csi: mounts with Secret csi
			  applied StorageClass.storage.k8s.io fast: of StorageClass fast
			  applied ConfigMap ns/envcm: environment from ConfigMap envcm
			  applied Secret ns/envsec: environment from Secret envsec
			  applied ConfigMap ns/keycm: environment from ConfigMap keycm
			  applied Secret ns/keysec: environment from Secret keysec`
	var cases []graphCase
	for kind, apiVersion := range map[string]string{
		"Deployment": "apps/v1", "StatefulSet": "apps/v1", "DaemonSet": "apps/v1", "ReplicaSet": "apps/v1",
		"ReplicationController": "v1", "Job": "batch/v1", "Rollout": "argoproj.io/v1alpha1", "Pod": "v1", "CronJob": "batch/v1",
	} {
		spec := "{template: {spec: " + pod + "}}"
		switch kind {
		case "Pod":
			spec = pod
		case "CronJob":
			spec = "{jobTemplate: {spec: " + spec + "}}"
		}
		shown := kind
		if group, _, grouped := strings.Cut(apiVersion, "/"); grouped {
			shown += "." + group
		}
		cases = append(cases, graphCase{
			name: kind,
			in:   "{apiVersion: " + apiVersion + ", kind: " + kind + ", metadata: {name: w, namespace: ns}, spec: " + spec + "}" + named,
			want: "\n\t\t\t" + shown + " ns/w" + needs,
		})
	}
	runGraphs(t, cases)
}

func TestStorageAndDefaults(t *testing.T) {
	runGraphs(t, []graphCase{{
		name: "routes, Gateways and classes, of devices and volumes too",
		in: `
{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: r, namespace: ns}, spec: {parentRefs: [{name: g}, {name: other, kind: Service}]}}
{apiVersion: gateway.networking.k8s.io/v1, kind: GRPCRoute, metadata: {name: far, namespace: b}, spec: {parentRefs: [{name: g, namespace: ns}]}}
{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {name: g, namespace: ns}, spec: {gatewayClassName: c}}
{apiVersion: gateway.networking.k8s.io/v1, kind: GatewayClass, metadata: {name: c}}
{apiVersion: resource.k8s.io/v1, kind: ResourceClaimTemplate, metadata: {name: t, namespace: ns}, spec: {spec: {devices: {requests: [{exactly: {deviceClassName: gpu}}]}}}}
{apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: gpu}}
{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: ns}, spec: {containers: [{name: c}], volumes: [{name: v, projected: {sources: [{clusterTrustBundle: {name: roots, path: x}}]}}]}}
{apiVersion: certificates.k8s.io/v1beta1, kind: ClusterTrustBundle, metadata: {name: roots}}
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: d, namespace: ns}, spec: {storageClassName: "", volumeAttributesClassName: gold}}
{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db, namespace: ns}, spec: {template: {spec: {containers: [{name: c}]}}, volumeClaimTemplates: [{metadata: {name: d}, spec: {storageClassName: "", volumeAttributesClassName: gold}}]}}
{apiVersion: storage.k8s.io/v1, kind: VolumeAttributesClass, metadata: {name: gold}}`,
		want: `
			HTTPRoute.gateway.networking.k8s.io ns/r
			  applied Gateway.gateway.networking.k8s.io ns/g: attached to Gateway g
			GRPCRoute.gateway.networking.k8s.io b/far
			  applied Gateway.gateway.networking.k8s.io ns/g: attached to Gateway g
			Gateway.gateway.networking.k8s.io ns/g
			  applied GatewayClass.gateway.networking.k8s.io c: of GatewayClass c
			ResourceClaimTemplate.resource.k8s.io ns/t
			  applied DeviceClass.resource.k8s.io gpu: of DeviceClass gpu
			Pod ns/p
			  applied ClusterTrustBundle.certificates.k8s.io roots: mounts ClusterTrustBundle roots
			PersistentVolumeClaim ns/d
			  applied VolumeAttributesClass.storage.k8s.io gold: of VolumeAttributesClass gold
			StatefulSet.apps ns/db
			  applied VolumeAttributesClass.storage.k8s.io gold: claims volumes of VolumeAttributesClass gold`,
	}, {
		name: "a StatefulSet needs its Service and its claims' class",
		in: `
{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db, namespace: ns}, spec: {serviceName: db, template: {spec: {containers: [{name: c}]}}, volumeClaimTemplates: [{metadata: {name: d}, spec: {storageClassName: fast}}]}}
{apiVersion: v1, kind: Service, metadata: {name: db, namespace: ns}}
{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: fast}}`,
		want: `
			StatefulSet.apps ns/db
			  applied Service ns/db: its pods are named by Service db
			  applied StorageClass.storage.k8s.io fast: of StorageClass fast`,
	}, {
		name: "volumes and claims that name each other, and classes",
		in: `
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: byname, namespace: ns}, spec: {storageClassName: slow, volumeName: v1}}
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: byref, namespace: ns}, spec: {storageClassName: null}}
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: static, namespace: ns}, spec: {storageClassName: ""}}
{apiVersion: v1, kind: PersistentVolume, metadata: {name: v1}, spec: {storageClassName: slow}}
{apiVersion: v1, kind: PersistentVolume, metadata: {name: v2}, spec: {claimRef: {namespace: ns, name: byref}}}
{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: slow}}
{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: std, annotations: {storageclass.kubernetes.io/is-default-class: "true"}}}`,
		want: `
			PersistentVolumeClaim ns/byname
			  applied PersistentVolume v1: bound to PersistentVolume v1
			  applied StorageClass.storage.k8s.io slow: of StorageClass slow
			PersistentVolumeClaim ns/byref
			  applied PersistentVolume v2: bound to PersistentVolume v2
			  applied StorageClass.storage.k8s.io std: default StorageClass
			PersistentVolume v1
			  applied StorageClass.storage.k8s.io slow: of StorageClass slow`,
	}, {
		name: "what admission fills in when a pod says nothing",
		in: `
{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: ns}, spec: {containers: [{name: c}]}}
{apiVersion: v1, kind: ServiceAccount, metadata: {name: default, namespace: ns}, imagePullSecrets: [{name: pull}]}
{apiVersion: v1, kind: Secret, metadata: {name: pull, namespace: ns}}
{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: normal}, globalDefault: true}`,
		want: `
			Pod ns/p
			  applied ServiceAccount ns/default: runs as ServiceAccount default
			  applied PriorityClass.scheduling.k8s.io normal: default PriorityClass
			ServiceAccount ns/default
			  applied Secret ns/pull: pulls images with Secret pull`,
	}, {
		name: "what a digest is of",
		in: `
{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: ns, annotations: {brine.dev/digest-of: "configmaps/c, secrets/s"}}, spec: {template: {spec: {containers: [{name: c}]}}}}
{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: ns}}
{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: ns}}`,
		want: `
			Deployment.apps ns/d
			  applied ConfigMap ns/c: digest of ConfigMap c
			  applied Secret ns/s: digest of Secret s`,
	}, {
		name: "an Ingress and what it names",
		in: `
{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: i, namespace: ns}, spec: {ingressClassName: nginx, tls: [{secretName: tls}], defaultBackend: {service: {name: d}}, rules: [{http: {paths: [{backend: {service: {name: s}}}]}}]}}
{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: plain, namespace: ns}}
{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: old, namespace: ns, annotations: {kubernetes.io/ingress.class: nginx}}}
{apiVersion: networking.k8s.io/v1, kind: IngressClass, metadata: {name: nginx, annotations: {ingressclass.kubernetes.io/is-default-class: "true"}}}
{apiVersion: v1, kind: Secret, metadata: {name: tls, namespace: ns}}
{apiVersion: v1, kind: Service, metadata: {name: d, namespace: ns}}
{apiVersion: v1, kind: Service, metadata: {name: s, namespace: ns}}`,
		want: `
			Ingress.networking.k8s.io ns/i
			  applied IngressClass.networking.k8s.io nginx: of IngressClass nginx
			  applied Secret ns/tls: TLS from Secret tls
			  applied Service ns/d: routes to Service d
			  applied Service ns/s: routes to Service s
			Ingress.networking.k8s.io ns/plain
			  applied IngressClass.networking.k8s.io nginx: default IngressClass`,
	}, {
		name: "an autoscaler after its target, a token after its account, a pod after the Certificate of its Secret",
		in: `
{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: h, namespace: ns}, spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: d}}}
{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: ns}, spec: {template: {spec: {containers: [{name: c}], volumes: [{name: t, secret: {secretName: tls}}]}}}}
{apiVersion: v1, kind: Secret, metadata: {name: token, namespace: ns, annotations: {kubernetes.io/service-account.name: sa}}}
{apiVersion: v1, kind: ServiceAccount, metadata: {name: sa, namespace: ns}}
{apiVersion: cert-manager.io/v1, kind: Certificate, metadata: {name: cert, namespace: ns}, spec: {secretName: tls}}`,
		want: `
			HorizontalPodAutoscaler.autoscaling ns/h
			  applied Deployment.apps ns/d: scales Deployment d
			Deployment.apps ns/d
			  applied Certificate.cert-manager.io ns/cert: mounts Secret tls made by Certificate cert
			Secret ns/token
			  applied ServiceAccount ns/sa: token of ServiceAccount sa`,
	}, {
		name: "quotas, limits and network policies before the pods they are for",
		in: `
{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: ns}, spec: {template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c}]}}}}
{apiVersion: apps/v1, kind: Deployment, metadata: {name: db, namespace: ns}, spec: {template: {metadata: {labels: {app: db}}, spec: {containers: [{name: c}]}}}}
{apiVersion: v1, kind: LimitRange, metadata: {name: l, namespace: ns}}
{apiVersion: v1, kind: ResourceQuota, metadata: {name: q, namespace: other}}
{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: all, namespace: ns}, spec: {podSelector: {}}}
{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: web, namespace: ns}, spec: {podSelector: {matchLabels: {app: web}}}}
{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: notweb, namespace: ns}, spec: {podSelector: {matchExpressions: [{key: app, operator: NotIn, values: [web]}]}}}`,
		want: `
			Deployment.apps ns/web
			  applied LimitRange ns/l: limited by LimitRange l
			  applied NetworkPolicy.networking.k8s.io ns/all: restricted by NetworkPolicy all
			  applied NetworkPolicy.networking.k8s.io ns/web: restricted by NetworkPolicy web
			Deployment.apps ns/db
			  applied LimitRange ns/l: limited by LimitRange l
			  applied NetworkPolicy.networking.k8s.io ns/all: restricted by NetworkPolicy all
			  applied NetworkPolicy.networking.k8s.io ns/notweb: restricted by NetworkPolicy notweb`,
	}})
}

func TestRightsAndOperators(t *testing.T) {
	runGraphs(t, []graphCase{{
		name: "roles and accounts, then bindings, then who runs with them",
		in: `
{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: ns}, spec: {template: {spec: {serviceAccountName: sa, containers: [{name: c}]}}}}
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: rb, namespace: m}, roleRef: {kind: Role, name: r}, subjects: [{kind: ServiceAccount, name: sa, namespace: ns}, {kind: User, name: sa}]}
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: crb}, roleRef: {kind: ClusterRole, name: r}, subjects: [{kind: ServiceAccount, name: sa, namespace: ns}]}
{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: r, namespace: m}}
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: r}, aggregationRule: {clusterRoleSelectors: [{matchLabels: {to: r}}]}}
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: part, labels: {to: r}}}
{apiVersion: v1, kind: ServiceAccount, metadata: {name: sa, namespace: ns}}`,
		want: `
			Deployment.apps ns/d
			  applied RoleBinding.rbac.authorization.k8s.io m/rb: rights of ServiceAccount sa
			  applied ClusterRoleBinding.rbac.authorization.k8s.io crb: rights of ServiceAccount sa
			  applied ServiceAccount ns/sa: runs as ServiceAccount sa
			RoleBinding.rbac.authorization.k8s.io m/rb
			  applied Role.rbac.authorization.k8s.io m/r: grants Role r
			  applied ServiceAccount ns/sa: grants to ServiceAccount sa
			ClusterRoleBinding.rbac.authorization.k8s.io crb
			  applied ClusterRole.rbac.authorization.k8s.io r: grants ClusterRole r
			  applied ServiceAccount ns/sa: grants to ServiceAccount sa
			ClusterRole.rbac.authorization.k8s.io r
			  applied ClusterRole.rbac.authorization.k8s.io part: aggregates ClusterRole part`,
	}, {
		name: "the operator after its CRD and before its resources; who only reads or creates is none; * says nothing",
		in: `
{apiVersion: acme.example.com/v1, kind: Policy, metadata: {name: p}}
{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: policies.acme.example.com}, spec: {scope: Cluster, group: acme.example.com, names: {kind: Policy, plural: policies}}}
{apiVersion: apps/v1, kind: Deployment, metadata: {name: operator, namespace: ns}, spec: {template: {spec: {serviceAccountName: op, containers: [{name: c}]}}}}
{apiVersion: apps/v1, kind: Deployment, metadata: {name: reader, namespace: ns}, spec: {template: {spec: {serviceAccountName: reader, containers: [{name: c}]}}}}
{apiVersion: apps/v1, kind: Deployment, metadata: {name: admin, namespace: ns}, spec: {template: {spec: {serviceAccountName: admin, containers: [{name: c}]}}}}
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: op}, rules: [{apiGroups: [acme.example.com], resources: [policies, policies/status], verbs: [get, update]}]}
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: reader}, rules: [{apiGroups: [acme.example.com], resources: ["*"], verbs: [list, create]}]}
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: admin}, rules: [{apiGroups: ["*"], resources: ["*"], verbs: ["*"]}]}
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: op}, roleRef: {kind: ClusterRole, name: op}, subjects: [{kind: ServiceAccount, name: op, namespace: ns}]}
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: reader}, roleRef: {kind: ClusterRole, name: reader}, subjects: [{kind: ServiceAccount, name: reader, namespace: ns}]}
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: admin}, roleRef: {kind: ClusterRole, name: admin}, subjects: [{kind: ServiceAccount, name: admin, namespace: ns}]}`,
		want: `
			Policy.acme.example.com p
			  ready CustomResourceDefinition.apiextensions.k8s.io policies.acme.example.com: defined by CustomResourceDefinition policies.acme.example.com
			  applied Deployment.apps ns/operator: operator of acme.example.com
			Deployment.apps ns/operator
			  ready CustomResourceDefinition.apiextensions.k8s.io policies.acme.example.com: watches policies.acme.example.com
			  applied ClusterRoleBinding.rbac.authorization.k8s.io op: rights of ServiceAccount op
			Deployment.apps ns/reader
			  ready CustomResourceDefinition.apiextensions.k8s.io policies.acme.example.com: watches policies.acme.example.com
			  applied ClusterRoleBinding.rbac.authorization.k8s.io reader: rights of ServiceAccount reader
			Deployment.apps ns/admin
			  applied ClusterRoleBinding.rbac.authorization.k8s.io admin: rights of ServiceAccount admin
			ClusterRoleBinding.rbac.authorization.k8s.io op
			  applied ClusterRole.rbac.authorization.k8s.io op: grants ClusterRole op
			ClusterRoleBinding.rbac.authorization.k8s.io reader
			  applied ClusterRole.rbac.authorization.k8s.io reader: grants ClusterRole reader
			ClusterRoleBinding.rbac.authorization.k8s.io admin
			  applied ClusterRole.rbac.authorization.k8s.io admin: grants ClusterRole admin`,
	}, {
		name: "an operator whose CRDs are elsewhere",
		in: `
{apiVersion: acme.example.com/v1, kind: Gateway, metadata: {name: g}}
{apiVersion: v1, kind: Pod, metadata: {name: op, namespace: ns}, spec: {containers: [{name: c}]}}
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: op}, roleRef: {kind: ClusterRole, name: op}, subjects: [{kind: ServiceAccount, name: default, namespace: ns}]}
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: op}, rules: [{apiGroups: [acme.example.com], resources: ["gateways/finalizers"], verbs: ["*"]}]}`,
		want: `
			Gateway.acme.example.com g
			  applied Pod ns/op: operator of acme.example.com
			Pod ns/op
			  applied ClusterRoleBinding.rbac.authorization.k8s.io op: rights of ServiceAccount default
			ClusterRoleBinding.rbac.authorization.k8s.io op
			  applied ClusterRole.rbac.authorization.k8s.io op: grants ClusterRole op`,
	}})
}

func TestExplicit(t *testing.T) {
	runGraphs(t, []graphCase{{
		name: "depends-on, of both scopes, in the bundle and outside",
		in: `
{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: ns, annotations: {config.kubernetes.io/depends-on: "apps/namespaces/ns/Deployment/d, /Namespace/x,/namespaces/ns/Secret/outside"}}}
{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: ns}}
{apiVersion: v1, kind: Namespace, metadata: {name: x}}`,
		want: `
			ConfigMap ns/a
			  ready Deployment.apps ns/d !: depends-on annotation
			  ready Namespace x !: depends-on annotation
			  external Secret ns/outside: depends-on annotation`,
	}, {
		name: "an explicit edge and a derived one are one",
		in: `
{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: ns, annotations: {config.kubernetes.io/depends-on: /Namespace/ns}}}
{apiVersion: v1, kind: Namespace, metadata: {name: ns}}`,
		want: `
			ConfigMap ns/a
			  ready Namespace ns !: depends-on annotation; namespace ns`,
	}, {
		name: "apply-time mutation, its source's namespace left out or not",
		in: `
{apiVersion: v1, kind: Pod, metadata: {name: b, namespace: ns, annotations: {config.kubernetes.io/apply-time-mutation: "[{sourceRef: {kind: Pod, name: a}, sourcePath: $.status.podIP, targetPath: $.x}, {sourceRef: {kind: Pod, name: a, namespace: ns}, sourcePath: $.y, targetPath: $.y}, {sourceRef: {apiVersion: apps/v1, kind: Deployment, name: d, namespace: m}, sourcePath: $.y, targetPath: $.z}]"}}}
{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: ns}}
{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: m}}`,
		want: `
			Pod ns/b
			  ready Pod ns/a !: apply-time mutation of $.x
			  ready Deployment.apps m/d !: apply-time mutation of $.z`,
	}, {
		name: "all that can be wrong, at once",
		in: `
{apiVersion: v1, kind: Namespace, metadata: {name: syntax, annotations: {config.kubernetes.io/depends-on: "Namespace/x"}}}
{apiVersion: v1, kind: Namespace, metadata: {name: itself, annotations: {config.kubernetes.io/depends-on: "/Namespace/itself"}}}
{apiVersion: v1, kind: Namespace, metadata: {name: twice, annotations: {config.kubernetes.io/depends-on: "/Namespace/good,/Namespace/good"}}}
{apiVersion: v1, kind: Namespace, metadata: {name: missing, annotations: {config.kubernetes.io/depends-on: "/Namespace/nowhere,apps/namespaces/m/namespace/good"}}}
{apiVersion: v1, kind: Namespace, metadata: {name: mutation, annotations: {config.kubernetes.io/apply-time-mutation: "{"}}}
{apiVersion: v1, kind: Namespace, metadata: {name: good}}`,
		want: `
			Namespace twice
			  ready Namespace good !: depends-on annotation
			Namespace missing
			  external Namespace nowhere: depends-on annotation
			  external namespace.apps m/good: depends-on annotation; did you mean "/Namespace/good" (-:11)?
			problem: -:1: Namespace syntax: metadata.annotations[config.kubernetes.io/depends-on]: expected 3 or 5 fields, found 2: "Namespace/x"; write group/Kind/name or group/namespaces/namespace/Kind/name, separated by commas (an empty group for core: /namespaces/…)
			problem: -:3: Namespace itself: metadata.annotations[config.kubernetes.io/depends-on]: the object depends on itself: remove that dependency
			problem: -:5: Namespace twice: metadata.annotations[config.kubernetes.io/depends-on]: Namespace good is named twice: remove one
			problem: -:9: Namespace mutation: metadata.annotations[config.kubernetes.io/apply-time-mutation]: error converting YAML to JSON: yaml: line 1: did not find expected node content; write a YAML list of sourceRef, sourcePath, targetPath and token`,
	}, {
		name: "live objects: nothing stops, all is reported",
		in: `
{apiVersion: v1, kind: Namespace, metadata: {name: a, annotations: {config.kubernetes.io/depends-on: "/Namespace/b,/Namespace/nowhere"}}}
{apiVersion: v1, kind: Namespace, metadata: {name: b, annotations: {config.kubernetes.io/depends-on: "/Namespace/a"}}}`,
		options: Options{Live: true},
		want: `
			Namespace a
			  ready Namespace b !: depends-on annotation
			  external Namespace nowhere: depends-on annotation
			notice: -:1: Namespace a: dependency cycle: Namespace a at -:1 needs Namespace b at -:3 (depends-on annotation), which needs Namespace a at -:1 (depends-on annotation); remove one of these dependencies (ignored while deleting)`,
	}})
}

func TestRequisites(t *testing.T) {
	objs := readtest.Objects(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: b}}")
	objs[0].Requisites = []bundle.Requisite{
		{On: objs[1].ID, Reason: "require: Create b"},
		{On: objs[1].ID, Reason: "watch: Create b"},
		{On: bundle.ID{GroupKind: objs[0].ID.GroupKind, Name: "gone"}, Reason: "require: Create gone"},
		{On: objs[0].ID, Reason: "require: itself"},
	}
	g, problems := Build(objs, Options{})
	sound(t, g)
	want := trim(`
			ConfigMap default/a
			  ready ConfigMap default/b !: require: Create b; watch: Create b
			  external ConfigMap gone: require: Create gone
			problem: -:1: ConfigMap default/a: the object depends on itself: remove that dependency`)
	if got := print(g, problems); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestProblemsSayWhereTheyStand(t *testing.T) {
	_, problems := Build(readtest.Objects(t, `apiVersion: v1
kind: Namespace
metadata:
  name: a
  annotations:
    other: thing
    config.kubernetes.io/depends-on: nonsense
`), Options{})
	if len(problems) != 1 || problems[0].Source.Line != 7 {
		t.Errorf("problems %v, want one at line 7, where the annotation stands", problems)
	}
}

func TestOneEdgeOfTwoKeepsWhatIsStronger(t *testing.T) {
	b := newBuilder(chained(nil, nil), Options{})
	b.need(1, 0, Ready, judged, "second")
	b.need(1, 0, Applied, definition, "first")
	b.need(1, 0, Applied, operator, "first")
	links := b.merge()
	want := link{Edge{From: 1, To: 0, Want: Ready, Reason: "first; second", Weak: true}, definition}
	if len(links) != 1 || links[0] != want {
		t.Errorf("merged %+v, want %+v", links, want)
	}
}

// Objects that have only a generateName share an ID, and each has needs.
func TestGeneratedNames(t *testing.T) {
	objs := []*bundle.Object{plain(bundle.ConfigMapKind, "ns", "c")}
	for range 2 {
		job := plain(schema.GroupKind{Group: "batch", Kind: "Job"}, "ns", "")
		job.Content.Object["spec"] = map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{
			map[string]any{"envFrom": []any{map[string]any{"configMapRef": map[string]any{"name": "c"}}}},
		}}}}
		objs = append(objs, job)
	}
	g, _ := Build(objs, Options{})
	sound(t, g)
	if len(g.Needs[1]) != 1 || len(g.Needs[2]) != 1 {
		t.Errorf("needs %v and %v, want the ConfigMap in both", g.Needs[1], g.Needs[2])
	}
}
