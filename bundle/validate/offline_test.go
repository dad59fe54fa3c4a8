package validate

import (
	"bytes"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"brine/bundle"
	"brine/bundle/bundletest"
	"brine/bundle/read"
	"brine/bundle/read/readtest"
)

const (
	head = "apiVersion: v1\nkind: "
	pod  = head + "Pod\nmetadata: {name: a}\nspec:\n  containers:\n  - name: a\n    image: a\n"
	svc  = head + "Service\nmetadata: {name: a}\nspec:\n  selector: {a: b}\n"
	dep  = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec:\n  selector: {matchLabels: {a: b}}\n"
	tmpl = "  template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: a}]}}\n"
	crb  = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: a}\n"
)

// brokenCases are objects that servers refuse for their structure
// (TestOfflineRefusesAsTheServer), and each is told what is wrong.
var brokenCases = []struct {
	yaml  string
	since int // the minor version of Kubernetes whose servers were the first to refuse it
	want  []string
}{
	{yaml: dep + tmpl + "  replcas: 1", want: []string{`spec.replcas: unknown field "replcas"; did you mean "replicas"?`}},
	{yaml: dep + tmpl + "  replicas: \"1\"", want: []string{"spec.replicas: must be of type integer, not string"}},
	{yaml: dep + tmpl + "  replicas: 1.5", want: []string{"spec.replicas: must be of type integer, not number"}},
	{yaml: dep + tmpl + "  replicas: 3000000000", want: []string{"spec.replicas: must be of type int32: it is too large or too small"}},
	{yaml: dep, want: []string{"spec.template: is required and missing"}},
	{yaml: strings.Replace(dep, "  selector: {matchLabels: {a: b}}\n", tmpl, 1), want: []string{"spec.selector: is required and missing"}},
	{yaml: dep + tmpl + "  strategy: {type: Rolling}", want: []string{`spec.strategy.type: unsupported value "Rolling"; there are Recreate, RollingUpdate`}},
	{yaml: dep + tmpl + "  strategy: {type: recreate}", want: []string{`spec.strategy.type: unsupported value "recreate"; did you mean "Recreate"?`}},
	{yaml: dep + tmpl + "  strategy: {rollingUpdate: {maxSurge: [1]}}", want: []string{"spec.strategy.rollingUpdate.maxSurge: must be of type integer or string, not array"}},
	{yaml: dep + tmpl + "spce: {}", want: []string{`spce: unknown field "spce"; did you mean "spec"?`}},
	{yaml: dep + "  template: {metadata: {labels: {a: b}}, spec: {container: [{name: a, image: a}]}}", want: []string{`spec.template.spec.container: unknown field "container"; did you mean "containers"?`, "spec.template.spec.containers: is required and missing"}},
	{yaml: pod + "    env: [{name: A, value: 1}]", want: []string{"spec.containers[0].env[0].value: must be of type string, not integer; put it in quotes"}},
	{yaml: pod + "    env: [{name: A, value: true}]", want: []string{"spec.containers[0].env[0].value: must be of type string, not boolean; put it in quotes"}},
	{yaml: pod + "    env: {A: b}", want: []string{"spec.containers[0].env: must be of type array, not object"}},
	{yaml: pod + "    env: [{name: A, value: a}, {name: B, value: a}, {name: A, value: b}]", want: []string{"spec.containers[0].env[2]: has the same name as spec.containers[0].env[0]: remove one of them"}},
	{yaml: pod + "    ports: [{containerPort: 80}, {containerPort: 80, protocol: TCP}]", want: []string{"spec.containers[0].ports[1]: has the same containerPort and protocol as spec.containers[0].ports[0]"}},
	{yaml: pod + "    ports: [{name: http}]", want: []string{"spec.containers[0].ports[0].containerPort: is required and missing"}},
	{yaml: pod + "    ports: [{containerPort: 80, protocol: tcp}]", want: []string{`spec.containers[0].ports[0].protocol: unsupported value "tcp"; did you mean "TCP"?`}},
	{yaml: pod + "    imagePullPolicy: Sometimes", want: []string{`spec.containers[0].imagePullPolicy: unsupported value "Sometimes"; there are Always, IfNotPresent, Never`}},
	{yaml: pod + "    resources: {limits: {memory: 1GiB}}", want: []string{`spec.containers[0].resources.limits.memory: must be a quantity such as 500m or 1Gi, not "1GiB"`}},
	{yaml: pod + "    livenessProbe: {httpGet: {path: /}}", want: []string{"spec.containers[0].livenessProbe.httpGet.port: is required and missing"}},
	{yaml: pod + "    livenessProbe: {httpget: {port: 1}}", want: []string{`spec.containers[0].livenessProbe.httpget: unknown field "httpget"; did you mean "httpGet"?`}},
	{yaml: pod + "    volumeMounts: [{name: a}]\n  volumes: [{name: a}]", want: []string{"spec.containers[0].volumeMounts[0].mountPath: is required and missing"}},
	{yaml: pod + "    command: sh", want: []string{"spec.containers[0].command: must be of type array, not string"}},
	{yaml: pod + "    args: [1]", want: []string{"spec.containers[0].args[0]: must be of type string, not integer; put it in quotes"}},
	{yaml: pod + "  - image: b", want: []string{"spec.containers[1].name: is required and missing"}},
	{yaml: pod + "  restartPolicy: Forever", want: []string{`spec.restartPolicy: unsupported value "Forever"; there are Always, Never, OnFailure`}},
	{yaml: pod + "  hostNetwork: \"yes\"", want: []string{"spec.hostNetwork: must be of type boolean, not string"}},
	{yaml: pod + "  tolerations: [{operator: Exist}]", want: []string{`spec.tolerations[0].operator: unsupported value "Exist"; did you mean "Exists"?`}},
	{yaml: pod + "  nodeSelector: {a: 1}", want: []string{"spec.nodeSelector.a: must be of type string, not integer; put it in quotes"}},
	{yaml: pod + "  volumes: [{name: a, configMap: {name: a, items: [{key: a}]}}]", want: []string{"spec.volumes[0].configMap.items[0].path: is required and missing"}},
	{yaml: dep + strings.Replace(tmpl, "a: b", "a: c", 1), want: []string{`spec.template.metadata.labels: Invalid value: "a=c": the selector a=b does not match these labels`}},
	{yaml: dep + tmpl + "  replicas: -3", want: []string{"spec.replicas: Invalid value: -3: must be 0 or more"}},
	{yaml: strings.Replace(pod, "- name: a", "- name: Web_1", 1), want: []string{`spec.containers[0].name: Invalid value: "Web_1": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name', or '123-abc')`}},
	{yaml: pod + "    ports: [{containerPort: 99999}]", want: []string{"spec.containers[0].ports[0].containerPort: Invalid value: 99999: must be from 1 to 65535"}},
	{yaml: pod + "    volumeMounts: [{name: b, mountPath: /b}]", want: []string{`spec.containers[0].volumeMounts[0].name: Not found: "b"`}},
	{yaml: pod + "    resources: {requests: {cpu: 2}, limits: {cpu: 1}}", want: []string{`spec.containers[0].resources.requests.cpu: Invalid value: "2": must be less than or equal to the limit 1`}},
	{yaml: svc + "  ports: [{port: 99999}]", want: []string{"spec.ports[0].port: Invalid value: 99999: must be from 1 to 65535"}},
	{yaml: svc + "  ports: [{port: 80}]\n  externalIPs: [010.0.0.1]", since: strictSince, want: []string{`spec.externalIPs[0]: Invalid value: "010.0.0.1": must not have leading 0s`}},
	{yaml: "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: a}\nspec: {schedule: every day, jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: a}]}}}}}",
		want: []string{`spec.schedule: Invalid value: "every day": expected exactly 5 fields, found 2: [every day]`}},
	{yaml: "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicyBinding\nmetadata: {name: a.static.k8s.io}\nspec: {policyName: a, validationActions: [Deny]}", since: staticSince,
		want: []string{`metadata.name: Invalid value: "a.static.k8s.io": names ending with ".static.k8s.io" are reserved for files of the API server`}},
	{yaml: svc + "  ports: [{port: http}]", want: []string{"spec.ports[0].port: must be of type integer, not string"}},
	{yaml: svc + "  ports: [{targetPort: 80}]", want: []string{"spec.ports[0].port: is required and missing"}},
	{yaml: svc + "  type: Nodeport\n  ports: [{port: 80}]", want: []string{`spec.type: unsupported value "Nodeport"; did you mean "NodePort"?`}},
	{yaml: head + "ConfigMap\nmetadata: {name: a}\ndata: {a: 1, b: {c: d}}", want: []string{"data.a: must be of type string, not integer; put it in quotes", "data.b: must be of type string, not object"}},
	{yaml: head + "ConfigMap\nmetadata: {name: a}\ndata: [a]", want: []string{"data: must be of type object, not array"}},
	{yaml: head + "ConfigMap\nmetadata: {name: a}\nbinaryData: {a: \"%%\"}", want: []string{"binaryData.a: must be base64"}},
	{yaml: head + "ConfigMap\nmetadata: {name: a_B}", want: []string{"metadata.name: a lowercase RFC 1123 subdomain must consist of"}},
	{yaml: head + "ConfigMap\nmetadata: {name: a, labels: {a: \"b c\"}}", want: []string{`metadata.labels: Invalid value: "b c"`}},
	{yaml: head + "ConfigMap\nmetadata: {name: a, annotations: {\"a b\": c}}", want: []string{`metadata.annotations: Invalid value: "a b"`}},
	{yaml: head + "Secret\nmetadata: {name: a}\nstringData: {a: 12345}", want: []string{"stringData.a: must be of type string, not integer; put it in quotes"}},
	{yaml: head + "Secret\nmetadata: {name: a}\ndata: {a: not-base64!}", want: []string{"data.a: must be base64; write plain text under stringData"}},
	{yaml: crb, want: []string{"roleRef: is required and missing"}},
	{yaml: crb + "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: a}\nsubjects: [{name: a}]", want: []string{"subjects[0].kind: is required and missing"}},
	{yaml: "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: a}\nspec: {schedule: '* * * * *', concurrencyPolicy: Never}", want: []string{`spec.concurrencyPolicy: unsupported value "Never"; there are Allow, Forbid, Replace`, "spec.jobTemplate: is required and missing"}},
	{yaml: "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: a}\nspec: {rules: [{http: {paths: [{path: /, backend: {serviceName: a, servicePort: 80}}]}}]}",
		want: []string{`spec.rules[0].http.paths[0].backend.serviceName: unknown field "serviceName"`, `spec.rules[0].http.paths[0].backend.servicePort: unknown field "servicePort"`, "spec.rules[0].http.paths[0].pathType: is required and missing"}},
	{yaml: "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: c, image: x, resources: {requests: {memory: 1Gx, cpu: ' 1 '}, limits: {memory: ''}}}]}",
		want: []string{`spec.containers[0].resources.requests.memory: must be a quantity such as 500m or 1Gi, not "1Gx"`, `spec.containers[0].resources.limits.memory: must be a quantity`}},
	{yaml: "apiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata: {name: a}\nspec: {renewTime: now}", want: []string{"spec.renewTime: must be a time as in RFC 3339"}},
	{yaml: "apiVersion: apiregistration.k8s.io/v1\nkind: APIService\nmetadata: {name: v1.a.b}\nspec: {group: a.b, version: v1, groupPriorityMinimum: high}", want: []string{"spec.groupPriorityMinimum: must be of type integer, not string", "spec.versionPriority: is required and missing"}},
	{yaml: "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: as.b.c}\nspec: {group: b.c, scop: Cluster, names: {kind: A, plural: as}, versions: [{name: v1, served: true, storage: true}]}", want: []string{`spec.scop: unknown field "scop"; did you mean "scope"?`, "spec.scope: is required and missing"}},
}

// unread is an object past bundle.Read, which finds some of this on its own.
func unread(t testing.TB, text string) *bundle.Object {
	t.Helper()
	u := bundletest.Object(t, text)
	gvk := u.GroupVersionKind()
	return &bundle.Object{ID: bundle.ID{GroupKind: gvk.GroupKind(), Name: u.GetName()}, GVK: gvk, Content: u}
}

func TestOfflineRefuses(t *testing.T) {
	for _, c := range brokenCases {
		t.Run(c.want[0], func(t *testing.T) {
			o := unread(t, c.yaml)
			found := offlineOne(t, o)
			if len(found) == 0 {
				found = text(Metadata(o))
			}
			same(t, found, c.want)
		})
	}
}

func TestOfflineVersions(t *testing.T) {
	ingress := func(version string) string {
		return "apiVersion: " + version + "\nkind: Ingress\nmetadata: {name: a}\nspec: {rules: [{host: a}]}\n"
	}
	for _, c := range []struct {
		name, version, yaml string
		problems, warnings  []string
	}{
		{name: "served", yaml: ingress("networking.k8s.io/v1")},
		{name: "gone", yaml: ingress("extensions/v1beta1"),
			problems: []string{"apiVersion: Kubernetes 1.37 no longer serves extensions/v1beta1 Ingress, gone since 1.22; write networking.k8s.io/v1 Ingress"}},
		{name: "gone, and its Go type with it", yaml: "apiVersion: policy/v1beta1\nkind: PodSecurityPolicy\nmetadata: {name: a}\n",
			problems: []string{"apiVersion: Kubernetes 1.37 no longer serves policy/v1beta1 PodSecurityPolicy, gone since 1.25"}},
		{name: "gone, and its Go type with it, replaced", version: "1.26", yaml: "apiVersion: autoscaling/v2beta2\nkind: HorizontalPodAutoscaler\nmetadata: {name: a}\n",
			problems: []string{"apiVersion: Kubernetes 1.26 no longer serves autoscaling/v2beta2 HorizontalPodAutoscaler, gone since 1.26; write apiVersion: autoscaling/v2"}},
		{name: "deprecated", version: "v1.21.3", yaml: ingress("networking.k8s.io/v1beta1"),
			warnings: []string{"apiVersion: networking.k8s.io/v1beta1 Ingress is deprecated in v1.19+, unavailable in v1.22+; use networking.k8s.io/v1 Ingress"}},
		{name: "not yet", version: "1.20", yaml: "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: a}\n",
			problems: []string{"apiVersion: Kubernetes 1.20 does not serve batch/v1 CronJob yet, which came with 1.21; write apiVersion: batch/v1beta1"}},
		{name: "a deprecated field", yaml: svc + "  ports: [{port: 80}]\n  externalIPs: [10.0.0.1]",
			warnings: []string{"spec.externalIPs: deprecated since Kubernetes 1.36; use a Service of type LoadBalancer"}},
		{name: "a field that is not deprecated yet, and addresses as they were read", version: "1.35", yaml: svc + "  ports: [{port: 80}]\n  externalIPs: [010.0.0.1]"},
		{name: "a field that will stop to work", version: "1.30", yaml: pod + "  volumes: [{name: a, rbd: {monitors: [a], image: a}}]",
			warnings: []string{"spec.volumes[0].rbd: deprecated since Kubernetes 1.28, will not work from 1.31 on; use a CSI driver"}},
		{name: "a field that does not work any more", yaml: pod + "  volumes: [{name: a, rbd: {monitors: [a], image: a}}]\n  nodeSelector: {beta.kubernetes.io/os: linux}",
			warnings: []string{"spec.volumes[0].rbd: does not work since Kubernetes 1.31; use a CSI driver", "spec.nodeSelector[beta.kubernetes.io/os]: deprecated since Kubernetes 1.14; use kubernetes.io/os"}},
		{name: "a deprecated annotation", yaml: strings.Replace(pod, "name: a}", "name: a, annotations: {container.apparmor.security.beta.kubernetes.io/a: runtime/default}}", 1),
			warnings: []string{"metadata.annotations[container.apparmor.security.beta.kubernetes.io/a]: deprecated since Kubernetes 1.30; use the field appArmorProfile"}},
		{name: "a CRD of old", yaml: "apiVersion: apiextensions.k8s.io/v1beta1\nkind: CustomResourceDefinition\nmetadata: {name: a}\n",
			problems: []string{"apiVersion: Kubernetes 1.37 no longer serves apiextensions.k8s.io/v1beta1 CustomResourceDefinition, gone since 1.22; write apiextensions.k8s.io/v1 CustomResourceDefinition"}},
		{name: "not by default", yaml: "apiVersion: internal.apiserver.k8s.io/v1alpha1\nkind: StorageVersion\nmetadata: {name: a}\n",
			warnings: []string{"apiVersion: the API server serves internal.apiserver.k8s.io/v1alpha1 only with --runtime-config"}},
		{name: "unknown field without a published structure", yaml: "apiVersion: internal.apiserver.k8s.io/v1alpha1\nkind: StorageVersion\nmetadata: {name: a}\nspecs: {}\n",
			problems: []string{`specs: unknown field "specs"`},
			warnings: []string{"apiVersion: the API server serves internal.apiserver.k8s.io/v1alpha1 only with --runtime-config"}},
		{name: "kind in another version", yaml: "apiVersion: apps/v3\nkind: Deployment\nmetadata: {name: a}\n",
			problems: []string{"apiVersion: Kubernetes has no Deployment in apps/v3; write apiVersion: apps/v1"}},
		{name: "APIService of old", yaml: "apiVersion: apiregistration.k8s.io/v1beta1\nkind: APIService\nmetadata: {name: a}\n",
			problems: []string{"apiVersion: Kubernetes 1.37 no longer serves apiregistration.k8s.io/v1beta1 APIService, gone since 1.22; write apiVersion: apiregistration.k8s.io/v1"}},
		{name: "a slip in the kind", yaml: "apiVersion: apps/v1\nkind: Deploymnet\nmetadata: {name: a}\n",
			problems: []string{"kind: Kubernetes has no kind Deploymnet in apps/v1; did you mean Deployment?"}},
		{name: "nobody knows it", yaml: "apiVersion: a.b/v1\nkind: C\nmetadata: {name: a}\n",
			warnings: []string{"apiVersion: not checked: a.b/v1 C is not built into Kubernetes, and no CRD of the bundle defines it"}},
		{name: "options are no kind", yaml: "apiVersion: v1\nkind: PodLogOptions\nmetadata: {name: a}\n",
			problems: []string{"kind: Kubernetes has no kind PodLogOptions in v1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			problems, warnings, err := Offline(readtest.Objects(t, c.yaml), Options{KubernetesVersion: c.version})
			if err != nil {
				t.Fatal(err)
			}
			same(t, text(problems), c.problems)
			same(t, text(warnings), c.warnings)
		})
	}
	for _, version := range []string{"1.19", "1.38", "2.1", "latest", "1", "1.x"} {
		if _, _, err := Offline(nil, Options{KubernetesVersion: version}); err == nil {
			t.Errorf("version %s: no error", version)
		}
	}
	if all := Versions(); all[0] != "1.37" || !slices.Contains(all, "1.25") {
		t.Errorf("versions %v", all)
	}
}

// Custom resources are checked against the bundle's CRDs.
func TestOfflineWithCRDs(t *testing.T) {
	objs := readtest.Objects(t, widget+"spec: {size: big}\n---\napiVersion: validate.brine.dev/v1beta1\nkind: Widget\nmetadata: {name: b}\n")
	problems, warnings, err := Offline(objs, Options{CRDs: testCRDs(t)})
	if err != nil {
		t.Fatal(err)
	}
	same(t, text(problems), []string{"spec.size: Unsupported value", rulesNote})
	same(t, text(warnings), []string{"apiVersion: validate.brine.dev/v1beta1 Widget is deprecated; use validate.brine.dev/v1 Widget"})
}

// The real bundles, as they are but for the slots that Salt would fill.
func TestOfflineRealBundles(t *testing.T) {
	dir := filepath.Join("..", "..", "..", "shared", "bundles")
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		if os.Getenv("BRINE_TEST_REQUIRED") == "1" {
			t.Fatalf("no bundles at %s, and BRINE_TEST_REQUIRED=1", dir)
		}
		t.Skipf("SKIPPED: no bundles at %s", dir)
	}
	for _, files := range [][]string{
		{"metalk8s-new/*.yaml"}, {"metalk8s-old/*.yaml"}, {"unready/*.yaml"},
		{"salt-output/deploy.high.json"}, {"salt-output/dex-chart.high.json"}, {"salt-output/nginx-ingress-chart.low.json"}, {"salt-output/nginx-ingress-chart.renderer.json"},
	} {
		t.Run(files[0], func(t *testing.T) {
			paths, err := filepath.Glob(filepath.Join(dir, files[0]))
			if err != nil || len(paths) == 0 {
				t.Fatal("no files", err)
			}
			filled := t.TempDir()
			for _, path := range paths {
				data, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				data = bytes.ReplaceAll(data, []byte("__slot__:salt:"), []byte("filled "))
				if err := os.WriteFile(filepath.Join(filled, filepath.Base(path)), data, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			objs := readObjects(t, read.Options{Files: []string{filled}, IgnoreNonKubernetesStates: true})
			crds, problems := Compile(objs)
			more, warnings, err := Offline(objs, Options{CRDs: crds})
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range append(problems, more...) {
				t.Error(p)
			}
			for _, w := range warnings {
				if !strings.Contains(w.Message, "no CRD of the bundle defines it") && !strings.HasSuffix(w.Path, "[node-role.kubernetes.io/master]") {
					t.Error(w)
				}
			}
		})
	}
}

// No message has a Secret's value in it, wherever the value stands.
func TestOfflineKeepsSecretsOut(t *testing.T) {
	const value = "31337"
	for _, body := range []string{
		"data: {a: " + value + "}", "data: {a: {b: " + value + "}}", "data: {a: '*" + value + "*'}", "data: [" + value + "]", "data: " + value,
		"stringData: {a: " + value + "}", "stringData: {a: [" + value + "]}", "immutable: '" + value + "'", "type: " + value, "type: {a: " + value + "}",
	} {
		problems := offlineOne(t, unread(t, head+"Secret\nmetadata: {name: a}\n"+body))
		if len(problems) == 0 {
			t.Errorf("case %q: no problem", body[:8])
		}
		if strings.Contains(strings.Join(problems, "\n"), value) {
			t.Errorf("case %q: the value is in a message", body[:8])
		}
	}
}

// FuzzOffline: whatever JSON an object of a kind holds, Offline tells what is wrong.
func FuzzOffline(f *testing.F) {
	for i := range uint64(100) {
		f.Add(i)
	}
	objs := accepted(f)
	f.Fuzz(func(t *testing.T, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 0))
		o := *objs[r.IntN(len(objs))]
		o.Content = o.Content.DeepCopy()
		for range 1 + r.IntN(4) {
			damage(r, o.Content.Object)
		}
		if len(offlineOne(t, &o)) == 0 {
			t.Error("no problem, for all the damage") // an unknown field at least
		}
		Compile([]*bundle.Object{&o})
	})
}
