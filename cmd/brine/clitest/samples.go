package clitest

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// ConfigMapOf is a ConfigMap with this data, in flow style.
func ConfigMapOf(name, data string, metadata ...string) string {
	return strings.Replace(ConfigMap(name, metadata...), "data: {key: value}", "data: "+data, 1)
}

// Role is an RBAC object whose name is not a DNS name.
func Role(kind, name string) string {
	text := "apiVersion: rbac.authorization.k8s.io/v1\nkind: " + kind + "\nmetadata:\n  name: \"" + name + "\"\n"
	if !strings.HasPrefix(kind, "Cluster") {
		text += "  namespace: {ns}\n"
	}
	if strings.HasSuffix(kind, "Binding") {
		return text + "roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}\nsubjects: []\n"
	}
	return text + "rules: []\n"
}

// ServiceAccount is one of the fixture's namespace.
func ServiceAccount(name string) string {
	return "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: " + name + ", namespace: '{ns}'}\n"
}

// PumpCRD is a CRD with a default and a rule.
const PumpCRD = `apiVersion: apiextensions.k8s.io/v1
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

// Pump is a resource of that CRD.
func Pump(name, spec string) string {
	return "apiVersion: {ns}.example.com/v1\nkind: Pump\nmetadata:\n  name: " + name + "\n  namespace: {ns}\nspec:\n" + spec
}

// Job is one of a single container, with more fields in its spec.
func Job(name, spec string) string {
	return "apiVersion: batch/v1\nkind: Job\nmetadata: {name: " + name + ", namespace: \"{ns}\"}\nspec:\n  " + spec + `
  template:
    spec:
      restartPolicy: Never
      containers: [{name: c, image: registry.k8s.io/pause:3.10}]
`
}

// Packed is a text as a revision stores it.
func Packed(t *testing.T, text string) string {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(w.EncodeAll([]byte(text), nil))
}

// ConfigMap is a ConfigMap of the fixture's namespace, with more fields of its
// metadata in flow style ("annotations: {a: b}").
func ConfigMap(name string, metadata ...string) string {
	text := "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: " + name + "\n  namespace: {ns}\n"
	for _, m := range metadata {
		text += "  " + m + "\n"
	}
	return text + "data: {key: value}\n"
}

// Deployment is one of a single container that asks for the given CPU.
func Deployment(name string, replicas int, cpu string, metadata ...string) string {
	text := "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: " + name + "\n  namespace: {ns}\n"
	for _, m := range metadata {
		text += "  " + m + "\n"
	}
	return text + fmt.Sprintf(`spec:
  replicas: %d
  selector: {matchLabels: {app: %s}}
  template:
    metadata: {labels: {app: %s}}
    spec:
      containers:
      - {name: c, image: registry.k8s.io/pause:3.10, resources: {requests: {cpu: "%s"}}}
`, replicas, name, name, cpu)
}

// RefusedService is what only a server finds wrong: its address is not one of the cluster's.
func RefusedService(name string, metadata ...string) string {
	text := "apiVersion: v1\nkind: Service\nmetadata:\n  name: " + name + "\n  namespace: {ns}\n"
	for _, m := range metadata {
		text += "  " + m + "\n"
	}
	return text + "spec:\n  clusterIP: 192.0.2.1\n  selector: {app: " + name + "}\n  ports: [{port: 80}]\n"
}

// Documents are one bundle.
func Documents(texts ...string) string { return strings.Join(texts, "---\n") }

// Pod is a Pod of a single container.
func Pod(name string, metadata ...string) string {
	return PodWith(name, "", metadata...)
}

// PodWith is a Pod with more fields in its spec, in flow style.
func PodWith(name, spec string, metadata ...string) string {
	text := "apiVersion: v1\nkind: Pod\nmetadata:\n  name: " + name + "\n  namespace: {ns}\n"
	for _, m := range metadata {
		text += "  " + m + "\n"
	}
	text += "spec:\n  terminationGracePeriodSeconds: 0\n"
	if spec != "" {
		text += "  " + spec + "\n"
	}
	return text + "  containers: [{name: c, image: registry.k8s.io/pause:3.10, ports: [{containerPort: 80}]}]\n"
}

// Annotations is the line of metadata with these annotations, in flow style.
func Annotations(pairs ...string) string {
	return "annotations: {" + strings.Join(pairs, ", ") + "}"
}

// DependsOn is the line of metadata with the annotation depends-on.
func DependsOn(ref string) string {
	return Annotations(`config.kubernetes.io/depends-on: "` + ref + `"`)
}

// Widgets is a CRD of a group of the fixture's own.
const Widgets = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.{ns}.example.com}
spec:
  group: "{ns}.example.com"
  scope: Namespaced
  names: {plural: widgets, kind: Widget}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// Widget is a resource of that CRD.
const Widget = `apiVersion: "{ns}.example.com/v1"
kind: Widget
metadata: {name: one, namespace: "{ns}"}
spec: {size: 1}
`

// Replicas is what a Deployment's spec asks for.
func Replicas(t testing.TB, u *unstructured.Unstructured) int64 {
	t.Helper()
	n, _, err := unstructured.NestedInt64(u.Object, "spec", "replicas")
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// States are three ConfigMaps in Salt's high data, each of which requires the
// next, and a fourth that is to be absent.
func States(value string) string {
	state := func(id, name, requires string) string {
		text := fmt.Sprintf("%s:\n  k.object_present:\n  - manifest: {apiVersion: v1, kind: ConfigMap, metadata: {name: %s}, data: {key: %s}}\n", id, name, value)
		if requires != "" {
			text += "  - require: [{k: " + requires + "}]\n"
		}
		return text + "  __sls__: shop.settings\n"
	}
	return state("Make c", "c", "Make b") + state("Make b", "b", "Make a") + state("Make a", "a", "") +
		"Remove old:\n  k.object_absent:\n  - name: old\n  - namespace: {ns}\n  - kind: ConfigMap\n  - apiVersion: v1\n"
}
