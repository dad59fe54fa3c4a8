package inventory

import (
	"fmt"
	"maps"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"brine/bundle"
)

func TestOrigins(t *testing.T) {
	id := func(n int) bundle.ID {
		return bundle.ID{Namespace: "shop", Name: fmt.Sprintf("c-%d", n), GroupKind: bundle.ConfigMapKind}
	}
	origins := map[bundle.ID]Origin{}
	for n := range 2 * chunkMembers {
		origins[id(n)] = Origin{How: Created, Run: n}.Of(types.UID(fmt.Sprint(n)))
	}
	origins[id(1)] = Origin{UID: 1<<64 - 1, How: Moved, From: "shop/other", Was: Adopted, BroughtFrom: "shop/other"}
	chunks, err := EncodeOrigins(origins)
	if err != nil || len(chunks) < 2 {
		t.Fatal(len(chunks), err)
	}
	read := map[bundle.ID]Origin{}
	for _, c := range chunks {
		maps.Copy(read, DecodeOrigins(c))
	}
	if !maps.Equal(read, origins) {
		t.Error("they are not what was encoded")
	}
	if DecodeOrigins("damaged") != nil {
		t.Error("what cannot be read is known")
	}
}

// An origin is of one object: whatever has its name after it has none.
func TestOriginOfAnotherObject(t *testing.T) {
	id := bundle.ID{Namespace: "shop", Name: "data", GroupKind: bundle.ConfigMapKind}
	inv := Empty("shop", "inv", "inv")
	live := func(uid types.UID, owner string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{}}
		u.SetUID(uid)
		u.SetAnnotations(map[string]string{OwningInventory: owner})
		return u
	}
	inv.Origins = map[bundle.ID]Origin{id: Origin{How: Created, Run: 3}.Of("one")}
	for _, test := range []struct {
		uid      types.UID
		owner    string
		creating int
		want     How
	}{
		{"one", "inv", 0, Created},
		{"one", "other", 0, Created},
		{"two", "inv", 0, Unknown},
		{"two", "inv", 4, Created}, // a killed run was to create it
		{"two", "other", 4, Unknown},
	} {
		inv.Members = map[bundle.ID]Status{id: {Creating: test.creating}}
		if got := inv.OriginOf(id, live(test.uid, test.owner)); got.How != test.want {
			t.Errorf("%+v: %s", test, got)
		}
	}
}

// What returns to the inventory that it came from is what it was there.
func TestOriginMovedAndBack(t *testing.T) {
	made := Origin{How: Adopted, Run: 2}.Of("one")
	there := made.MovedTo("shop/b", "shop/a")
	further := there.MovedTo("shop/c", "shop/b")
	for name, got := range map[string]Origin{
		"it came from inventory shop/a":        there,
		"it came from inventory shop/b":        further,
		"it was there before brine adopted it": there.MovedTo("shop/a", "shop/b"),
	} {
		if got.String() != name || got.UID != made.UID || !got.Before() {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
