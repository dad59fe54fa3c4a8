package inventory

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/klauspost/compress/zstd"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"brine/bundle"
)

// FuzzMembers: whatever stands in an inventory's ConfigMaps, reading it does
// not panic, and gives members that name an object or an error. A member that
// is written is read back as it was.
func FuzzMembers(f *testing.F) {
	for _, key := range []string{
		"ns_name_apps_Deployment", "_name__Namespace", "ns_a__b_rbac.authorization.k8s.io_Role", "ns_a_b_rbac.authorization.k8s.io_Role",
		"_system__a_b_rbac.authorization.k8s.io_ClusterRole", "____", "_", "", "a_b_c", "ns_name__", "ns__rbac.authorization.k8s.io_Role",
	} {
		f.Add(key, `{"strategy":"Apply","actuation":"Succeeded","reconcile":"Pending"}`, `[{"kind":"Role","group":"rbac.authorization.k8s.io","namespace":"ns","name":"a_b"}]`, `{"1":{"generation":1,"members":1}}`)
	}
	for _, text := range []string{`[{}]`, `[{"kind":"Role"}]`, `[null]`, `null`, `{}`, `[{"name":1}]`, ``, `[{"kind":"A","name":"b"},{"kind":"A","name":"b"}]`} {
		f.Add("ns_name_apps_Deployment", text, text, text)
	}
	f.Fuzz(func(t *testing.T, key, status, overflow, parts string) {
		packed, err := packText(overflow)
		if err != nil {
			t.Fatal(err)
		}
		inv := Empty("ns", "inv", "")
		head := &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{key: status}}}
		head.SetLabels(map[string]string{Label: inv.ID})
		head.SetAnnotations(map[string]string{overflowParts: parts, containedKinds: parts, moreNamespaces: parts, tooling: "brine/v1"})
		sides := []unstructured.Unstructured{
			*inv.side("inv-overflow-1", Overflow, membersKey, packed), *inv.side("inv-overflow-2", Overflow, membersKey, overflow), // not even base64
			*inv.side("inv-fingerprints-1", Prints, printsKey, packed),
		}
		if err := inv.decode(head, sides); err != nil {
			return
		}
		if len(inv.overflow)+len(inv.broken) != 2 || len(inv.broken) > len(inv.Damage()) {
			t.Errorf("%d read, %d broken, damage: %q", len(inv.overflow), len(inv.broken), inv.Damage())
		}
		_, _ = inv.RecordedKinds()
		_, _ = inv.RecordedNamespaces()
		_ = inv.partsText()
		for id, s := range inv.Members {
			if id.Name == "" || id.GroupKind.Kind == "" {
				t.Errorf("a member that names no object: %#v", id)
			}
			if got := decodeStatus(s.encode()); got != s {
				t.Errorf("status %+v is read back as %+v", s, got)
			}
			if own, ok := headKey(id); ok {
				if got, err := parseKey(own); err != nil || got != id {
					t.Errorf("%#v is written as %q and read back as %#v, %v", id, own, got, err)
				}
			}
			if r := recordOf(id, s); r.id() != id {
				t.Errorf("%#v is written as %+v", id, r)
			}
		}
	})
}

// packText packs what need not be JSON.
func packText(text string) (string, error) {
	if json.Valid([]byte(text)) {
		return pack(json.RawMessage(text))
	}
	return pack(text)
}

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
		_, _ = decodeContent([]byte(text), "", "revision-1")
		packed := compress(t, text)
		c, err := decodeContent(packed, checksum(packed), "revision-1")
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
	packed, sum, err := c.encode()
	if err != nil {
		t.Fatal(err)
	}
	back, err := decodeContent(packed, sum, "revision-1")
	if err != nil {
		t.Fatal(err)
	}
	return back
}

func compress(t *testing.T, text string) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	return w.EncodeAll([]byte(text), nil)
}

// A revision keeps numbers as they are: beyond 2^53 a float is another number.
func TestRevisionKeepsLargeIntegers(t *testing.T) {
	const large = int64(9007199254740993)
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "A",
		"metadata": map[string]any{"name": "a"}, "spec": map[string]any{"bytes": large}}}
	c := &Content{Bundle: &bundle.Bundle{Objects: []*bundle.Object{{
		ID: bundle.ID{Name: "a", GroupKind: schema.GroupKind{Group: "example.com", Kind: "A"}}, Content: u,
	}}}}
	packed, sum, err := c.encode()
	if err != nil {
		t.Fatal(err)
	}
	back, err := decodeContent(packed, sum, "revision-1")
	if err != nil {
		t.Fatal(err)
	}
	if got, _, err := unstructured.NestedInt64(back.Bundle.Objects[0].Content.Object, "spec", "bytes"); got != large || err != nil {
		t.Errorf("got %d, %v, want %d", got, err, large)
	}
}
