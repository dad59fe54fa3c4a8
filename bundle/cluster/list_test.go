package cluster

import (
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The decoder says the same as the dynamic client's.
func TestDecodeList(t *testing.T) {
	for _, text := range []string{
		`{"apiVersion": "v1", "kind": "ConfigMapList", "metadata": {"continue": "x", "resourceVersion": "7"}, "items": [{"metadata": {"name": "a"}, "data": {"n": "1"}}, {"metadata": {"name": "b"}}]}`,
		`{"apiVersion": "g/v1", "kind": "WidgetList", "items": [{"apiVersion": "g/v1", "kind": "Widget", "spec": {"whole": 3, "large": 9007199254740993, "part": 0.5, "exponent": 1e3, "none": null, "list": [1, {"a": true}]}}]}`,
		`{"apiVersion": "g/v1", "kind": "ListList", "items": [{}]}`,
		`{"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "v1", "kind": "Secret"}]}`,
		`{"apiVersion": "v1", "kind": "ConfigMapList", "items": []}`,
		`{"apiVersion": "v1", "kind": "ConfigMapList", "items": null}`,
		`{"apiVersion": "v1", "kind": "ConfigMapList"}`,
		`{"apiVersion": "v1", "kind": "Widgets", "items": [{}]}`,
	} {
		var want unstructured.UnstructuredList
		if err := want.UnmarshalJSON([]byte(text)); err != nil {
			t.Fatal(err)
		}
		items, next, err := decodeList([]byte(text), nil)
		if err != nil || next != want.GetContinue() || !reflect.DeepEqual(items, want.Items) {
			t.Errorf("%s:\n%v, next %q, %v\nwant %v, next %q", text, items, next, err, want.Items, want.GetContinue())
		}
	}
}

// An answer that is no list is never taken for an empty one.
func TestDecodeListThatIsNone(t *testing.T) {
	for text, want := range map[string]string{
		`{"kind": "Status", "status": "Success"}`:                `no list, but with kind "Status"`,
		`{"kind": "ConfigMap", "metadata": {"name": "a"}}`:       `no list, but with kind "ConfigMap"`,
		`{"kind": "ConfigMapList", "items": {"a": {}}}`:          "no list",
		`{"kind": "ConfigMapList", "items": "none"}`:             "no list",
		`{"kind": "ConfigMapList", "items": [{"kind": "a"}, 1]}`: "item 1 of the list is no object",
		`{"kind": "ConfigMapList", "items": [null]}`:             "item 0 of the list is no object",
		`{"items": null}`: `no list, but with kind ""`,
		`{}`:              "no list",
		`null`:            "no list",
		`[]`:              "decode the list",
		`<html>`:          "decode the list",
		``:                "decode the list",
		`{"kind": "ConfigMapList", "items": [{"metadata": {}}`: "decode the list",
	} {
		items, _, err := decodeList([]byte(text), nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v", text, items, err)
		}
	}
}

func FuzzDecodeList(f *testing.F) {
	f.Add([]byte(`{"kind": "ConfigMapList", "metadata": {"continue": 1}, "items": [{"metadata": {"name": "a"}}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		items, next, err := decodeList(text, nil)
		if err != nil {
			return
		}
		var want unstructured.UnstructuredList
		if err := want.UnmarshalJSON(text); err != nil {
			return
		}
		if next != want.GetContinue() || !reflect.DeepEqual(items, want.Items) {
			t.Errorf("%v, next %q\nwant %v, next %q", items, next, want.Items, want.GetContinue())
		}
	})
}
