package cli

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle/diff"
	"brine/bundle/plan"
)

// What somebody changed by hand in a list that is merged by key, then taken
// over: the preview shows what the apply does.
func TestPreviewOfATakeOverOfLists(t *testing.T) {
	service := "apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: \"{ns}\"}\nspec: {selector: {app: web}, ports: [{name: http, port: 80, targetPort: 8080}]}\n"
	unnamed := strings.Replace(service, "name: http, ", "", 1)
	web := strings.TrimSuffix(deployment("web", 1, "1m"), "\n") + "\n" + `        ports: [{name: http, containerPort: 8080}]
        env: [{name: A, value: a}, {name: B, value: b}]
        volumeMounts: [{name: data, mountPath: /data}]
      volumes: [{name: data, emptyDir: {}}]
`
	web = strings.Replace(web, `resources: {requests: {cpu: "1m"}}}`, `resources: {requests: {cpu: "1m"}}`, 1)
	web = strings.Replace(web, "- {name: c, image: registry.k8s.io/pause:3.10, ", "- name: c\n        image: registry.k8s.io/pause:3.10\n        ", 1)
	for name, test := range map[string]struct {
		text, resource, patch string
	}{
		"a Service's port":         {service, "v1/services", `{"spec":{"ports":[{"port":80,"$patch":"delete"},{"name":"http","port":81,"targetPort":8080}]}}`},
		"a Service's unnamed port": {unnamed, "v1/services", `{"spec":{"ports":[{"port":80,"$patch":"delete"},{"port":81,"targetPort":8080}]}}`},
		"a Service's port renamed": {service, "v1/services", `{"spec":{"ports":[{"port":80,"name":"web"}]}}`},
		"one more port":            {service, "v1/services", `{"spec":{"ports":[{"port":443,"name":"https"}]}}`},
		"one more container":       {web, "apps/v1/deployments", `{"spec":{"template":{"spec":{"containers":[{"name":"more","image":"example.com/more"}]}}}}`},
		"a container renamed":      {web, "apps/v1/deployments", `{"spec":{"template":{"spec":{"containers":[{"name":"c","$patch":"delete"},{"name":"d","image":"registry.k8s.io/pause:3.10","ports":[{"name":"http","containerPort":8080}]}]}}}}`},
		"a container's port":       {web, "apps/v1/deployments", `{"spec":{"template":{"spec":{"containers":[{"name":"c","ports":[{"containerPort":8080,"$patch":"delete"},{"name":"http","containerPort":8081}]}]}}}}`},
		"env":                      {web, "apps/v1/deployments", `{"spec":{"template":{"spec":{"containers":[{"name":"c","env":[{"name":"A","value":"x"},{"name":"C","value":"c"}]}]}}}}`},
		"env from elsewhere":       {web, "apps/v1/deployments", `{"spec":{"template":{"spec":{"containers":[{"name":"c","env":[{"name":"A","value":null,"valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}}]}]}}}}`},
		"a volume":                 {web, "apps/v1/deployments", `{"spec":{"template":{"spec":{"volumes":[{"name":"data","emptyDir":null,"configMap":{"name":"x"}}]}}}}`},
		"a volume and its mount":   {web, "apps/v1/deployments", `{"spec":{"template":{"spec":{"volumes":[{"name":"more","emptyDir":{}}],"containers":[{"name":"c","volumeMounts":[{"name":"more","mountPath":"/data"}]}]}}}}`},
		"a mount":                  {web, "apps/v1/deployments", `{"spec":{"template":{"spec":{"volumes":[{"name":"more","emptyDir":{}}],"containers":[{"name":"c","volumeMounts":[{"name":"more","mountPath":"/more"}]}]}}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t)
			s.apply(test.text, "--wait=applied").want(t, 0)
			s.patchAs("kubectl-patch", test.resource, "web", test.patch)
			changed := strings.Replace(test.text, "metadata:\n  name: web\n", "metadata:\n  name: web\n  labels: {a: b}\n", 1)
			kind := map[string]string{"v1/services": "Service", "apps/v1/deployments": "Deployment"}[test.resource]
			before := s.preview(changed, "--take-over-from=kubectl-patch").want(t, 0)
			shown := before.did(t, kind, "web", plan.Configured)
			if shown.Verified != "server (as an update, with the fields taken over)" {
				t.Errorf("it was verified by %q", shown.Verified)
			}
			after := s.apply(changed, "--take-over-from=kubectl-patch", "--wait=applied").want(t, 0).did(t, kind, "web", plan.Configured)
			controllers := func(c diff.Change) bool { return strings.Contains(c.Path, "deployment.kubernetes.io/") }
			a, b := slices.DeleteFunc(shown.Changes, controllers), slices.DeleteFunc(after.Changes, controllers)
			if !reflect.DeepEqual(a, b) {
				t.Errorf("the preview shows %v\nthe apply did %v", a, b)
			}
			live := s.live(test.resource, s.ns, "web")
			fresh := s.parsed(test.text)
			for _, path := range [][]string{{"spec", "ports"}, {"spec", "template", "spec", "containers"}, {"spec", "template", "spec", "volumes"}} {
				is, _, _ := unstructured.NestedSlice(live.Object, path...)
				want, _, _ := unstructured.NestedSlice(fresh.Object, path...)
				if len(is) != len(want) {
					t.Errorf("%v is %v, want %v", path, is, want)
				}
			}
		})
	}
}

// The third manager is no part of what is taken over.
func TestPreviewOfATakeOverWithAConflict(t *testing.T) {
	s := newFixture(t)
	s.apply(configMapOf("web", "{a: \"1\"}")).want(t, 0)
	s.patchAs("kubectl-patch", "v1/configmaps", "web", `{"data":{"b":"2"}}`)
	s.patchAs("third", "v1/configmaps", "web", `{"data":{"a":"3"}}`)
	for _, run := range []func(string, ...string) outcome{s.preview, s.apply} {
		run(configMapOf("web", "{a: \"1\"}"), "--take-over-from=kubectl-patch").want(t, 1).
			prints(t, "conflict", "third", ".data.a").did(t, "ConfigMap", "web", plan.Failed)
	}
}
