package plan

import (
	"testing"

	"brine/bundle/takeover"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// FuzzManagedFields: the walks of fieldsV1 take whatever stands in an object's
// managedFields, and say the same of the same object each time.
func FuzzManagedFields(f *testing.F) {
	for _, seed := range [][3]string{
		{`{"f:data":{"f:a":{},".":{}}}`, `{"f:data":{"f:a":{}}}`, `{"data":{"a":"b"}}`},
		{`{"f:spec":{"f:ports":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:port":{}}}}}`, `{}`, `{"spec":{"ports":[{"port":80,"protocol":"TCP"}]}}`},
		{`{"f:metadata":{"f:finalizers":{"v:\"a\"":{}},"f:x":{"i:0":{}}}}`, `null`, `{"x":[1]}`},
		{`{"k:":{},"v:":{},"i:":{},"":{},":":{},"x":{},"f:a":null,"f:b":[],"f:c":{"k:[]":{},"k:null":{},"k:1":{}}}`, `[]`, `{"a":1,"b":null,"c":[{},null,1]}`},
		{`{}`, `[]`, ``},
		{`{"f:a":{"k:{\"b\":{\"c\":1}}":{}}}`, `{"f:a":{}}`, `{"a":[{"b":{"c":1}}]}`},
	} {
		f.Add(seed[0], seed[1], seed[2])
	}
	f.Fuzz(func(t *testing.T, ours, theirs, content string) {
		object := func() *unstructured.Unstructured {
			u := &unstructured.Unstructured{Object: map[string]any{}}
			if utiljson.Unmarshal([]byte(content), &u.Object) != nil || u.Object == nil {
				u.Object = map[string]any{}
			}
			var entries []any
			for _, entry := range [][2]string{{"brine", ours}, {"somebody", theirs}} {
				var fields any
				if utiljson.Unmarshal([]byte(entry[1]), &fields) != nil {
					return nil
				}
				entries = append(entries, map[string]any{"manager": entry[0], "operation": "Apply", "apiVersion": "v1", "fieldsV1": fields})
			}
			u.Object["metadata"] = map[string]any{"managedFields": entries, "uid": "1"}
			return u
		}
		a, b := object(), object()
		if a == nil || b == nil {
			return
		}
		one, ok := (&Step{Desired: "asked"}).Fingerprint(a, false)
		two, fine := (&Step{Desired: "asked"}).Fingerprint(b, false)
		if one != two || ok != fine {
			t.Errorf("fingerprints %v and %v", one, two)
		}
		if (&Step{}).Changed(a, b) {
			t.Error("an object differs from itself")
		}
		if taken := takeover.Taken(a, b); len(taken) > 0 {
			t.Errorf("nothing was taken, and it says %q", taken)
		}
		empty := &unstructured.Unstructured{Object: map[string]any{}}
		_, _ = takeover.Taken(a, empty), takeover.Taken(empty, a)
	})
}
