package ready

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"brine/bundle/bundletest"
	"brine/bundle/cluster/clustertest"
)

// real is a namespace of a running cluster.
type real struct {
	t         *testing.T
	client    dynamic.Interface
	raw       rest.Interface
	namespace string
}

func onCluster(t *testing.T) *real {
	t.Helper()
	c := clustertest.Shared(t)
	config := c.Config(t)
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	raw, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	return &real{t: t, client: c.Dynamic(t), raw: raw, namespace: c.Namespace(t)}
}

// resource is where objects of a kind are; the plurals of those that a test or
// a Diagnosis uses are regular.
func (r *real) resource(gvk schema.GroupVersionKind, namespace string) dynamic.ResourceInterface {
	plural := strings.ToLower(gvk.Kind) + "s"
	if strings.HasSuffix(plural, "ss") && gvk.Kind == "StorageClass" {
		plural = "storageclasses"
	}
	all := r.client.Resource(gvk.GroupVersion().WithResource(plural))
	if namespace == "" {
		return all
	}
	return all.Namespace(namespace)
}

func (r *real) reader() Reader {
	return Reader{
		Get: func(ctx context.Context, gvk schema.GroupVersionKind, namespace, name string) (*unstructured.Unstructured, error) {
			return r.resource(gvk, namespace).Get(ctx, name, metav1.GetOptions{})
		},
		List: func(ctx context.Context, gvk schema.GroupVersionKind, namespace, labelSelector, fieldSelector string) ([]unstructured.Unstructured, error) {
			list, err := r.resource(gvk, namespace).List(ctx, metav1.ListOptions{LabelSelector: labelSelector, FieldSelector: fieldSelector})
			if err != nil {
				return nil, err
			}
			return list.Items, nil
		},
		Logs: func(ctx context.Context, namespace, pod, container string, previous bool, tail int64) (string, error) {
			text, err := r.raw.Get().AbsPath("/api/v1/namespaces", namespace, "pods", pod, "log").Param("container", container).
				Param("previous", strconv.FormatBool(previous)).Param("tailLines", strconv.FormatInt(tail, 10)).DoRaw(ctx)
			return string(text), err
		},
	}
}

// make creates an object in the test's namespace, or without one if it is shown.
func (r *real) make(text string, scoped ...bool) *unstructured.Unstructured {
	r.t.Helper()
	u := bundletest.Object(r.t, strings.ReplaceAll(text, "NAMESPACE", r.namespace))
	namespace := r.namespace
	if len(scoped) > 0 {
		namespace = ""
	}
	made, err := r.resource(u.GroupVersionKind(), namespace).Create(r.t.Context(), u, metav1.CreateOptions{})
	if err != nil {
		r.t.Fatalf("create %s: %v", u.GetKind(), err)
	}
	if namespace == "" {
		r.t.Cleanup(func() {
			_ = r.resource(u.GroupVersionKind(), "").Delete(context.Background(), u.GetName(), metav1.DeleteOptions{})
		})
	}
	return made
}

// until reads the object until ok likes it; a cluster that is slow is no
// failure, so the limit is far away.
func (r *real) until(u *unstructured.Unstructured, what string, ok func(*unstructured.Unstructured) bool) *unstructured.Unstructured {
	r.t.Helper()
	var last *unstructured.Unstructured
	for range 600 {
		got, err := r.resource(u.GroupVersionKind(), u.GetNamespace()).Get(r.t.Context(), u.GetName(), metav1.GetOptions{})
		if err == nil {
			if last = got; ok(got) {
				return got
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
	r.t.Fatalf("%s %s never %s; its status is %v", u.GetKind(), u.GetName(), what, last.Object["status"])
	return nil
}

// why diagnoses one object until the lines hold what is wanted of them: some of
// it, the events above all, comes a moment later.
func (r *real) why(u *unstructured.Unstructured, want ...string) {
	r.t.Helper()
	var lines []string
	for range 300 {
		got, err := r.resource(u.GroupVersionKind(), u.GetNamespace()).Get(r.t.Context(), u.GetName(), metav1.GetOptions{})
		if err != nil {
			r.t.Fatal(err)
		}
		lines = nil
		for _, of := range NewDiagnosis(r.reader()).Explain(r.t.Context(), []*unstructured.Unstructured{got}) {
			lines = of
		}
		if inOrder(lines, want) {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	r.t.Errorf("got\n  %s\nwant, in this order, lines with\n  %s", strings.Join(lines, "\n  "), strings.Join(want, "\n  "))
}

func inOrder(lines, want []string) bool {
	for _, w := range want {
		at := slices.IndexFunc(lines, func(line string) bool { return strings.Contains(line, w) })
		if at < 0 {
			return false
		}
		lines = lines[at+1:]
	}
	return true
}

func deploymentText(name, stage, more string) string {
	return fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s}
spec:
  replicas: 2
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}, annotations: {brine.dev/test-stage: %[2]q}}
    spec:
      containers: [{name: app, image: "registry.example.com/app:1"}]
      %[3]s
`, name, stage, more)
}

func TestRealWorkloads(t *testing.T) {
	r := onCluster(t)
	state := func(want State) func(*unstructured.Unstructured) bool {
		return func(u *unstructured.Unstructured) bool { return Of(u, nil, Hints{}).State == want }
	}
	const job = `{apiVersion: batch/v1, kind: Job, metadata: {name: %s}, spec: {backoffLimit: 0, suspend: %s, template: {metadata: {annotations: {brine.dev/test-stage: %q}}, spec: {restartPolicy: Never, containers: [{name: app, image: x}]}}}}`
	good := r.make(deploymentText("good", "", ""))
	if got := Of(good, nil, Hints{}); got.State != NotReady {
		t.Errorf("a Deployment as it was just created: %+v", got)
	}
	set := r.make(`{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db}, spec: {replicas: 2, serviceName: db, selector: {matchLabels: {app: db}}, template: {metadata: {labels: {app: db}}, spec: {containers: [{name: db, image: x}]}}, volumeClaimTemplates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]}}`)
	daemons := r.make(`{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: agent}, spec: {selector: {matchLabels: {app: agent}}, template: {metadata: {labels: {app: agent}}, spec: {containers: [{name: a, image: x}]}}}}`)
	done := r.make(fmt.Sprintf(job, "done", "false", ""))
	broken := r.make(fmt.Sprintf(job, "broken", "false", "fail"))
	held := r.make(fmt.Sprintf(job, "held", "true", ""))
	claim := r.make(`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: at-once}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}`)
	late := r.make(`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: late}, spec: {storageClassName: wait-first-consumer, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}`)

	for _, u := range []*unstructured.Unstructured{good, set, daemons, done, held, claim} {
		r.until(u, "got ready", state(Ready))
	}
	r.until(broken, "failed", state(Failed))
	r.why(broken, "True BackoffLimitExceeded: ", "container app: terminated, exit code 1 (Error)")

	pending := r.until(late, "was pending", func(u *unstructured.Unstructured) bool { return object{u.Object}.text("status", "phase") == "Pending" })
	hints := Hints{WaitsForConsumer: func(class string) bool { return class == "wait-first-consumer" }}
	if got := Of(pending, nil, hints); got.State != Ready {
		t.Errorf("a claim that waits for its first consumer: %+v", got)
	}
}

func TestRealCauses(t *testing.T) {
	for _, test := range []struct {
		name, object string
		before       []string
		want         []string
	}{
		{
			name:   "unschedulable",
			object: deploymentText("web", "", "nodeSelector: {no: such}"),
			want:   []string{"Deployment: Available=False", "PodScheduled=False Unschedulable: 0/3 nodes are available", "and 1 more pod with the same cause"},
		},
		{
			name:   "no image",
			object: deploymentText("web", "image-pull-error", ""),
			want:   []string{"Deployment: Available=False", "container app: waiting ImagePullBackOff: Back-off pulling image", "and 1 more pod", "event Warning BackOff"},
		},
		{
			name:   "crash loop",
			object: deploymentText("web", "crash-loop", ""),
			want:   []string{"Deployment: Available=False", "container app: waiting CrashLoopBackOff: back-off 40s restarting failed container=app, last exit code 1 (Error), restarted 3 times", "log app: "},
		},
		{
			name:   "quota",
			before: []string{`{apiVersion: v1, kind: ResourceQuota, metadata: {name: none}, spec: {hard: {pods: "0"}}}`},
			object: deploymentText("web", "", ""),
			want:   []string{"ReplicaFailure=True FailedCreate: pods", "exceeded quota: none"},
		},
		{
			name:   "quota of a StatefulSet",
			before: []string{`{apiVersion: v1, kind: ResourceQuota, metadata: {name: none}, spec: {hard: {pods: "0"}}}`},
			object: `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db}, spec: {replicas: 1, serviceName: db, selector: {matchLabels: {app: db}}, template: {metadata: {labels: {app: db}}, spec: {containers: [{name: db, image: x}]}}}}`,
			want:   []string{"StatefulSet: Replicas: 0/1", "exceeded quota: none"},
		},
		{
			name:   "unbound claim of a pod",
			before: []string{`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data}, spec: {storageClassName: none, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}`},
			object: deploymentText("web", "", "volumes: [{name: d, persistentVolumeClaim: {claimName: data}}]"),
			want:   []string{"PodScheduled=False Unschedulable", `PersistentVolumeClaim data: not bound: StorageClass "none"`, "StorageClass none does not exist", "event Warning ProvisioningFailed"},
		},
		{
			name:   "unbound claim",
			object: `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data}, spec: {storageClassName: none, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}`,
			want:   []string{`PersistentVolumeClaim: not bound: StorageClass "none" has to provide its volume`, "StorageClass none does not exist", "event Warning ProvisioningFailed"},
		},
		{
			name:   "load balancer",
			object: `{apiVersion: v1, kind: Service, metadata: {name: lb}, spec: {type: LoadBalancer, ports: [{port: 80}]}}`,
			want:   []string{"Service: its load balancer has no address yet"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := onCluster(t)
			for _, text := range test.before {
				made := r.make(text)
				if made.GetKind() == "ResourceQuota" {
					r.until(made, "was counted", func(u *unstructured.Unstructured) bool { return object{u.Object}.field("status", "hard") != nil })
				}
			}
			r.why(r.make(test.object), test.want...)
		})
	}
}

func TestRealAPIServiceWithoutBackend(t *testing.T) {
	r := onCluster(t)
	const text = `{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1.NAMESPACE.example.com}, spec: {group: NAMESPACE.example.com, version: v1, groupPriorityMinimum: 100, versionPriority: 100, insecureSkipTLSVerify: true, service: {name: adapter, namespace: NAMESPACE}}}`
	api := r.make(text, true)
	r.why(api, "APIService: Available=False ServiceNotFound", "Service "+r.namespace+"/adapter does not exist")
	r.make(`{apiVersion: v1, kind: Service, metadata: {name: adapter}, spec: {selector: {app: adapter}, ports: [{port: 443}]}}`)
	r.why(api, "APIService: Available=False", "0 of 0 endpoints ready", "no Pod matches its selector app=adapter")
	r.make(deploymentText("adapter", "image-pull-error", ""))
	r.why(api, "APIService: Available=False", "endpoints ready", "waiting ImagePullBackOff")
}

func TestRealDefinitionAndNamespace(t *testing.T) {
	r := onCluster(t)
	group := r.namespace + ".example.com"
	text := fmt.Sprintf(`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: PLURAL.%[1]s}, spec: {group: %[1]s, scope: Namespaced, names: {plural: PLURAL, kind: Widget}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}}`, group)
	first := r.make(strings.ReplaceAll(text, "PLURAL", "widgets"), true)
	r.until(first, "was established", func(u *unstructured.Unstructured) bool { return Of(u, nil, Hints{}).State == Ready })
	second := r.make(strings.ReplaceAll(text, "PLURAL", "gadgets"), true)
	failed := r.until(second, "was refused", func(u *unstructured.Unstructured) bool { return Of(u, nil, Hints{}).State == Failed })
	if got := Of(failed, nil, Hints{}).Reason; !strings.HasPrefix(got, "NamesAccepted=False ") {
		t.Errorf("two CRDs of one kind: %s", got)
	}

	r.make(`{apiVersion: v1, kind: ConfigMap, metadata: {name: held, finalizers: [example.com/hold]}}`)
	namespaces := schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}
	if err := r.resource(namespaces, "").Delete(t.Context(), r.namespace, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	it := &unstructured.Unstructured{}
	it.SetGroupVersionKind(namespaces)
	it.SetName(r.namespace)
	r.until(it, "said what holds it", func(u *unstructured.Unstructured) bool {
		return strings.Contains(Of(u, nil, Hints{}).Reason, "example.com/hold in 1 resource instances")
	})
	patch := []byte(`[{"op": "remove", "path": "/metadata/finalizers"}]`)
	configMaps := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	if _, err := r.resource(configMaps, r.namespace).Patch(t.Context(), "held", "application/json-patch+json", patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}
