package write_test

import (
	"context"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"brine/bundle/cluster/clustertest"
	"brine/bundle/diff"
	"brine/bundle/plan"
	"brine/bundle/takeover"
	"brine/cmd/brine/clitest"
)

func TestTakeOverLeavesNoFieldToTheOtherManager(t *testing.T) {
	for manager, operation := range map[string]string{"OpenAPI-Generator": "update", "kubectl-client-side-apply": "update", "kubectl": "apply", "Swagger-Codegen": "update"} {
		t.Run(manager, func(t *testing.T) {
			s := clitest.New(t)
			client := s.Resources("v1/configmaps").Namespace(s.NS)
			u := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "v1", "kind": "ConfigMap",
				"metadata": map[string]any{"name": "a", "labels": map[string]any{"extra": "label"},
					"annotations": map[string]any{lastAppliedKey: `{"kind":"ConfigMap"}`}},
				"data": map[string]any{"key": "theirs", "extra": "theirs"},
			}}
			var err error
			if operation == "apply" {
				_, err = client.Apply(t.Context(), "a", u, metav1.ApplyOptions{FieldManager: manager})
			} else {
				_, err = client.Create(t.Context(), u, metav1.CreateOptions{FieldManager: manager})
			}
			if err != nil {
				t.Fatal(err)
			}
			// Without it a field is in conflict, and what is not set stays.
			s.Apply(clitest.ConfigMap("a")).Want(t, 1).Prints(t, "conflict", manager, "--take-over-managers")
			// What a preview shows is what then happens.
			s.Preview(clitest.ConfigMap("a"), "--take-over-from=other,"+manager).Want(t, 0).Did(t, "ConfigMap", "a", plan.Configured)
			s.Apply(clitest.ConfigMap("a"), "--take-over-from=other,"+manager).Want(t, 0).Did(t, "ConfigMap", "a", plan.Configured)

			live := s.ConfigMap("a")
			data, _, _ := unstructured.NestedStringMap(live.Object, "data")
			if len(data) != 1 || data["key"] != "value" || live.GetLabels()["extra"] != "" || live.GetAnnotations()[lastAppliedKey] != "" {
				t.Errorf("it is left with %v, %v, %v", data, live.GetLabels(), live.GetAnnotations())
			}
			if takeover.Manages(live, []string{manager}) {
				t.Errorf("%s still owns fields: %v", manager, live.GetManagedFields())
			}
			// Nothing is left to be done.
			s.Apply(clitest.ConfigMap("a"), "--take-over-from=other,"+manager).Want(t, 0).Did(t, "ConfigMap", "a", plan.Unchanged)
		})
	}
}

const lastAppliedKey = "kubectl.kubernetes.io/last-applied-configuration"

func TestTakeOverLosesARaceAndTriesAgain(t *testing.T) {
	s := clitest.New(t)
	client := s.Resources("v1/configmaps").Namespace(s.NS)
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": "a"}, "data": map[string]any{"key": "theirs", "extra": "theirs"}}}
	if _, err := client.Create(t.Context(), u, metav1.CreateOptions{FieldManager: "OpenAPI-Generator"}); err != nil {
		t.Fatal(err)
	}
	p := s.Proxied()
	var once sync.Once
	p.Intercept(func(r clustertest.Request) clustertest.Action {
		if r.Method == http.MethodPatch && strings.HasSuffix(r.Path, "/configmaps/a") {
			once.Do(func() { // just before it arrives
				_, _ = client.Patch(context.Background(), "a", types.MergePatchType, []byte(`{"data":{"late":"theirs"}}`), metav1.PatchOptions{FieldManager: "OpenAPI-Generator"})
			})
		}
		return clustertest.Action{}
	})
	s.Apply(clitest.ConfigMap("a"), "--take-over-from=OpenAPI-Generator").Want(t, 0)
	data, _, _ := unstructured.NestedStringMap(s.ConfigMap("a").Object, "data")
	if len(data) != 1 || data["key"] != "value" {
		t.Errorf("it is left with %v", data)
	}
}

// The take-over is stored before the apply: nobody is told that nothing was changed.
func TestTakeOverWhoseApplyIsRefused(t *testing.T) {
	s := clitest.New(t)
	s.Create("v1/configmaps", clitest.ConfigMapOf("a", "{key: theirs}"))
	const note = "(the fields of tester are taken over already)"
	s.PatchAs("tester", "v1/configmaps", "a", `{"data":{"other":"theirs"}}`)
	var writes atomic.Int32
	refused := int32(1)
	s.Proxied().Intercept(func(r clustertest.Request) clustertest.Action {
		if r.Method != http.MethodPatch || r.DryRun || !strings.HasSuffix(r.Path, "/configmaps/a") || writes.Add(1) < refused {
			return clustertest.Action{}
		}
		return clustertest.Action{Status: http.StatusUnprocessableEntity, Message: "no"}
	})
	for _, refused = range []int32{1, 2} {
		writes.Store(0)
		got := s.Apply(clitest.ConfigMap("a"), "--take-over-from=tester", "--inventory-policy=adopt-all", "--force-conflicts").Want(t, 1)
		o := got.Did(t, "ConfigMap", "a", plan.Failed)
		if taken := refused == 2; o.Unknown != taken || strings.HasSuffix(o.Error, note) != taken {
			t.Errorf("refused at write %d: unknown %t, %s", refused, o.Unknown, o.Error)
		}
		if members := s.Members(); len(members) != 0 {
			t.Errorf("the inventory holds %v", members)
		}
	}
}

// What somebody changed by hand in a list that is merged by key, then taken
// over: the preview shows what the apply does.
func TestPreviewOfATakeOverOfLists(t *testing.T) {
	service := "apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: \"{ns}\"}\nspec: {selector: {app: web}, ports: [{name: http, port: 80, targetPort: 8080}]}\n"
	unnamed := strings.Replace(service, "name: http, ", "", 1)
	web := strings.TrimSuffix(clitest.Deployment("web", 1, "1m"), "\n") + "\n" + `        ports: [{name: http, containerPort: 8080}]
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
			s := clitest.New(t)
			s.Apply(test.text, "--wait=applied").Want(t, 0)
			s.PatchAs("kubectl-patch", test.resource, "web", test.patch)
			s.Eventually("the controller has seen the change", func() bool {
				live := s.Live(test.resource, s.NS, "web")
				seen, _, _ := unstructured.NestedInt64(live.Object, "status", "observedGeneration")
				return seen == live.GetGeneration() || test.resource == "v1/services"
			})
			changed := strings.Replace(test.text, "metadata:\n  name: web\n", "metadata:\n  name: web\n  labels: {a: b}\n", 1)
			kind := map[string]string{"v1/services": "Service", "apps/v1/deployments": "Deployment"}[test.resource]
			before := s.Preview(changed, "--take-over-from=kubectl-patch").Want(t, 0)
			shown := before.Did(t, kind, "web", plan.Configured)
			if shown.Verified != "server (as an update, with the fields taken over)" {
				t.Errorf("it was verified by %q", shown.Verified)
			}
			after := s.Apply(changed, "--take-over-from=kubectl-patch", "--wait=applied").Want(t, 0).Did(t, kind, "web", plan.Configured)
			controllers := func(c diff.Change) bool { return strings.Contains(c.Path, "deployment.kubernetes.io/") }
			a, b := slices.DeleteFunc(shown.Changes, controllers), slices.DeleteFunc(after.Changes, controllers)
			if !reflect.DeepEqual(a, b) {
				t.Errorf("the preview shows %v\nthe apply did %v", a, b)
			}
			live := s.Live(test.resource, s.NS, "web")
			fresh := s.Parsed(test.text)
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
	s := clitest.New(t)
	s.Apply(clitest.ConfigMapOf("web", "{a: \"1\"}")).Want(t, 0)
	s.PatchAs("kubectl-patch", "v1/configmaps", "web", `{"data":{"b":"2"}}`)
	s.PatchAs("third", "v1/configmaps", "web", `{"data":{"a":"3"}}`)
	for _, run := range []func(string, ...string) clitest.Outcome{s.Preview, s.Apply} {
		run(clitest.ConfigMapOf("web", "{a: \"1\"}"), "--take-over-from=kubectl-patch").Want(t, 1).
			Prints(t, "conflict", "third", ".data.a").Did(t, "ConfigMap", "web", plan.Failed)
	}
}
