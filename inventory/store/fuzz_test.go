package store

import (
	"encoding/base64"
	"maps"
	"testing"

	"brine/inventory"

	"github.com/klauspost/compress/zstd"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
		packed := pack(t, overflow)
		inv := &Inventory{Inventory: *inventory.Empty("ns", "inv", "")}
		object := &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{key: status}}}
		object.SetLabels(map[string]string{inventory.Label: inv.ID})
		object.SetAnnotations(map[string]string{overflowParts: parts, containedKinds: parts, moreNamespaces: parts, tooling: "brine/v1"})
		made := func(name, label, key, packed string) *unstructured.Unstructured {
			u, _ := inv.auxiliary(nil, name, label, key, packed)
			return u
		}
		auxiliary := []unstructured.Unstructured{
			*made("inv-overflow-1", inventory.OverflowLabel, membersKey, packed), *made("inv-overflow-2", inventory.OverflowLabel, membersKey, overflow), // not even base64
			*made("inv-fingerprints-1", inventory.FingerprintsLabel, fingerprintsKey, packed),
		}
		if err := inv.decode(object, auxiliary); err != nil {
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
			if got := inventory.DecodeStatus(s.Encode()); got != s {
				t.Errorf("status %+v is read back as %+v", s, got)
			}
			if own, ok := inventory.MemberKey(id); ok {
				if got, err := inventory.ParseMemberKey(own); err != nil || got != id {
					t.Errorf("%#v is written as %q and read back as %#v, %v", id, own, got, err)
				}
			}
		}
		packed, err := inventory.EncodeMembers(inv.Members)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := inventory.DecodeMembers(packed); err != nil || !maps.Equal(back, inv.Members) {
			t.Errorf("%v is read back as %v, %v", inv.Members, back, err)
		}
	})
}

// pack compresses a text as the codec does; it need not be JSON.
func pack(t *testing.T, text string) string {
	t.Helper()
	w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	return base64.StdEncoding.EncodeToString(w.EncodeAll([]byte(text), nil))
}
