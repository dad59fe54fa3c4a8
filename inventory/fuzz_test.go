package inventory

import (
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"brine/bundle"
)

// FuzzRevision: whatever a revision's Secret holds, decoding it does not panic;
// and what was decoded is the same when it is encoded and decoded again.
func FuzzRevision(f *testing.F) {
	for _, text := range []string{
		`{"objects":[{"content":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"a":"b"}},"source":{"File":"a.yaml","Line":3},"requisites":[{"on":{"kind":"Secret","name":"b"},"why":"require: b"}]}],"absent":[{"kind":"Job","group":"batch","name":"old","version":"v1","source":{}}]}`,
		`{"objects":[{"content":{"apiVersion":"example.com/v1","kind":"A","metadata":{"name":"a"},"spec":{"i":9007199254740993,"f":1.5,"e":1e300,"z":-0.0,"n":null}}}]}`,
		`[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}]`, `[null]`, `{"objects":[{}]}`, `{"objects":null}`, `null`, `[]`, `{"objects":[{"content":{"metadata":[]}}]}`,
		`{"objects":[{"content":{"apiVersion":"a/b/c","kind":1,"metadata":{"name":{}}}}]}`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		_, _ = DecodeContent([]byte(text), "", "revision-1")
		packed := Compress([]byte(text))
		c, err := DecodeContent(packed, checksum(packed), "revision-1")
		if err != nil {
			return
		}
		for _, o := range c.Bundle.Objects {
			if o.ID.Name == "" && o.Content.GetGenerateName() == "" || o.GVK.Kind == "" || o.GVK.Version == "" {
				t.Errorf("an object that names nothing: %#v", o.Content.Object)
			}
			_ = o.Content.DeepCopy() // panics on anything but JSON values
		}
		// 1.0 and -0 become 1 and 0 once, then nothing changes any more.
		once := encodeAndDecode(t, c)
		twice := encodeAndDecode(t, once)
		for i, o := range twice.Bundle.Objects {
			if !reflect.DeepEqual(o.Content, once.Bundle.Objects[i].Content) {
				t.Errorf("%#v\nbecame\n%#v", once.Bundle.Objects[i], o)
			}
		}
	})
}

func encodeAndDecode(t *testing.T, c *Content) *Content {
	t.Helper()
	packed, sum, err := c.Encode()
	if err != nil {
		t.Fatal(err)
	}
	back, err := DecodeContent(packed, sum, "revision-1")
	if err != nil {
		t.Fatal(err)
	}
	return back
}

// A revision keeps numbers as they are: beyond 2^53 a float is another number.
func TestRevisionKeepsLargeIntegers(t *testing.T) {
	const large = int64(9007199254740993)
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "A",
		"metadata": map[string]any{"name": "a"}, "spec": map[string]any{"bytes": large}}}
	c := &Content{Bundle: &bundle.Bundle{Objects: []*bundle.Object{{
		ID: bundle.ID{Name: "a", GroupKind: schema.GroupKind{Group: "example.com", Kind: "A"}}, Content: u,
	}}}}
	packed, sum, err := c.Encode()
	if err != nil {
		t.Fatal(err)
	}
	back, err := DecodeContent(packed, sum, "revision-1")
	if err != nil {
		t.Fatal(err)
	}
	if got, _, err := unstructured.NestedInt64(back.Bundle.Objects[0].Content.Object, "spec", "bytes"); got != large || err != nil {
		t.Errorf("got %d, %v, want %d", got, err, large)
	}
}
