package ready

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"brine/bundle/bundletest"
)

// claimOf is a bound claim of one size that asks for another.
func claimOf(annotation, wants, has, status string) string {
	return `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a, annotations: {volume.kubernetes.io/` + annotation + `}}, spec: {volumeName: v, resources: {requests: {storage: "` + wants + `"}}},
  status: {phase: Bound, capacity: {storage: "` + has + `"}, ` + status + `}}`
}

func TestOf(t *testing.T) {
	lateClass := Hints{WaitsForConsumer: func(class string) bool { return class == "local-late" }}
	for _, test := range []struct {
		name   string
		object string
		want   State
		reason string // all of it
	}{
		{"a ConfigMap", `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}`, Ready, ""},
		{"a ClusterRole", `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: a}}`, Ready, ""},
		{"an Ingress without an address", `{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: a, generation: 1}, status: {loadBalancer: {}}}`, Ready, ""},
		{"a volume nobody claims", `{apiVersion: v1, kind: PersistentVolume, metadata: {name: a}, status: {phase: Available}}`, Ready, ""},
		{"a ConfigMap on its way out", `{apiVersion: v1, kind: ConfigMap, metadata: {name: a, deletionTimestamp: "2025-01-01T00:00:00Z", finalizers: [example.com/hold, foregroundDeletion]}}`,
			NotReady, "is being deleted, finalizers: example.com/hold, foregroundDeletion"},

		{"a CronJob", `{apiVersion: batch/v1, kind: CronJob, metadata: {name: a, generation: 1}, status: {}}`, Ready, ""},
		{"a Job nobody took up", `{apiVersion: batch/v1, kind: Job, metadata: {name: a, generation: 1}, spec: {}, status: {}}`, NotReady, "not started"},
		{"a running Job", `{apiVersion: batch/v1, kind: Job, metadata: {name: a, generation: 1}, spec: {completions: 3, parallelism: 2}, status: {startTime: "2025-01-01T00:00:00Z", active: 2, succeeded: 1, ready: 2}}`,
			NotReady, "running: 1 of 3 succeeded, 2 active, 0 failed"},
		{"a Job whose work is done and whose pods are ending", `{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {completions: 1}, status: {startTime: "2025-01-01T00:00:00Z", active: 0, succeeded: 1, conditions: [{type: SuccessCriteriaMet, status: "True", reason: CompletionsReached}]}}`,
			NotReady, "running: 1 of 1 succeeded, 0 active, 0 failed"},
		{"a complete Job", `{apiVersion: batch/v1, kind: Job, metadata: {name: a}, status: {succeeded: 1, conditions: [{type: SuccessCriteriaMet, status: "True"}, {type: Complete, status: "True", reason: CompletionsReached}]}}`, Ready, ""},
		{"a failed Job", `{apiVersion: batch/v1, kind: Job, metadata: {name: a}, status: {failed: 4, conditions: [{type: Failed, status: "True", reason: BackoffLimitExceeded, message: Job has reached the specified backoff limit}]}}`,
			Failed, "Failed=True BackoffLimitExceeded: Job has reached the specified backoff limit"},
		{"a Job about to fail", `{apiVersion: batch/v1, kind: Job, metadata: {name: a}, status: {failed: 1, conditions: [{type: FailureTarget, status: "True", reason: DeadlineExceeded, message: Job was active longer than specified deadline}]}}`,
			Failed, "FailureTarget=True DeadlineExceeded: Job was active longer than specified deadline"},
		{"a suspended Job", `{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {suspend: true}, status: {conditions: [{type: Suspended, status: "True", reason: JobSuspended}]}}`, Ready, "suspended"},
		{"a complete Job that its TTL removes", `{apiVersion: batch/v1, kind: Job, metadata: {name: a, deletionTimestamp: "2025-01-01T00:00:00Z", finalizers: [foregroundDeletion]}, spec: {ttlSecondsAfterFinished: 0}, status: {conditions: [{type: Complete, status: "True"}]}}`,
			Ready, "complete, removed after its ttlSecondsAfterFinished"},
		{"a running Job that is being deleted", `{apiVersion: batch/v1, kind: Job, metadata: {name: a, deletionTimestamp: "2025-01-01T00:00:00Z", finalizers: [orphan]}, spec: {ttlSecondsAfterFinished: 0}, status: {active: 1}}`,
			NotReady, "is being deleted, finalizers: orphan"},

		{"a bound claim", `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a}, spec: {storageClassName: local-late, volumeName: v}, status: {phase: Bound}}`, Ready, ""},
		{"a bound claim that cannot grow", `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a}, spec: {volumeName: v}, status: {phase: Bound, conditions: [{type: Resizing, status: "True"}, {type: ControllerResizeError, status: "True", message: quota}]}}`,
			NotReady, "ControllerResizeError=True: quota"},
		{"a bound claim that grows when a pod starts", `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a}, spec: {volumeName: v}, status: {phase: Bound, conditions: [{type: FileSystemResizePending, status: "True"}, {type: NodeResizeError, status: "False"}]}}`, Ready, ""},
		{"a bound claim that is to grow, before the resizer has tried", claimOf(`storage-provisioner: csi`, "2Gi", "1Gi", ``), NotReady, "has 1Gi of the 2Gi that it asks for"},
		{"a bound claim that is growing", claimOf(`storage-provisioner: csi`, "2Gi", "1Gi", `conditions: [{type: Resizing, status: "True"}]`), NotReady, "has 1Gi of the 2Gi that it asks for"},
		{"a bound claim that has grown", claimOf(`storage-provisioner: csi`, "2Gi", "2147483648", ``), Ready, ""},
		{"a bound claim that grows further when a pod starts", claimOf(`storage-provisioner: csi`, "2Gi", "1Gi", `allocatedResourceStatuses: {storage: NodeResizePending}`), Ready, ""},
		{"a bound claim of before that grows when a pod starts", claimOf(`storage-provisioner: csi`, "2Gi", "1Gi", `conditions: [{type: FileSystemResizePending, status: "True"}]`), Ready, ""},
		{"a claim bound to a smaller volume by hand", claimOf(`bind-completed: "yes"`, "2Gi", "1Gi", ``), Ready, ""},
		{"a bound claim of an unreadable size", claimOf(`storage-provisioner: csi`, "2Gi", "much", ``), Ready, ""},
		{"a claim for its first consumer", `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a}, spec: {storageClassName: local-late}, status: {phase: Pending}}`, Ready, "waits for its first consumer"},
		{"a claim whose consumer has come", `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a, annotations: {volume.kubernetes.io/selected-node: node-1}}, spec: {storageClassName: local-late}, status: {phase: Pending}}`,
			NotReady, `not bound: StorageClass "local-late" is to provide its volume for node node-1`},
		{"a claim of a class that binds at once", `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a}, spec: {storageClassName: fast}, status: {phase: Pending}}`, NotReady, `not bound: StorageClass "fast" has to provide its volume`},
		{"a claim for one volume", `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a}, spec: {storageClassName: local-late, volumeName: v1}, status: {phase: Pending}}`, NotReady, "not bound: reserved for PersistentVolume v1"},
		{"a claim of no class", `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a}, spec: {}, status: {}}`, NotReady, "not bound: it has no StorageClass, and waits for a matching PersistentVolume"},
		{"a claim whose volume is lost", `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a}, spec: {volumeName: v1}, status: {phase: Lost}}`, Failed, "Lost: its volume v1 does not exist any more"},

		{"a new CRD", `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: a.b}, status: {conditions: []}}`, NotReady, "not yet established"},
		{"a CRD being installed", `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: a.b}, status: {conditions: [{type: NamesAccepted, status: "True", reason: NoConflicts}, {type: Established, status: "False", reason: Installing, message: the initial names have been accepted}]}}`,
			NotReady, "Established=False Installing: the initial names have been accepted"},
		{"an established CRD", `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: a.b}, status: {conditions: [{type: NamesAccepted, status: "True"}, {type: Established, status: "True"}]}}`, Ready, ""},
		{"an established CRD whose new names nobody has looked at", `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: a.b}, status: {conditions: [{type: Established, status: "True"}]}}`, NotReady, "its names are not yet accepted"},
		{"a CRD whose names are taken", `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: a.b}, status: {conditions: [{type: Established, status: "True"}, {type: NamesAccepted, status: "False", reason: PluralConflict, message: '"as" is already in use'}]}}`,
			Failed, `NamesAccepted=False PluralConflict: "as" is already in use`},

		{"an APIService nobody tried", `{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1.a}, spec: {service: {name: s, namespace: prod}}}`, NotReady, "the API server has not tried to reach its service yet"},
		{"an APIService without endpoints", `{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1.a}, spec: {service: {name: s, namespace: prod}}, status: {conditions: [{type: Available, status: "False", reason: MissingEndpoints, message: 'endpoints for service/s in "n" have no addresses with port name "https"'}]}}`,
			NotReady, `Available=False MissingEndpoints: endpoints for service/s in "n" have no addresses with port name "https"`},
		{"an available APIService", `{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1.a}, spec: {service: {name: s, namespace: prod}}, status: {conditions: [{type: Available, status: "True", reason: Passed}]}}`, Ready, ""},
		{"a local APIService", `{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1.a}, spec: {}}`, Ready, ""},

		{"a Namespace", `{apiVersion: v1, kind: Namespace, metadata: {name: a}, spec: {finalizers: [kubernetes]}, status: {phase: Active}}`, Ready, ""},
		{"a Namespace that cannot go", `{apiVersion: v1, kind: Namespace, metadata: {name: a, deletionTimestamp: "2025-01-01T00:00:00Z"}, spec: {finalizers: [kubernetes]}, status: {phase: Terminating, conditions: [{type: NamespaceDeletionDiscoveryFailure, status: "True", reason: DiscoveryFailed, message: "Discovery failed for some groups,\n1 failing"}, {type: NamespaceContentRemaining, status: "False"}]}}`,
			NotReady, "is being deleted; NamespaceDeletionDiscoveryFailure=True DiscoveryFailed: Discovery failed for some groups, 1 failing"},

		{"a Service of ClusterIP", `{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {type: ClusterIP, clusterIP: 10.0.0.1}, status: {loadBalancer: {}}}`, Ready, ""},
		{"a Service of ExternalName", `{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {type: ExternalName, externalName: example.com}}`, Ready, ""},
		{"a load balancer without an address", `{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {type: LoadBalancer, clusterIP: 10.0.0.1}, status: {loadBalancer: {}}}`, NotReady, "its load balancer has no address yet"},
		{"a load balancer with an address", `{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {type: LoadBalancer, clusterIP: 10.0.0.1}, status: {loadBalancer: {ingress: [{ip: 192.0.2.1}]}}}`, Ready, ""},
		{"a load balancer by hand", `{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {type: LoadBalancer, clusterIP: 10.0.0.1, externalIPs: [192.0.2.1]}, status: {loadBalancer: {}}}`, Ready, ""},

		{"a budget for disruptions of an older generation", `{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: a, generation: 2}, status: {observedGeneration: 1}}`, NotReady, "its controller has not yet seen generation 2 (its status is of 1)"},
		{"a budget for disruptions", `{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: a, generation: 2}, status: {observedGeneration: 2, conditions: [{type: DisruptionAllowed, status: "False", reason: InsufficientPods}]}}`, Ready, ""},

		{"a custom resource without a status", `{apiVersion: example.com/v1, kind: Widget, metadata: {name: a, generation: 1}}`, Ready, ""},
		{"a Certificate being issued", `{apiVersion: cert-manager.io/v1, kind: Certificate, metadata: {name: a, generation: 1}, status: {conditions: [{type: Issuing, status: "True", observedGeneration: 1, reason: DoesNotExist, message: x}, {type: Ready, status: "False", observedGeneration: 1, reason: DoesNotExist, message: Issuing certificate as Secret does not exist}]}}`,
			NotReady, "Ready=False DoesNotExist: Issuing certificate as Secret does not exist"},
		{"a Certificate that is ready", `{apiVersion: cert-manager.io/v1, kind: Certificate, metadata: {name: a, generation: 1}, status: {conditions: [{type: Ready, status: "True", observedGeneration: 1, reason: Ready}]}}`, Ready, ""},
		{"a Certificate that was ready before it changed", `{apiVersion: cert-manager.io/v1, kind: Certificate, metadata: {name: a, generation: 2}, status: {conditions: [{type: Ready, status: "True", observedGeneration: 1, reason: Ready}]}}`,
			NotReady, "its controller has not yet seen generation 2 (condition Ready is of 1)"},
		{"a Cluster of Cluster API that is under way", `{apiVersion: cluster.x-k8s.io/v1beta2, kind: Cluster, metadata: {name: a, generation: 1}, status: {observedGeneration: 1, phase: Provisioning, conditions: [{type: Available, status: "False", reason: NotAvailable}, {type: Paused, status: "False", reason: NotPaused}]}}`,
			NotReady, "Available=False NotAvailable"},
		{"one that is paused", `{apiVersion: cluster.x-k8s.io/v1beta2, kind: Cluster, metadata: {name: a, generation: 1}, status: {observedGeneration: 1, conditions: [{type: Available, status: "False", reason: NotAvailable}, {type: Paused, status: "True", reason: Paused}]}}`, Ready, ""},
		{"one whose reason says that it is not suspended", `{apiVersion: example.com/v1, kind: Widget, metadata: {name: a, generation: 1}, status: {observedGeneration: 1, conditions: [{type: Active, status: "True", reason: NotSuspended}, {type: Available, status: "False"}]}}`, NotReady, "Available=False"},
		{"a custom resource that is stalled", `{apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, metadata: {name: a, generation: 1}, status: {observedGeneration: 1, conditions: [{type: Stalled, status: "True", reason: InvalidURL, message: bad URL}, {type: Ready, status: "False", reason: InvalidURL, message: bad URL}]}}`,
			Failed, "Stalled=True InvalidURL: bad URL"},
		{"a custom resource being reconciled", `{apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, metadata: {name: a, generation: 1}, status: {observedGeneration: 1, conditions: [{type: Ready, status: "True"}, {type: Reconciling, status: "True", reason: NewRevision, message: building}]}}`,
			NotReady, "Reconciling=True NewRevision: building"},
		{"a custom resource of an older generation", `{apiVersion: example.com/v1, kind: Widget, metadata: {name: a, generation: 3}, status: {observedGeneration: 2, conditions: [{type: Ready, status: "True"}]}}`, NotReady, "its controller has not yet seen generation 3 (its status is of 2)"},
		{"a custom resource with a status of its own shape", `{apiVersion: example.com/v1, kind: Widget, metadata: {name: a, generation: 3}, status: {observedGeneration: new, conditions: {Ready: yes}}}`, Ready, ""},
		{"a custom resource whose status is a word", `{apiVersion: example.com/v1, kind: Widget, metadata: {name: a}, status: fine}`, Ready, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := Of(bundletest.Object(t, test.object), nil, lateClass)
			got.Rule = ""                         // see TestRule
			got.Unseen, got.Unsaid = false, false // see TestUnseen
			if want := (Status{State: test.want, Reason: test.reason}); got != want {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
		})
	}
}

func TestOfNothing(t *testing.T) {
	if got, want := Of(nil, nil, Hints{}), (Status{State: NotReady, Reason: "does not exist", Gone: true}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := Of(&unstructured.Unstructured{}, nil, Hints{}); got.State != Ready {
		t.Errorf("an empty object: %+v", got)
	}
}

func TestDeleted(t *testing.T) {
	job := func(spec, conditions string) string {
		return `{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: ` + spec + `, status: {startTime: "2025-01-01T00:00:00Z", active: 1, conditions: ` + conditions + `}}`
	}
	for _, test := range []struct {
		name   string
		object string
		want   State
		reason string
	}{
		{"a complete Job by its TTL", job(`{ttlSecondsAfterFinished: 10}`, `[{type: Complete, status: "True"}]`), Ready, "complete, removed after its ttlSecondsAfterFinished"},
		{"a failed Job by its TTL", job(`{ttlSecondsAfterFinished: 10}`, `[{type: Failed, status: "True", reason: BackoffLimitExceeded}]`), Failed, "Failed=True BackoffLimitExceeded"},
		{"a Job whose end was not seen", job(`{ttlSecondsAfterFinished: 10}`, `[]`), Failed, "was deleted before its end was seen; it has ttlSecondsAfterFinished, so it may have finished"},
		{"a Job without a TTL", job(`{}`, `[{type: Complete, status: "True"}]`), Failed, "was deleted while it was waited for"},
		{"a Deployment", `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}}`, Failed, "was deleted while it was waited for"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := Deleted(bundletest.Object(t, test.object), nil)
			if want := (Status{State: test.want, Reason: test.reason, Gone: true}); got != want {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
		})
	}
	if got := Deleted(nil, nil); got.State != Failed || !got.Gone {
		t.Errorf("an object never seen: %+v", got)
	}
}

func TestWaits(t *testing.T) {
	rules := &Rules{readyWhen: &expression{}}
	for _, test := range []struct {
		gvk   string
		rules *Rules
		want  bool
	}{
		{"v1 ConfigMap", nil, false},
		{"v1 Secret", nil, false},
		{"v1 ServiceAccount", nil, false},
		{"v1 PersistentVolume", nil, false},
		{"rbac.authorization.k8s.io/v1 RoleBinding", nil, false},
		{"admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration", nil, false},
		{"batch/v1 CronJob", nil, false},
		{"v1 ConfigMap", &Rules{}, false},
		{"v1 ConfigMap", rules, true},
		{"v1 Namespace", nil, true},
		{"v1 Pod", nil, true},
		{"v1 Service", nil, true},
		{"apps/v1 Deployment", nil, true},
		{"batch/v1 Job", nil, true},
		{"example.com/v1 ConfigMap", nil, true},
	} {
		version, kind, _ := strings.Cut(test.gvk, " ")
		if got := Waits(schema.FromAPIVersionAndKind(version, kind), test.rules); got != test.want {
			t.Errorf("%s with rules %v: got %v", test.gvk, test.rules, got)
		}
	}
}

// A generation that is named says something only if it is that of now.
func TestSaysGeneration(t *testing.T) {
	for status, want := range map[string]bool{
		"{observedGeneration: 2}": true, "{observedGeneration: 1}": false, "{conditions: [{type: Ready, observedGeneration: 1}]}": false,
		"{conditions: [{type: Ready, observedGeneration: 1}, {type: Synced, observedGeneration: 2}]}": true, "{phase: ok}": false,
		"{parents: [{conditions: [{type: Accepted, observedGeneration: 2}]}]}": true,
	} {
		if got := SaysGeneration(bundletest.Object(t, "{apiVersion: example.com/v1, kind: Thing, metadata: {name: a, generation: 2}, status: "+status+"}")); got != want {
			t.Errorf("%s: %t", status, got)
		}
	}
}
