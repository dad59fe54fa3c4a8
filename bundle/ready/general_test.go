package ready

import (
	"slices"
	"testing"

	"brine/bundle/bundletest"
)

func TestSplit(t *testing.T) {
	for name, want := range map[string][]string{
		"ControlPlaneReady": {"control", "plane", "ready"}, "HEALTH_ERR": {"health", "err"}, "In-progress": {"in", "progress"},
		"EKSControlPlaneReady": {"eks", "control", "plane", "ready"}, "phase": {"phase"}, "": nil, "Waiting for Pods": {"waiting", "for", "pods"},
	} {
		if got := split(name); !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
}

// Bugs that were found with Argo's cases, and what the general rule leaves alone.
func TestOfDoubts(t *testing.T) {
	widget := func(more string) string {
		return `{apiVersion: example.com/v1, kind: Widget, metadata: {name: a, generation: 2}, ` + more + `}`
	}
	for _, test := range []struct {
		name, object string
		want         State
		reason       string
	}{
		{"observedGeneration as text", widget(`status: {observedGeneration: "1", phase: Healthy}`), NotReady, "its controller has not yet seen generation 2 (its status is of 1)"},
		{"observedGeneration is a hash", widget(`status: {observedGeneration: "8575574967"}`), Ready, ""},
		{"a condition of an older generation", widget(`status: {conditions: [{type: Accepted, status: "True", observedGeneration: 1}]}`), NotReady, "Accepted=True of generation 1, not 2"},
		{"a condition whose status is a boolean", widget(`status: {conditions: [{type: Ready, status: false, reason: R}]}`), NotReady, "Ready=False R"},
		{"the same, and it is true", widget(`status: {conditions: [{type: Ready, status: true}]}`), Ready, ""},
		{"one in lower case", widget(`status: {conditions: [{type: Ready, status: "false", reason: R}]}`), NotReady, "Ready=False R"},
		{"a fault in lower case", widget(`status: {conditions: [{type: Degraded, status: "true", reason: R}]}`), NotReady, "Degraded=True R"},
		{"a condition Ready that says nothing", widget(`status: {conditions: [{type: Ready, reason: R}]}`), NotReady, "Ready= R"},
		{"a condition named after what is wrong", widget(`status: {conditions: [{type: InvalidSpec, status: "True", reason: R}]}`), NotReady, "InvalidSpec=True R"},
		{"the same, and it is not", widget(`status: {conditions: [{type: InvalidSpec, status: "False"}]}`), Ready, ""},
		{"a word", widget(`status: {clusterStatus: ScalingUp}`), NotReady, "clusterStatus is ScalingUp"},
		{"it waits in a queue", widget(`status: {phase: Queued}`), NotReady, "phase is Queued"},
		{"it is lost", widget(`status: {phase: Lost}`), NotReady, "phase is Lost"},
		{"it is denied", widget(`status: {conditions: [{type: Denied, status: "True", reason: R}]}`), NotReady, "Denied=True R"},
		{"a word that lasts", widget(`status: {phase: Running}`), Ready, ""},
		{"a run that runs", `{apiVersion: example.com/v1, kind: TestRun, metadata: {name: a}, status: {phase: Running}}`, NotReady, "phase is Running"},
		{"a word one level down", widget(`status: {lastOperation: {state: Error}}`), NotReady, "lastOperation.state is Error"},
		{"what is desired is not what is", widget(`status: {desiredState: Stopping, phase: Ready}`), Ready, ""},
		{"counts", widget(`spec: {replicas: 3}, status: {readyReplicas: 2}`), NotReady, "readyReplicas is 2 of 3"},
		{"a partition holds the update", widget(`spec: {replicas: 3, updateStrategy: {rollingUpdate: {partition: 1}}}, status: {updatedReplicas: 2}`), Ready, ""},
		{"an error", widget(`status: {errorMessage: no such role}`), NotReady, "errorMessage: no such role"},
		{"a boolean", widget(`status: {readyToUse: false}`), NotReady, "readyToUse is false"},
		{"Synced beside Ready", widget(`status: {conditions: [{type: Ready, status: "True"}, {type: Synced, status: "False", reason: ReconcileError}]}`), NotReady, "Synced=False ReconcileError"},
		{"a step beside Ready", widget(`status: {conditions: [{type: Ready, status: "True"}, {type: CronJobAvailable, status: "False"}]}`), Ready, ""},
		{"a rollout that was aborted", widget(`status: {conditions: [{type: Progressing, status: "False", reason: RolloutAborted}]}`), NotReady, "Progressing=False RolloutAborted"},
		{"a rollout that goes on", widget(`status: {conditions: [{type: Progressing, status: "True", reason: ReplicaSetUpdated}]}`), NotReady, "Progressing=True ReplicaSetUpdated"},
		{"a rollout that is through", widget(`status: {conditions: [{type: Progressing, status: "True", reason: NewReplicaSetAvailable}]}`), Ready, ""},
		{"a condition that is under way", widget(`status: {conditions: [{type: RolloutProgressing, status: "True"}]}`), NotReady, "RolloutProgressing=True"},
		{"one that lasts", widget(`status: {conditions: [{type: ContinuousArchiving, status: "True"}]}`), Ready, ""},
		{"complete, and failed", widget(`status: {conditions: [{type: Complete, status: "True", reason: JobFailed}]}`), NotReady, "Complete=True JobFailed"},
		{"a condition of a part", widget(`status: {podStatus: {conditions: [{type: KruisePodReady, status: "False"}]}}`), NotReady, "podStatus: KruisePodReady=False"},
		{"paused", widget(`spec: {paused: true}, status: {phase: Updating}`), Ready, ""},
		{"paused, and its controller does not look at it", widget(`spec: {paused: true}, status: {observedGeneration: 1}`), Ready,
			"paused: spec.paused holds it (its controller has not yet seen generation 2 (its status is of 1))"},
		{"suspended before it was reconciled (Flux)", widget(`spec: {suspend: true}, status: {observedGeneration: -1}`), Ready,
			"suspended: spec.suspend holds it (its controller has not yet seen generation 2 (its status is of -1))"},
		{"suspended while it was not ready", widget(`spec: {suspend: true}, status: {observedGeneration: 2, conditions: [{type: Ready, status: "False", reason: R}]}`), Ready,
			"suspended: spec.suspend holds it (Ready=False R)"},
		{"not suspended", widget(`spec: {suspend: false}, status: {observedGeneration: 1}`), NotReady, "its controller has not yet seen generation 2 (its status is of 1)"},
		{"a Deployment that is paused, and that its controller has not seen", `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, generation: 2}, spec: {paused: true}, status: {observedGeneration: 1}}`,
			NotReady, "its controller has not yet seen generation 2 (its status is of 1)"},
		{"a suspended one that is being deleted", `{apiVersion: example.com/v1, kind: Widget, metadata: {name: a, deletionTimestamp: "2025-01-01T00:00:00Z"}, spec: {suspend: true}}`, NotReady, "is being deleted"},
		{"a parent", widget(`status: {parents: [{conditions: [{type: Accepted, status: "False", reason: R}]}]}`), NotReady, "parents: Accepted=False R"},
		{"a pod that may succeed at the next attempt", `{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {restartPolicy: OnFailure}, status: {phase: Running, containerStatuses: [{name: c, state: {waiting: {reason: CrashLoopBackOff}}}]}}`,
			NotReady, "container c: waiting CrashLoopBackOff"},
		{"a pod that lost its node while it crashes", `{apiVersion: v1, kind: Pod, metadata: {name: a}, status: {phase: Pending, conditions: [{type: PodScheduled, status: "False"}], containerStatuses: [{name: c, state: {waiting: {reason: CrashLoopBackOff}}}]}}`,
			Failed, "container c: waiting CrashLoopBackOff"},
		{"a CRD that is not established, for no reason yet", `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: a.b}, status: {conditions: [{type: NamesAccepted, status: "True"}, {type: Established, status: "False"}]}}`,
			NotReady, "Established=False"},
		{"a CRD established as of an older generation", `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: a.b, generation: 2}, status: {conditions: [{type: NamesAccepted, status: "True"}, {type: Established, status: "True", observedGeneration: 1}]}}`,
			NotReady, "its controller has not yet seen generation 2 (condition Established is of 1)"},
		{"a CRD whose objects are being stored in another version", `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: a.b}, status: {conditions: [{type: NamesAccepted, status: "True"}, {type: Established, status: "True"}, {type: StorageMigrating, status: "True", reason: StorageVersionMigrationInProgress}]}}`,
			NotReady, "StorageMigrating=True StorageVersionMigrationInProgress"},
		{"a StorageVersionMigration that runs", `{apiVersion: storagemigration.k8s.io/v1beta1, kind: StorageVersionMigration, metadata: {name: a}, status: {conditions: [{type: Running, status: "True", reason: StorageVersionMigrationInProgress}]}}`,
			NotReady, "Running=True StorageVersionMigrationInProgress"},
		{"a StorageVersionMigration that failed", `{apiVersion: storagemigration.k8s.io/v1beta1, kind: StorageVersionMigration, metadata: {name: a}, status: {conditions: [{type: Failed, status: "True", reason: Failed}]}}`,
			Failed, "Failed=True Failed"},
		{"a StorageVersionMigration that is done", `{apiVersion: storagemigration.k8s.io/v1beta1, kind: StorageVersionMigration, metadata: {name: a}, status: {conditions: [{type: Succeeded, status: "True", reason: Done}]}}`,
			Ready, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := Of(bundletest.Object(t, test.object), nil, Hints{})
			if got.State != test.want || got.Reason != test.reason {
				t.Errorf("got  %+v\nwant %s: %s", got, test.want, test.reason)
			}
		})
	}
}

func TestUnseen(t *testing.T) {
	for status, want := range map[string]bool{
		`{}`: true, `{conditions: []}`: true, `{adminId: 0, conditions: [], name: ""}`: true, `{phase: Ready}`: false,
		`{conditions: [], observedGeneration: 1}`: true, `{conditions: [], phase: Ready}`: false, `{observedGeneration: 1}`: false,
		`{ancestors: [{conditions: [], controllerName: x}]}`: true, `{conditions: [{type: Ready, status: "True"}]}`: false,
	} {
		got := Of(bundletest.Object(t, `{apiVersion: example.com/v1, kind: Widget, metadata: {name: a, generation: 1}, status: `+status+`}`), nil, Hints{})
		if got.State != Ready || got.Unseen != want {
			t.Errorf("status %s: %+v", status, got)
		}
	}
	if Of(bundletest.Object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}`), nil, Hints{}).Unseen {
		t.Error("a ConfigMap is waited for")
	}
}
