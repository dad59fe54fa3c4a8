package write

import (
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"brine/bundle/bundletest"
	"brine/bundle/takeover"
)

// A field is set back if brine alone owns it: what others have set since, or somebody has
// removed, stays.
func TestSetBack(t *testing.T) {
	const was = `
metadata: {labels: {forced: theirs, kept: x}, annotations: {}}
spec: {replicas: 3, removed: x, agreed: 1, shared: 1, args: [one], items: [{name: a}, {name: b}], selector: {app: a}, theirs: {a: 1}}
`
	const is = `
metadata:
  labels: {forced: ours, kept: x, new: ours, other: theirs}
  annotations: {}
  managedFields:
  - {manager: brine, operation: Apply, fieldsV1: {"f:metadata": {"f:labels": {"f:forced": {}, "f:new": {}, "f:kept": {}}}, "f:spec": {"f:replicas": {}, "f:shared": {}, "f:args": {}, "f:items": {"k:{\"name\":\"a\"}": {".": {}, "f:name": {}, "f:image": {}}}, "f:selector": {}, "f:added": {"f:ours": {}}, "f:alone": {"f:ours": {}}, "f:theirs": {"f:a": {}}}}}
  - {manager: kubectl-create, operation: Update, fieldsV1: {"f:metadata": {"f:labels": {".": {}, "f:kept": {}}}, "f:spec": {"f:theirs": {".": {}}}}}
  - {manager: somebody, operation: Update, fieldsV1: {"f:metadata": {"f:labels": {"f:other": {}}}, "f:spec": {"f:agreed": {}, "f:shared": {}, "f:items": {"k:{\"name\":\"b\"}": {".": {}, "f:image": {}}}, "f:added": {"f:theirs": {}}}}}
spec: {replicas: 5, agreed: 2, shared: 2, args: [two], items: [{name: a, image: new}, {name: b, image: theirs}], selector: {app: b}, added: {ours: 1, theirs: 2}, alone: {ours: 1}, theirs: {a: 2}}
`
	const want = `
metadata: {labels: {forced: theirs, new: null}}
spec: {replicas: 3, args: [one], selector: {app: a}, added: {ours: null}, alone: null, theirs: {a: 1}}
`
	live := bundletest.Object(t, is)
	patch := setBack(given(live), given(bundletest.Object(t, was)), nil, settable(live, true))
	expected := bundletest.Map(t, want)
	if !reflect.DeepEqual(patch, expected) {
		t.Errorf("the patch is %v, want %v", patch, expected)
	}
	patch = setBack(given(live), given(bundletest.Object(t, was)), nil, settable(live, false))
	expected["spec"].(map[string]any)["removed"] = "x"
	if !reflect.DeepEqual(patch, expected) {
		t.Errorf("in the same run the patch is %v, want %v", patch, expected)
	}
	if after := (&unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"a": "b"}}}); len(setBack(given(after), given(after), nil, takeover.Ours(after))) != 0 {
		t.Error("a patch of no change")
	}
}
