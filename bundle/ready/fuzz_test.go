package ready

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle/bundletest"
)

// FuzzOf: whatever a server or a controller puts into an object, nothing
// panics, a state is given, and a reason in one line wherever it is not ready.
func FuzzOf(f *testing.F) {
	for _, seed := range []string{
		web, webRS,
		`{apiVersion: v1, kind: Pod, metadata: {name: a}, status: {phase: Running, conditions: [{type: Ready, status: "False"}], containerStatuses: [{name: 1, state: {waiting: no}}, no, {lastState: {terminated: {exitCode: x}}}]}}`,
		`{apiVersion: batch/v1, kind: Job, metadata: {name: a, deletionTimestamp: x, finalizers: {}}, spec: {ttlSecondsAfterFinished: 1.5}, status: {conditions: [{type: Failed, status: "True"}]}}`,
		`{apiVersion: apps/v1, kind: DaemonSet, metadata: {generation: 1.5}, spec: {updateStrategy: {type: OnDelete}}, status: [no]}`,
		`{apiVersion: apps/v1, kind: StatefulSet, metadata: {generation: 1}, spec: {replicas: no, updateStrategy: {type: OnDelete}}, status: {observedGeneration: 1, conditions: no}}`,
		`{apiVersion: v1, kind: ReplicationController, metadata: {generation: 1}, spec: no, status: {observedGeneration: 1}}`,
		`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {annotations: no}, status: {phase: [Lost]}}`,
		`{apiVersion: v1, kind: Namespace, metadata: {deletionTimestamp: x}, spec: {finalizers: [1]}, status: {phase: 3, conditions: [{type: A, status: "True", message: "a\nb"}]}}`,
		`{apiVersion: example.com/v1, kind: Widget, metadata: {generation: 9}, status: {observedGeneration: 9, conditions: [{type: Ready, status: 1}, {type: Stalled, status: "True"}]}}`,
		`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, status: {conditions: [[]]}}`,
		`{apiVersion: apiregistration.k8s.io/v1, kind: APIService, spec: {service: no}}`,
	} {
		raw, err := bundletest.Object(f, seed).MarshalJSON()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	rules, err := compile(`self.status.conditions.exists(c, c.status == 'True')`, false)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(raw); err != nil {
			return
		}
		for _, r := range []*Rules{nil, {readyWhen: rules}, {failedWhen: rules}} {
			for _, s := range []Status{Of(u, r, Hints{}), Deleted(u, r)} {
				if s.State != Ready && s.State != NotReady && s.State != Failed {
					t.Errorf("state is %q", s.State)
				}
				if s.State != Ready && s.Reason == "" || strings.ContainsAny(s.Reason, "\n\r") {
					t.Errorf("state %s for the reason %q", s.State, s.Reason)
				}
			}
		}
		NewDiagnosis(Reader{}).Explain(t.Context(), []*unstructured.Unstructured{u})
	})
}
