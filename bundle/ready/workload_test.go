package ready

import (
	"testing"

	"brine/bundle/bundletest"
)

func TestOfWorkloads(t *testing.T) {
	for _, test := range []struct {
		name   string
		object string
		want   State
		reason string
	}{
		{"a Deployment nobody has seen", `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, generation: 1}, spec: {replicas: 0}, status: {}}`, NotReady, "its controller has not yet seen it"},
		{"a Deployment of an older generation", `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, generation: 2}, spec: {replicas: 1}, status: {observedGeneration: 1, replicas: 1, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1, conditions: [{type: Available, status: "True"}]}}`,
			NotReady, "its controller has not yet seen generation 2 (its status is of 1)"},
		{"a Deployment that starts", `
apiVersion: apps/v1
kind: Deployment
metadata: {name: a, generation: 1}
spec: {replicas: 3, progressDeadlineSeconds: 600}
status:
  observedGeneration: 1
  replicas: 3
  updatedReplicas: 3
  readyReplicas: 1
  availableReplicas: 1
  unavailableReplicas: 2
  conditions:
  - {type: Available, status: "False", reason: MinimumReplicasUnavailable, message: Deployment does not have minimum availability.}
  - {type: Progressing, status: "True", reason: ReplicaSetUpdated, message: ReplicaSet "a-1" is progressing.}
`, NotReady, "Available: 1/3; Available=False MinimumReplicasUnavailable: Deployment does not have minimum availability."},
		{"a Deployment that is there", `
apiVersion: apps/v1
kind: Deployment
metadata: {name: a, generation: 1}
spec: {replicas: 1, progressDeadlineSeconds: 600}
status:
  observedGeneration: 1
  replicas: 1
  updatedReplicas: 1
  readyReplicas: 1
  availableReplicas: 1
  conditions:
  - {type: Available, status: "True", reason: MinimumReplicasAvailable}
  - {type: Progressing, status: "True", reason: NewReplicaSetAvailable}
`, Ready, ""},
		{"a Deployment past its deadline", `
apiVersion: apps/v1
kind: Deployment
metadata: {name: a, generation: 1}
spec: {replicas: 1, progressDeadlineSeconds: 600}
status:
  observedGeneration: 1
  replicas: 1
  updatedReplicas: 1
  conditions:
  - {type: Available, status: "False", reason: MinimumReplicasUnavailable}
  - {type: Progressing, status: "False", reason: ProgressDeadlineExceeded, message: ReplicaSet "a-1" has timed out progressing.}
`, Failed, `Progress deadline exceeded; Progressing=False ProgressDeadlineExceeded: ReplicaSet "a-1" has timed out progressing.`},
		{"a Deployment whose pods a quota denies", `
apiVersion: apps/v1
kind: Deployment
metadata: {name: a, generation: 1}
spec: {replicas: 1, progressDeadlineSeconds: 600}
status:
  observedGeneration: 1
  conditions:
  - {type: Available, status: "False", reason: MinimumReplicasUnavailable}
  - {type: ReplicaFailure, status: "True", reason: FailedCreate, message: 'pods "a-1-x" is forbidden: exceeded quota: none'}
  - {type: Progressing, status: "True", reason: NewReplicaSetCreated}
`, NotReady, `Replicas: 0/1; ReplicaFailure=True FailedCreate: pods "a-1-x" is forbidden: exceeded quota: none`},
		{"a paused Deployment", `
apiVersion: apps/v1
kind: Deployment
metadata: {name: a, generation: 2}
spec: {replicas: 1, paused: true, progressDeadlineSeconds: 600}
status: {observedGeneration: 2, replicas: 1, readyReplicas: 1, availableReplicas: 1}
`, Ready, "paused: spec.paused holds its rollout (Updated: 0/1)"},
		{"a Deployment of no replicas", `
apiVersion: apps/v1
kind: Deployment
metadata: {name: a, generation: 1}
spec: {replicas: 0, progressDeadlineSeconds: 600}
status:
  observedGeneration: 1
  conditions: [{type: Available, status: "True"}, {type: Progressing, status: "True", reason: NewReplicaSetAvailable}]
`, Ready, ""},

		{"a StatefulSet that starts", `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a, generation: 1}, spec: {replicas: 3, updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 0}}}, status: {observedGeneration: 1, replicas: 2, readyReplicas: 1, currentReplicas: 2, updatedReplicas: 2, currentRevision: a-1, updateRevision: a-1}}`,
			NotReady, "Replicas: 2/3"},
		{"a StatefulSet that is there", `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a, generation: 1}, spec: {replicas: 1, updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 0}}}, status: {observedGeneration: 1, replicas: 1, readyReplicas: 1, currentReplicas: 1, updatedReplicas: 1, currentRevision: a-1, updateRevision: a-1}}`,
			Ready, ""},
		{"a StatefulSet of no replicas nobody has seen", `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a, generation: 1}, spec: {replicas: 0}, status: {}}`, NotReady, "its controller has not yet seen it"},
		{"a StatefulSet that rolls", `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a, generation: 2}, spec: {replicas: 2, updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 0}}}, status: {observedGeneration: 2, replicas: 2, readyReplicas: 2, currentReplicas: 1, updatedReplicas: 1, currentRevision: a-1, updateRevision: a-2}}`,
			NotReady, "updated: 1/2"},
		{"a StatefulSet down to its partition", `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a, generation: 2}, spec: {replicas: 3, updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 2}}}, status: {observedGeneration: 2, replicas: 3, readyReplicas: 3, currentReplicas: 2, updatedReplicas: 1, currentRevision: a-1, updateRevision: a-2}}`,
			Ready, ""},
		{"a StatefulSet with OnDelete and old pods", `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a, generation: 2}, spec: {replicas: 2, updateStrategy: {type: OnDelete}}, status: {observedGeneration: 2, replicas: 2, readyReplicas: 2, currentReplicas: 2, currentRevision: a-1, updateRevision: a-2}}`,
			Ready, ""},
		{"a StatefulSet with OnDelete that starts", `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a, generation: 1}, spec: {replicas: 2, updateStrategy: {type: OnDelete}}, status: {observedGeneration: 1, replicas: 2, readyReplicas: 1}}`,
			NotReady, "Ready: 1/2"},
		{"a StatefulSet whose pods are ready, but not for long enough", `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a, generation: 1}, spec: {replicas: 1, minReadySeconds: 30, updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 0}}}, status: {observedGeneration: 1, replicas: 1, readyReplicas: 1, availableReplicas: 0, currentReplicas: 1, updatedReplicas: 1, currentRevision: a-1, updateRevision: a-1}}`,
			NotReady, "Available: 0/1"},

		{"a DaemonSet nobody has seen", `{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: a, generation: 1}, status: {currentNumberScheduled: 0, desiredNumberScheduled: 0}}`, NotReady, "its controller has not yet seen it"},
		{"a DaemonSet that starts", `{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: a, generation: 1}, status: {observedGeneration: 1, currentNumberScheduled: 3, desiredNumberScheduled: 3, updatedNumberScheduled: 3, numberAvailable: 1, numberReady: 1}}`, NotReady, "Available: 1/3"},
		{"a DaemonSet for which there is no node", `{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: a, generation: 1}, status: {observedGeneration: 1, currentNumberScheduled: 0, desiredNumberScheduled: 0, numberReady: 0}}`, Ready, "runs on no node: none of them fits it"},
		{"a DaemonSet that rolls", `{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: a, generation: 2}, spec: {updateStrategy: {type: RollingUpdate}}, status: {observedGeneration: 2, currentNumberScheduled: 2, desiredNumberScheduled: 2, updatedNumberScheduled: 1, numberAvailable: 2, numberReady: 2}}`, NotReady, "Updated: 1/2"},
		{"a DaemonSet with OnDelete and old pods", `{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: a, generation: 2}, spec: {updateStrategy: {type: OnDelete}}, status: {observedGeneration: 2, currentNumberScheduled: 2, desiredNumberScheduled: 2, numberAvailable: 2, numberReady: 2}}`, Ready, ""},

		{"a ReplicaSet that is denied its pods", `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: a, generation: 1}, spec: {replicas: 2}, status: {observedGeneration: 1, replicas: 0, conditions: [{type: ReplicaFailure, status: "True", reason: FailedCreate, message: violates PodSecurity}]}}`,
			NotReady, "Replica Failure condition. Check Pods; ReplicaFailure=True FailedCreate: violates PodSecurity"},
		{"a ReplicaSet that is there", `{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: a, generation: 1}, spec: {replicas: 1}, status: {observedGeneration: 1, replicas: 1, fullyLabeledReplicas: 1, availableReplicas: 1, readyReplicas: 1}}`, Ready, ""},
		{"a ReplicationController that starts", `{apiVersion: v1, kind: ReplicationController, metadata: {name: a, generation: 1}, spec: {replicas: 1}, status: {observedGeneration: 1, replicas: 1, fullyLabeledReplicas: 1}}`, NotReady, "Available: 0/1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := Of(bundletest.Object(t, test.object), nil, Hints{})
			got.Rule = "" // see TestRule
			if want := (Status{State: test.want, Reason: test.reason}); got != want {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
		})
	}
}

func TestOfPods(t *testing.T) {
	for _, test := range []struct {
		name   string
		status string
		want   State
		reason string
	}{
		{"nobody has seen it", `{}`, NotReady, "no scheduler or kubelet has updated its status yet"},
		{"runs and is ready", `{phase: Running, conditions: [{type: Ready, status: "True"}]}`, Ready, ""},
		{"has done its work", `{phase: Succeeded, conditions: [{type: Ready, status: "False", reason: PodCompleted}]}`, Ready, ""},
		{"was evicted", `{phase: Failed, reason: Evicted, message: 'The node was low on resource: memory.'}`, Failed, "phase is Failed, Evicted: The node was low on resource: memory."},
		{"ended badly", `{phase: Failed, containerStatuses: [{name: app, state: {terminated: {exitCode: 137, reason: OOMKilled}}}]}`, Failed, "phase is Failed: container app: terminated, exit code 137 (OOMKilled)"},
		{"cannot be scheduled", `{phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: '0/3 nodes are available: 3 Insufficient cpu.'}]}`,
			NotReady, "PodScheduled=False Unschedulable: 0/3 nodes are available: 3 Insufficient cpu."},
		{"has no image", `{phase: Pending, conditions: [{type: Ready, status: "False", reason: ContainersNotReady, message: 'containers with unready status: [app]'}], containerStatuses: [{name: app, state: {waiting: {reason: ImagePullBackOff, message: 'Back-off pulling image "x:1"'}}}]}`,
			NotReady, `container app: waiting ImagePullBackOff: Back-off pulling image "x:1"`},
		{"crashes again and again", `{phase: Running, conditions: [{type: Ready, status: "False"}], containerStatuses: [{name: side, ready: true, state: {running: {}}}, {name: app, restartCount: 4, state: {waiting: {reason: CrashLoopBackOff, message: back-off 1m20s}}, lastState: {terminated: {exitCode: 1, reason: Error}}}]}`,
			Failed, "container app: waiting CrashLoopBackOff: back-off 1m20s, last exit code 1 (Error), restarted 4 times"},
		{"crashes while it is initialised", `{phase: Pending, initContainerStatuses: [{name: migrate, restartCount: 2, state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 3, reason: Error}}}], containerStatuses: [{name: app, state: {waiting: {reason: PodInitializing}}}]}`,
			Failed, "init container migrate: waiting CrashLoopBackOff, last exit code 3 (Error), restarted 2 times"},
		{"starts", `{phase: Pending, conditions: [{type: Ready, status: "False", reason: ContainersNotReady, message: 'containers with unready status: [app]'}], containerStatuses: [{name: app, state: {waiting: {reason: ContainerCreating}}}]}`,
			NotReady, "Ready=False ContainersNotReady: containers with unready status: [app]"},
		{"runs but its probe fails", `{phase: Running, conditions: [{type: Ready, status: "False", reason: ContainersNotReady}], containerStatuses: [{name: app, ready: false, state: {running: {startedAt: "2025-01-01T00:00:00Z"}}}]}`,
			NotReady, "container app: running but not ready"},
		{"its node does not answer", `{phase: Unknown}`, NotReady, "phase is Unknown"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := Of(bundletest.Object(t, `{apiVersion: v1, kind: Pod, metadata: {name: a}, status: `+test.status+`}`), nil, Hints{})
			got.Rule = ""
			if want := (Status{State: test.want, Reason: test.reason}); got != want {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
		})
	}
}
