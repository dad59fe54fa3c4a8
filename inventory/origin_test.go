package inventory

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
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
	origins[id(1)] = Origin{UID: 1<<64 - 1, How: Moved, From: "shop/other", FromUID: 1<<64 - 2, Was: Moved, BroughtFrom: "shop/other", Earlier: &Origin{How: Moved, From: "shop/first", Was: Adopted, Earlier: &Origin{How: Adopted, Run: 2}}}
	chunks, err := EncodeOrigins(origins, nil)
	if err != nil || len(chunks) < 2 {
		t.Fatal(len(chunks), err)
	}
	read := map[bundle.ID]Origin{}
	for _, c := range chunks {
		maps.Copy(read, DecodeOrigins(c))
	}
	if !maps.EqualFunc(read, origins, Origin.Equal) {
		t.Error("they are not what was encoded")
	}
	if DecodeOrigins("damaged") != nil {
		t.Error("what cannot be read is known")
	}
}

// What is stored stays in its ConfigMap, whatever comes and goes: a run that is killed between two of
// them has lost nothing.
func TestChunksKeepWhatTheyHold(t *testing.T) {
	id := func(name string) bundle.ID { return bundle.ID{Name: name, GroupKind: bundle.NamespaceKind} }
	values, stored := map[bundle.ID]Fingerprint{}, []string(nil)
	save := func(want ...int) {
		t.Helper()
		chunks, err := EncodeFingerprints(values, stored)
		if err != nil {
			t.Fatal(err)
		}
		read := map[bundle.ID]Fingerprint{}
		for i, c := range chunks {
			now := DecodeFingerprints(c)
			if i >= len(want) || len(now) != want[i] || strings.Count(c, "") > 1<<20 {
				t.Errorf("ConfigMap %d holds %d members, in %d bytes; want %v", i+1, len(now), len(c), want)
			}
			if i < len(stored) {
				for one := range DecodeFingerprints(stored[i]) {
					if _, has := now[one]; !has && values[one] != (Fingerprint{}) {
						t.Fatalf("%s left ConfigMap %d", one.Name, i+1)
					}
				}
			}
			maps.Copy(read, now)
		}
		if stored = chunks; len(chunks) != len(want) || !maps.Equal(read, values) {
			t.Errorf("%d ConfigMaps of %d members, want %v of %d", len(chunks), len(read), want, len(values))
		}
	}
	for n := range chunkMembers {
		values[id(fmt.Sprintf("m-%d", n))] = Fingerprint{UID: "1"}
	}
	save(chunkMembers)
	for n := range 10 {
		values[id(fmt.Sprintf("a-%d", n))] = Fingerprint{UID: "2"} // before all others
	}
	save(chunkMembers, 10)
	delete(values, id("m-0"))
	values[id("z")] = Fingerprint{UID: "3"}
	save(chunkMembers, 10)
	for n := range chunkMembers {
		delete(values, id(fmt.Sprintf("m-%d", n)))
	}
	save(1, 10)
	delete(values, id("z"))
	save(0, 10)
	stored[0] = "somebody else's"
	save(0, 10)
	clear(values)
	save()
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

// A member knows every inventory that it was in, each once. What returns to one is what it
// was there. An inventory is the same after a rename, and another one of its name is not.
func TestOriginsOfMoves(t *testing.T) {
	made := Origin{How: Created, Run: 2}.Of("one")
	sources := map[string]Source{ // each has its number in the uid
		"a": {"shop/a", "a-id", "1"}, "b": {"shop/b", "b-id", "2"}, "c": {"shop/c", "c-id", "3"},
		"a renamed": {"shop/a2", "a2-id", "1"}, "another a": {"shop/a", "a-id", "4"}, "a, not there yet": {"shop/a", "a-id", ""},
	}
	for _, test := range []struct{ moves, want string }{
		{"a > b", "from shop/a < created 2"},
		{"a > b > c", "from shop/b < from shop/a < created 2"},
		{"a > b > a", "created 2"},
		{"a > b > c > b", "from shop/a < created 2"},
		{"a > b > c > a", "created 2"},
		{"a > b > c > b > a", "created 2"},
		{"a > b > c > a > c", "from shop/a < created 2"},
		{"a > b > a renamed", "created 2"},
		{"a > b > c > a renamed", "created 2"},
		{"a renamed > b > a", "created 2"},
		{"a > b > another a", "from shop/b < from shop/a < created 2"},
		{"a > b > a, not there yet", "from shop/b < from shop/a < created 2"},
		{"a > b > another a > b > a", "created 2"},
	} {
		at := strings.Split(test.moves, " > ")
		got := made
		for i, to := range at[1:] {
			got.BroughtFrom = "of no matter there"
			got = got.MovedTo(sources[to], sources[at[i]])
		}
		if chain(got) != test.want || got.UID != made.UID || got.BroughtFrom != "" {
			t.Errorf("%s: %s, want %s; %+v", test.moves, chain(got), test.want, got)
		}
	}
}

// chain is a record with all that was before.
func chain(o Origin) string {
	if o.How != Moved {
		return fmt.Sprint(map[How]string{Unknown: "unknown", Created: "created", Adopted: "adopted"}[o.How], " ", o.Run)
	}
	return "from " + o.From + " < " + chain(o.earlier())
}

// What versions wrote that knew less is read: the inventory by its name or ID, and of what
// was before no more than how. They read how, too, and take nothing for created that is not.
func TestOriginsOfOtherVersions(t *testing.T) {
	a, b, c := Source{"shop/a", "a-id", "1"}, Source{"shop/b", "b-id", "2"}, Source{"shop/c", "c-id", "3"}
	id := bundle.ID{Namespace: "shop", Name: "data", GroupKind: bundle.ConfigMapKind}
	for _, test := range []struct {
		record string
		to     Source
		want   string
	}{
		{`{"u":7,"h":4,"f":"shop/a","w":1}`, a, "created 0"},
		{`{"u":7,"h":4,"f":"shop/a","w":2}`, a, "adopted 0"},
		{`{"u":7,"h":4,"f":"shop/a"}`, a, "unknown 0"},
		{`{"u":7,"h":4,"f":"a-id"}`, a, "unknown 0"},
		{`{"u":7,"h":4,"f":"shop/a","w":4}`, a, "unknown 0"}, // it does not know what came before
		{`{"u":7,"h":4,"f":"shop/a","w":1}`, c, "from shop/b < from shop/a < created 0"},
	} {
		var o Origin
		if err := json.Unmarshal([]byte(test.record), &o); err != nil {
			t.Fatal(err)
		}
		if got := o.MovedTo(test.to, b); chain(got) != test.want || got.UID != 7 {
			t.Errorf("%s: %s, want %s", test.record, chain(got), test.want)
		}
	}
	there := Origin{How: Created}.Of("one").MovedTo(b, a).MovedTo(c, b)
	packed, err := EncodeOrigins(map[bundle.ID]Origin{id: there}, nil)
	if err != nil {
		t.Fatal(err)
	}
	older := unpackChunk(packed[0], func(r struct {
		record
		How  int    `json:"h"`
		From string `json:"f"`
		Was  int    `json:"w"`
	}) (bundle.ID, string) {
		return r.id(), fmt.Sprint(r.How, r.From, r.Was)
	})
	if older[id] != "4shop/b4" {
		t.Errorf("an older version reads %q", older[id])
	}
}

// The records before one are bounded. The oldest are unknown then.
func TestOriginsAreBounded(t *testing.T) {
	o := Origin{How: Created}.Of("one")
	at := func(n int) Source {
		return Source{fmt.Sprint("shop/", n), fmt.Sprint(n), types.UID(fmt.Sprint("uid", n))}
	}
	for n := range 3 * mostEarlier {
		o = o.MovedTo(at(n+1), at(n))
	}
	if got := chain(o); strings.Count(got, "from") != mostEarlier+1 || !strings.HasSuffix(got, "< unknown 0") {
		t.Error(got)
	}
	if back := o.MovedTo(at(3*mostEarlier-1), at(3*mostEarlier)); back.From != at(3*mostEarlier-2).Name {
		t.Errorf("%+v", back)
	}
}

func TestEqualOrigins(t *testing.T) {
	of := func(run int) Origin {
		return Origin{How: Moved, From: "shop/a", Earlier: &Origin{How: Created, Run: run}}
	}
	for _, test := range []struct {
		a, b Origin
		want bool
	}{
		{of(1), of(1), true},
		{of(1), of(2), false},
		{of(1), Origin{How: Moved, From: "shop/a"}, false},
		{Origin{}, Origin{}, true},
		{Origin{How: Created}, Origin{How: Adopted}, false},
	} {
		if test.a.Equal(test.b) != test.want || test.b.Equal(test.a) != test.want {
			t.Errorf("%+v and %+v are not %t", test.a, test.b, test.want)
		}
	}
}
