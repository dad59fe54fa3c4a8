package cli

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// configMap is a ConfigMap of the fixture's namespace, with more fields of its
// metadata in flow style ("annotations: {a: b}").
func configMap(name string, metadata ...string) string {
	text := "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: " + name + "\n  namespace: {ns}\n"
	for _, m := range metadata {
		text += "  " + m + "\n"
	}
	return text + "data: {key: value}\n"
}

// deployment is one of a single container that asks for the given CPU.
func deployment(name string, replicas int, cpu string, metadata ...string) string {
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

// documents are one bundle.
func documents(texts ...string) string { return strings.Join(texts, "---\n") }

// pod is a Pod of a single container.
func pod(name string, metadata ...string) string {
	return podWith(name, "", metadata...)
}

// podWith is a Pod with more fields in its spec, in flow style.
func podWith(name, spec string, metadata ...string) string {
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

// annotations is the line of metadata with these annotations, in flow style.
func annotations(pairs ...string) string {
	return "annotations: {" + strings.Join(pairs, ", ") + "}"
}

// dependsOn is the line of metadata with the annotation depends-on.
func dependsOn(ref string) string {
	return annotations(`config.kubernetes.io/depends-on: "` + ref + `"`)
}

// widgets is a CRD of a group of the fixture's own.
const widgets = `apiVersion: apiextensions.k8s.io/v1
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

// widget is a resource of that CRD.
const widget = `apiVersion: "{ns}.example.com/v1"
kind: Widget
metadata: {name: one, namespace: "{ns}"}
spec: {size: 1}
`

// replicas is what a Deployment's spec asks for.
func replicas(t testing.TB, u *unstructured.Unstructured) int64 {
	t.Helper()
	n, _, err := unstructured.NestedInt64(u.Object, "spec", "replicas")
	if err != nil {
		t.Fatal(err)
	}
	return n
}
