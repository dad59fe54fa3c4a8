package ready

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"brine/bundle"
	"brine/bundle/bundletest"
	"brine/bundle/remedy"
)

// listings are what a Diagnosis reads in a test: objects by hand.
type listings struct {
	objects []*unstructured.Unstructured
	logs    map[string]string // by "pod/container", "/previous" behind it
	refuse  string            // a kind that may not be read

	mu       sync.Mutex
	requests []string
}

func (l *listings) asked(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.requests = append(l.requests, fmt.Sprintf(format, args...))
}

func (l *listings) reader() Reader {
	return Reader{
		Commands: remedy.ForCluster("--context=prod"),
		Get: func(_ context.Context, gvk schema.GroupVersionKind, namespace, name string) (*unstructured.Unstructured, error) {
			l.asked("GET %s %s", gvk.Kind, name)
			for _, u := range l.objects {
				if u.GetKind() == gvk.Kind && u.GetNamespace() == namespace && u.GetName() == name {
					return u, nil
				}
			}
			return nil, nil
		},
		List: func(_ context.Context, gvk schema.GroupVersionKind, namespace, labelSelector, field string) ([]unstructured.Unstructured, error) {
			l.asked("LIST %s %s", gvk.Kind, namespace)
			if gvk.Kind == l.refuse {
				return nil, errors.New("forbidden: user nobody cannot list them")
			}
			wanted, err := labels.Parse(labelSelector)
			if err != nil {
				return nil, err
			}
			var found []unstructured.Unstructured
			for _, u := range l.objects {
				if u.GetKind() == gvk.Kind && u.GetNamespace() == namespace && wanted.Matches(labels.Set(u.GetLabels())) && matches(u, field) {
					found = append(found, *u)
				}
			}
			return found, nil
		},
		Logs: func(_ context.Context, _, pod, container string, previous bool, _ int64) (string, error) {
			l.asked("LOG %s", pod)
			key := pod + "/" + container
			if previous {
				key += "/previous"
			}
			text, ok := l.logs[key]
			if !ok {
				return "", errors.New("no such log")
			}
			return text, nil
		},
	}
}

// matches knows the field selectors that a Diagnosis uses.
func matches(u *unstructured.Unstructured, field string) bool {
	o := object{u.Object}
	uid, byUID := strings.CutPrefix(field, "involvedObject.uid=")
	switch {
	case field == "":
		return true
	case field == "type!=Normal":
		return o.text("type") != "Normal"
	case field == "status.phase!=Succeeded":
		return o.text("status", "phase") != "Succeeded"
	case byUID:
		return o.text("involvedObject", "uid") == uid
	}
	panic("a field selector that the test does not know: " + field)
}

const (
	web   = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: prod, uid: web, generation: 1}, spec: {replicas: 3, selector: {matchLabels: {app: web}}}, status: {observedGeneration: 1, replicas: 3, updatedReplicas: 3, conditions: [{type: Available, status: "False", reason: MinimumReplicasUnavailable, message: Deployment does not have minimum availability.}, {type: Progressing, status: "True", reason: ReplicaSetUpdated}]}}`
	webRS = `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: web-2, namespace: prod, uid: web-2, labels: {app: web}, annotations: {deployment.kubernetes.io/revision: "2"}, ownerReferences: [{kind: Deployment, name: web, uid: web}]}, status: {}}`
	oldRS = `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: web-1, namespace: prod, uid: web-1, labels: {app: web}, annotations: {deployment.kubernetes.io/revision: "1"}, ownerReferences: [{kind: Deployment, name: web, uid: web}]}, status: {conditions: [{type: ReplicaFailure, status: "True", message: of long ago}]}}`
)

// podOf is a pod that a controller made.
func podOf(name, owner, status string) string {
	return `{apiVersion: v1, kind: Pod, metadata: {name: ` + name + `, namespace: prod, uid: ` + name + `, labels: {app: web}, ownerReferences: [{uid: ` + owner + `}]}, spec: {nodeName: node-1}, status: ` + status + `}`
}

func eventOf(kind, name, level, reason, at, message string) string {
	return fmt.Sprintf(`{apiVersion: v1, kind: Event, metadata: {name: e, namespace: prod}, type: %s, reason: %s, count: 3, lastTimestamp: "2025-01-01T%sZ", involvedObject: {kind: %s, name: %s, namespace: prod, uid: %s}, message: %q}`, level, reason, at, kind, name, name, message)
}

func TestWhy(t *testing.T) {
	const (
		pulling   = `{phase: Pending, containerStatuses: [{name: app, state: {waiting: {reason: ImagePullBackOff, message: 'Back-off pulling image "x:1"'}}}]}`
		crashing  = `{phase: Running, conditions: [{type: Ready, status: "False"}], containerStatuses: [{name: app, restartCount: 4, state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 1, reason: Error}}}]}`
		homeless  = `{phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: '0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims.'}]}`
		mounting  = `{phase: Pending, conditions: [{type: Ready, status: "False", reason: ContainersNotReady}], containerStatuses: [{name: app, state: {waiting: {reason: ContainerCreating}}}]}`
		isReady   = `{phase: Running, conditions: [{type: Ready, status: "True"}]}`
		lostNode  = `{apiVersion: v1, kind: Node, metadata: {name: node-1}, status: {conditions: [{type: MemoryPressure, status: Unknown}, {type: Ready, status: Unknown, reason: NodeStatusUnknown, message: Kubelet stopped posting node status.}]}}`
		soundNode = `{apiVersion: v1, kind: Node, metadata: {name: node-1}, status: {conditions: [{type: MemoryPressure, status: "False"}, {type: Ready, status: "True"}]}}`
		webLine   = "Deployment: Available=False MinimumReplicasUnavailable: Deployment does not have minimum availability."
	)
	for _, test := range []struct {
		name     string
		late     string
		others   []string
		logs     map[string]string
		refuse   string
		want     []string
		requests []string
	}{
		{
			name: "pods without an image, shown once, and the event only where it says more",
			late: web,
			others: []string{
				oldRS, webRS, podOf("web-1-z", "web-1", isReady), podOf("web-2-a", "web-2", pulling), podOf("web-2-b", "web-2", pulling), podOf("web-2-c", "web-2", pulling), podOf("other", "somebody", crashing),
				eventOf("Pod", "web-2-a", "Warning", "BackOff", "00:00:48", `Back-off pulling image "x:1"`),
				eventOf("Pod", "web-2-a", "Warning", "Failed", "00:00:50", `Failed to pull image "x:1": not found`),
				eventOf("Pod", "web-2-a", "Normal", "Scheduled", "00:00:58", "Successfully assigned"),
				eventOf("Pod", "other", "Warning", "Failed", "00:00:59", "somebody else's"),
			},
			want: []string{
				webLine,
				`Pod web-2-a: container app: waiting ImagePullBackOff: Back-off pulling image "x:1"`,
				"and 2 more pods with the same cause as web-2-a",
				`event Warning Failed 10 s ago, 3 times: Failed to pull image "x:1": not found`,
			},
			requests: []string{"LIST Event prod", "LIST Pod prod", "LIST ReplicaSet prod"},
		},
		{
			name:   "a crash, with what was written before it",
			late:   web,
			others: []string{webRS, podOf("web-2-a", "web-2", crashing), podOf("web-2-b", "web-2", crashing)},
			logs:   map[string]string{"web-2-a/app/previous": "\x1b[31mstarting\x1b[0m\n\npanic:\tno configuration\x07\n"},
			want: []string{
				webLine,
				"Pod web-2-a: container app: waiting CrashLoopBackOff, last exit code 1 (Error), restarted 4 times",
				"and 1 more pod with the same cause as web-2-a",
				"log app: starting",
				"log app: panic: no configuration",
			},
			requests: []string{"LIST Event prod", "LIST Event prod", "LIST Pod prod", "LIST ReplicaSet prod", "LOG web-2-a"},
		},
		{
			name:   "the last 20 lines of a log, and no line without end",
			late:   strings.Replace(podOf("web-2-a", "x", crashing), "nodeName", "was", 1),
			logs:   map[string]string{"web-2-a/app": strings.Repeat("early\n", 30) + strings.Repeat("late\n", 19) + strings.Repeat("x", 600)},
			others: nil,
			want: append(append([]string{"Pod: container app: waiting CrashLoopBackOff, last exit code 1 (Error), restarted 4 times"},
				slices.Repeat([]string{"log app: late"}, 19)...), "log app: "+strings.Repeat("x", 500)+"…"),
		},
		{
			name:   "a quota's denial, once",
			late:   strings.Replace(web, "conditions: [", `conditions: [{type: ReplicaFailure, status: "True", reason: FailedCreate, message: 'exceeded quota: small'}, `, 1),
			others: []string{strings.Replace(webRS, "status: {}", `status: {conditions: [{type: ReplicaFailure, status: "True", reason: FailedCreate, message: 'exceeded quota: small'}]}`, 1)},
			want:   []string{"Deployment: ReplicaFailure=True FailedCreate: exceeded quota: small", webLine},
		},
		{
			name: "a StatefulSet whose pods are denied tells it by event alone",
			late: `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db, namespace: prod, uid: db, generation: 1}, spec: {replicas: 1}, status: {observedGeneration: 1}}`,
			others: []string{
				eventOf("StatefulSet", "db", "Warning", "FailedCreate", "00:00:00", "create Pod db-0 in StatefulSet db failed: violates PodSecurity"),
				strings.Replace(eventOf("StatefulSet", "db", "Warning", "FailedCreate", "00:00:00", "of an earlier one"), "uid: db", "uid: before", 1),
			},
			want: []string{"StatefulSet: Replicas: 0/1", "event Warning FailedCreate 60 s ago, 3 times: create Pod db-0 in StatefulSet db failed: violates PodSecurity"},
		},
		{
			name: "a pod's claim that nobody provides",
			late: web,
			others: []string{
				webRS,
				strings.Replace(podOf("web-2-a", "web-2", homeless), "spec: {", "spec: {volumes: [{name: a, emptyDir: {}}, {name: d, persistentVolumeClaim: {claimName: data}}, {name: e, persistentVolumeClaim: {claimName: none}}], ", 1),
				`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data, namespace: prod, uid: data}, spec: {storageClassName: fast}, status: {phase: Pending}}`,
				eventOf("PersistentVolumeClaim", "data", "Warning", "ProvisioningFailed", "00:00:59", `storageclass "fast" not found`),
			},
			want: []string{
				webLine,
				"Pod web-2-a: PodScheduled=False Unschedulable: 0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims.",
				`PersistentVolumeClaim data: not bound: StorageClass "fast" has to provide its volume`,
				"StorageClass fast does not exist",
				"PersistentVolumeClaim none does not exist",
				`event Warning ProvisioningFailed 1 s ago, 3 times: storageclass "fast" not found`,
			},
		},
		{
			name: "a claim whose provisioner is busy, by ordinary events",
			late: `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data, namespace: prod, uid: data}, spec: {storageClassName: fast}, status: {phase: Pending}}`,
			others: []string{
				`{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: fast}, provisioner: disks.example.com}`,
				eventOf("PersistentVolumeClaim", "data", "Normal", "ExternalProvisioning", "00:00:59", "Waiting for a volume to be created"),
			},
			want: []string{
				`PersistentVolumeClaim: not bound: StorageClass "fast" has to provide its volume`,
				"StorageClass fast: provisioner disks.example.com, volumeBindingMode Immediate",
				"event Normal ExternalProvisioning 1 s ago, 3 times: Waiting for a volume to be created",
			},
		},
		{
			name:   "a mount that fails on a sound node",
			late:   web,
			others: []string{webRS, soundNode, podOf("web-2-a", "web-2", mounting), eventOf("Pod", "web-2-a", "Warning", "FailedMount", "00:00:59", `configmap "settings" not found`)},
			want: []string{
				webLine, "Pod web-2-a: Ready=False ContainersNotReady", `event Warning FailedMount 1 s ago, 3 times: configmap "settings" not found`,
			},
		},
		{
			name:   "a node that does not answer",
			late:   web,
			others: []string{webRS, lostNode, podOf("web-2-a", "web-2", mounting)},
			want: []string{
				webLine, "Pod web-2-a: Ready=False ContainersNotReady",
				"Node node-1: Ready=Unknown NodeStatusUnknown: Kubelet stopped posting node status.",
			},
		},
		{
			name: "different causes, the worst first",
			late: web,
			others: []string{
				webRS, podOf("web-2-a", "web-2", homeless), podOf("web-2-b", "web-2", pulling), podOf("web-2-c", "web-2", isReady),
			},
			want: []string{
				webLine,
				`Pod web-2-b: container app: waiting ImagePullBackOff: Back-off pulling image "x:1"`,
				"Pod web-2-a: PodScheduled=False Unschedulable: 0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims.",
			},
		},
		{
			name:   "an APIService without its Service",
			late:   `{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1.a, uid: api}, spec: {service: {namespace: prod, name: adapter}}, status: {conditions: [{type: Available, status: "False", reason: ServiceNotFound, message: 'service/adapter in "n" is not present'}]}}`,
			others: nil,
			want:   []string{`APIService: Available=False ServiceNotFound: service/adapter in "n" is not present`, "Service prod/adapter does not exist"},
		},
		{
			name: "an APIService whose backend crashes",
			late: `{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1.a, uid: api}, spec: {service: {namespace: prod, name: adapter}}, status: {conditions: [{type: Available, status: "False", reason: MissingEndpoints, message: none}]}}`,
			others: []string{
				`{apiVersion: v1, kind: Service, metadata: {name: adapter, namespace: prod, uid: adapter}, spec: {selector: {app: web}}}`,
				`{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: adapter-1, namespace: prod, labels: {kubernetes.io/service-name: adapter}}, endpoints: [{conditions: {ready: false}}]}`,
				podOf("web-2-a", "web-2", pulling),
			},
			want: []string{
				"APIService: Available=False MissingEndpoints: none", "Service prod/adapter: 0 of 1 endpoints ready",
				`Pod web-2-a: container app: waiting ImagePullBackOff: Back-off pulling image "x:1"`,
			},
		},
		{
			name:   "an APIService whose Service selects nothing",
			late:   `{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1.a, uid: api}, spec: {service: {namespace: prod, name: adapter}}}`,
			others: []string{`{apiVersion: v1, kind: Service, metadata: {name: adapter, namespace: prod, uid: adapter}, spec: {selector: {tier: api, app: none}}}`},
			want: []string{
				"APIService: the API server has not tried to reach its service yet", "Service prod/adapter: 0 of 0 endpoints ready",
				"Service prod/adapter: no Pod matches its selector app=none,tier=api",
			},
		},
		{
			name: "a custom resource, by its conditions",
			late: `{apiVersion: example.com/v1, kind: Widget, metadata: {name: w, namespace: prod, uid: w}, status: {conditions: [{type: Synced, status: "True"}, {type: Degraded, status: "True", reason: Slow}, {type: Ready, status: "False", reason: Waiting, message: for its parts}]}}`,
			want: []string{"Widget: Degraded=True Slow", "Widget: Ready=False Waiting: for its parts"},
		},
		{
			name:   "what may not be read is shown, and nothing fails",
			late:   web,
			others: []string{webRS, podOf("web-2-a", "web-2", pulling)},
			refuse: "Pod",
			want:   []string{webLine, "cannot list Pods in namespace prod: forbidden: user nobody cannot list them"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := &listings{logs: test.logs, refuse: test.refuse}
			for _, text := range test.others {
				l.objects = append(l.objects, bundletest.Object(t, text))
			}
			d := NewDiagnosis(l.reader())
			d.now = func() time.Time { return time.Date(2025, 1, 1, 0, 1, 0, 0, time.UTC) }
			late := bundletest.Object(t, test.late)
			got := d.Explain(t.Context(), []*unstructured.Unstructured{nil, late})
			id := bundle.ID{GroupKind: late.GroupVersionKind().GroupKind(), Namespace: late.GetNamespace(), Name: late.GetName()}
			if !slices.Equal(got[id], test.want) {
				t.Errorf("got\n  %s\nwant\n  %s", strings.Join(got[id], "\n  "), strings.Join(test.want, "\n  "))
			}
			if slices.Sort(l.requests); test.requests != nil && !slices.Equal(l.requests, test.requests) {
				t.Errorf("asked for %v, want %v", l.requests, test.requests)
			}
		})
	}
}

func TestWhyReadsANamespaceOnce(t *testing.T) {
	const crashing = `{phase: Running, conditions: [{type: Ready, status: "False"}], containerStatuses: [{name: app, restartCount: 4, state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 1}}}]}`
	l := &listings{}
	var late []*unstructured.Unstructured
	for i := range 100 {
		name := fmt.Sprintf("web%02d", i)
		rename := strings.NewReplacer("web", name)
		late = append(late, bundletest.Object(t, rename.Replace(web)))
		l.objects = append(l.objects, bundletest.Object(t, rename.Replace(webRS)), bundletest.Object(t, podOf(name+"-2-a", name+"-2", crashing)))
	}
	l.objects = append(l.objects, bundletest.Object(t, eventOf("Pod", "web00-2-a", "Warning", "BackOff", "00:00:00", "x")))
	got := NewDiagnosis(l.reader()).Explain(t.Context(), late)
	lists, logs := 0, 0
	for _, r := range l.requests {
		switch {
		case strings.HasPrefix(r, "LIST"):
			lists++
		case strings.HasPrefix(r, "LOG"):
			logs++
		}
	}
	// Three lists for all, one of ordinary events for each of the first but the
	// one that has a warning; a log's second try for each, as none has one.
	if want := 3 + detailed - 1; lists != want || logs != 2*detailed {
		t.Errorf("%d lists, %d logs read; want %d and %d", lists, logs, want, 2*detailed)
	}
	last := got[bundle.ID{GroupKind: late[99].GroupVersionKind().GroupKind(), Namespace: "prod", Name: "web99"}]
	want := "log app: not read, because many objects are not ready; see kubectl logs web99-2-a --container app --namespace prod --previous --context=prod"
	if len(last) == 0 || last[len(last)-1] != want {
		t.Errorf("the last object is shown as\n  %s", strings.Join(last, "\n  "))
	}
}

func TestWhyWithoutAReader(t *testing.T) {
	got := NewDiagnosis(Reader{}).Explain(t.Context(), []*unstructured.Unstructured{bundletest.Object(t, web)})
	if len(got) != 1 {
		t.Errorf("got %v", got)
	}
	for _, lines := range got {
		if len(lines) != 1 {
			t.Errorf("got %v", lines)
		}
	}
}
