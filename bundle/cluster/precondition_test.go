package cluster

import (
	"encoding/json"
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// What is sent is the object with the version that it is for, wherever its metadata stands and
// whatever looks like metadata.
func TestBound(t *testing.T) {
	live := &unstructured.Unstructured{}
	live.SetUID("u-1")
	live.SetResourceVersion("7")
	for _, body := range []string{
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"b"}}`,
		`{"data":{"x":"\"metadata\":{\"","metadata":{"y":"z"}},"metadata":{"name":"a"}}`,
		`{"a":["metadata",{"metadata":{"name":"not this"}}],"b":{"metadata":{"name":"nor this"}},"metadata":{"name":"a"},"z":1}`,
		`{"a":"\\","metadata":{"name":"a"}}`,
		`{"metadata": {"name":"a"}}`,
		`{"metadata":{}}`,
		`{"metadata":{"name":"a","resourceVersion":"3","uid":"old"}}`,
		`{"metadata":{"name":"a"},"spec":{"ref":{"uid":"x"}}}`,
	} {
		for _, live := range []*unstructured.Unstructured{nil, live} {
			text, err := bound([]byte(body), live)
			if err != nil {
				t.Fatalf("%s: %v", body, err)
			}
			var got, want map[string]any
			if err := json.Unmarshal(text, &got); err != nil {
				t.Fatalf("%s became %s: %v", body, text, err)
			}
			if err := json.Unmarshal([]byte(body), &want); err != nil {
				t.Fatal(err)
			}
			metadata := want["metadata"].(map[string]any)
			metadata["resourceVersion"] = noVersion
			if live != nil {
				metadata["resourceVersion"], metadata["uid"] = "7", "u-1"
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s became %s", body, text)
			}
		}
	}
	for _, body := range []string{`{`, `[]`, `{"kind":"x"}`, `{"metadata":"x"}`} {
		if text, err := bound([]byte(body), nil); err == nil {
			t.Errorf("%s became %s", body, text)
		}
	}
}
