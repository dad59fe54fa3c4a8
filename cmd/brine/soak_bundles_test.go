package main_test

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"brine/cmd/brine/clitest"
)

// soakBundle is the objects of a bundle, by a key of their own.
type soakBundle map[string]string

func (b soakBundle) text() string {
	var texts []string
	for _, key := range slices.Sorted(maps.Keys(b)) {
		texts = append(texts, b[key])
	}
	return clitest.Documents(texts...)
}

// soakObject is one that a bundle may hold, in one of a few versions.
type soakObject struct {
	key, needs string
	text       func(version string) string
}

func soakObjects() []soakObject {
	same := func(text string) func(string) string { return func(string) string { return text } }
	valued := func(text string) func(string) string {
		return func(version string) string {
			return strings.NewReplacer("key: value", "key: value-"+version, "size: 1", "size: "+version, "replicas: 1", "replicas: "+version,
				"name: c,", "name: c-"+version+",").Replace(text)
		}
	}
	objects := []soakObject{{"always", "", valued(clitest.ConfigMap("always"))}}
	for _, name := range []string{"goes", "stays", "comes"} {
		namespace := "a namespace " + name
		objects = append(objects, soakObject{namespace, "", same(platformNamespace(name))},
			soakObject{"inside " + name, namespace, valued(configMapIn("{ns}-"+name, "inside"))},
			soakObject{"deployment " + name, namespace, valued(strings.ReplaceAll(clitest.Deployment("web", 1, "1m"), "namespace: {ns}", "namespace: {ns}-"+name))})
	}
	for _, kind := range []string{"Widget", "Gadget"} {
		plural := strings.ToLower(kind) + "s"
		objects = append(objects, soakObject{"a CRD " + plural, "", same(platformCRD(plural, kind))},
			soakObject{"resource " + kind, "a CRD " + plural, valued(platformResource(kind))})
	}
	for i := range 4 {
		n := strconv.Itoa(i)
		objects = append(objects, soakObject{"map " + n, "", valued(clitest.ConfigMap("map-" + n))},
			soakObject{"account " + n, "", same(clitest.ServiceAccount("account-" + n))},
			soakObject{"role " + n, "", same(platformRole("role_" + n))})
	}
	recreated := strings.Replace(clitest.Job("migrate", "backoffLimit: 1"), "name: migrate,", "name: migrate, annotations: {brine.dev/on-immutable: recreate},", 1)
	return append(objects,
		soakObject{"dependent", "map 1", valued(clitest.ConfigMap("dependent", clitest.DependsOn("/namespaces/{ns}/ConfigMap/map-1")))},
		soakObject{"secret", "", func(version string) string {
			return "apiVersion: v1\nkind: Secret\nmetadata: {name: secret, namespace: '{ns}'}\nstringData: {password: hush-" + version + "}\n"
		}},
		soakObject{"deployment", "", valued(clitest.Deployment("web", 1, "1m"))},
		soakObject{"job", "", valued(recreated)},
		soakObject{"set", "", valued(`apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: "{ns}"}
spec:
  replicas: 1
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: c, image: "registry.k8s.io/pause:3.10"}]}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}
`)})
}
