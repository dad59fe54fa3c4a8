package store_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"brine/bundle"
	"brine/bundle/cluster/clustertest"
	"brine/inventory"
)

// spread are members whose names do not compress, in n namespaces, of many kinds.
func spread(n int) []bundle.ID {
	random := rand.New(rand.NewPCG(1, 2))
	text := func(length int) string {
		b := make([]byte, length)
		for i := range b {
			b[i] = "abcdefghijklmnopqrstuvwxyz0123456789"[random.IntN(36)]
		}
		return string(b)
	}
	var out []bundle.ID
	for range n {
		namespace := text(63)
		out = append(out,
			bundle.ID{GroupKind: schema.GroupKind{Group: "g" + text(1) + ".example.com", Kind: "Kind" + text(1)}, Namespace: namespace, Name: text(253)},
			bundle.ID{GroupKind: schema.GroupKind{Kind: "ConfigMap"}, Namespace: namespace, Name: text(20)})
	}
	return out
}

// Neither the number of namespaces nor the length of names bounds an inventory:
// no annotation, ConfigMap or request becomes larger than the server takes.
func TestTenThousandNamespaces(t *testing.T) {
	c := clustertest.Shared(t)
	for _, n := range []int{100, 2_000, 10_000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			ns := c.Namespace(t)
			cl := client(t, c.Config(t))
			all := spread(n)
			inv := load(t, cl, ns)
			if err := inv.Add(t.Context(), all, 1); err != nil {
				t.Fatal(err)
			}
			prints := map[bundle.ID]inventory.Fingerprint{}
			hash := func(i, salt int) string { return fmt.Sprintf("%064x", uint64(i*7919+salt)*0x9e3779b97f4a7c15) }
			statuses := map[bundle.ID]inventory.Status{}
			for i, id := range all {
				prints[id] = inventory.Fingerprint{Desired: hash(i, 1), UID: hash(i, 2)[28:], Live: hash(i, 3)}
				statuses[id] = inventory.Status{Strategy: "Delete", Actuation: "Succeeded", Reconcile: "Succeeded"}
			}
			if err := inv.SaveFingerprints(t.Context(), prints); err != nil {
				t.Fatal(err)
			}
			if err := inv.Finish(t.Context(), nil, statuses); err != nil {
				t.Fatal(err)
			}
			inv = load(t, cl, ns)
			if len(inv.Members) != len(all) || len(inv.Fingerprints) != len(all) {
				t.Fatalf("it holds %d members and %d fingerprints, want %d", len(inv.Members), len(inv.Fingerprints), len(all))
			}
			head, err := c.Dynamic(t).Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace(ns).Get(t.Context(), "inv", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			// The list of namespaces is whole, or not there at all.
			namespaces, listed := head.GetAnnotations()["applyset.kubernetes.io/additional-namespaces"]
			if got := len(strings.Split(namespaces, ",")); listed != (n <= 2_000) || listed && got != n {
				t.Errorf("of %d namespaces it lists %d", n, got)
			}
			if _, complete := inv.RecordedNamespaces(); complete != listed {
				t.Error("what is not listed is taken for a list")
			}
			text, err := head.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("the inventory object has %d KiB in JSON, %d keys", len(text)>>10, len(head.Object["data"].(map[string]any)))
			if err := inv.Finish(t.Context(), all, nil); err != nil {
				t.Fatal(err)
			}
			if err := inv.Delete(t.Context()); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// The origins of 50,000 members: what they take on the cluster, and which requests. What is
// there already is not written again, and of one that changes, one part is.
func TestOriginsOfFiftyThousandMembers(t *testing.T) {
	c := clustertest.Shared(t)
	ns := c.Namespace(t)
	cl := client(t, c.Config(t))
	all := ids("member", 50_000)
	inv := load(t, cl, ns)
	if err := inv.Add(t.Context(), all, 1); err != nil {
		t.Fatal(err)
	}
	origins := map[bundle.ID]inventory.Origin{}
	for i, id := range all {
		origins[id] = inventory.Origin{How: inventory.Created, Run: 1 + i%7}.Of(types.UID(fmt.Sprintf("uid-%d", i)))
		if i%10 == 0 {
			origins[id] = inventory.Origin{How: inventory.Moved, Run: 3, From: "shop/other", Was: inventory.Adopted}.Of(types.UID(fmt.Sprintf("uid-%d", i)))
		}
	}
	requests := func(do func()) map[string]int {
		before := cl.Requests.Counts()
		do()
		after := cl.Requests.Counts()
		for verb, n := range before {
			if after[verb] -= n; after[verb] == 0 {
				delete(after, verb)
			}
		}
		return after
	}
	save := func(which map[bundle.ID]inventory.Origin) map[string]int {
		return requests(func() {
			if err := inv.SaveOrigins(t.Context(), which); err != nil {
				t.Fatal(err)
			}
		})
	}
	first := save(origins)
	list, err := c.Dynamic(t).Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace(ns).List(t.Context(), metav1.ListOptions{LabelSelector: inventory.OriginsLabel})
	if err != nil {
		t.Fatal(err)
	}
	size := 0
	for i := range list.Items {
		text, err := list.Items[i].MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		size += len(text)
	}
	t.Logf("%d ConfigMaps with %d KiB, written by %v", len(list.Items), size>>10, first)
	if len(list.Items) < 2 || first["create"] != len(list.Items) || len(first) != 1 {
		t.Errorf("%d parts were written by %v", len(list.Items), first)
	}
	loaded := requests(func() { inv = load(t, cl, ns) })
	if !maps.EqualFunc(inv.Origins, origins, inventory.Origin.Equal) {
		t.Fatalf("it holds %d origins, want %d", len(inv.Origins), len(origins))
	}
	if empty := requests(func() { load(t, cl, c.Namespace(t)) }); !maps.Equal(loaded, empty) {
		t.Errorf("they are read by %v, an inventory without any by %v", loaded, empty)
	}
	if again := save(maps.Clone(origins)); len(again) > 0 {
		t.Errorf("saved again by %v", again)
	}
	changed := maps.Clone(origins)
	changed[all[40_000]] = inventory.Origin{How: inventory.Adopted, Run: 8}.Of("another")
	if one := save(changed); len(one) != 1 || one["update"]+one["patch"] != 1 {
		t.Errorf("one of them is saved by %v", one)
	}
	if inv = load(t, cl, ns); !maps.EqualFunc(inv.Origins, changed, inventory.Origin.Equal) {
		t.Error("they are not what was saved")
	}
}

// The longest keys and statuses fill the inventory object: managedFields repeat
// the keys, others annotate it, and it is still small enough to be stored.
func TestFullestInventoryObject(t *testing.T) {
	c := clustertest.Shared(t)
	ns := c.Namespace(t)
	cl := client(t, c.Config(t))
	var all []bundle.ID
	for i := range 6_000 {
		length := 10 + 210*(i%2)
		all = append(all, bundle.ID{GroupKind: schema.GroupKind{Kind: "ConfigMap"}, Namespace: "some-namespace", Name: fmt.Sprintf("%s%d", strings.Repeat("n", length), i)})
	}
	inv := load(t, cl, ns)
	if err := inv.Add(t.Context(), all, 1); err != nil {
		t.Fatal(err)
	}
	maps := c.Dynamic(t).Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace(ns)
	head, err := maps.Get(t.Context(), "inv", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	head.SetAnnotations(merged(head.GetAnnotations(), map[string]string{"example.com/theirs": strings.Repeat("x", 150<<10)}))
	if _, err := maps.Update(t.Context(), head, metav1.UpdateOptions{FieldManager: "another"}); err != nil {
		t.Fatal(err)
	}
	inv = load(t, cl, ns)
	statuses := map[bundle.ID]inventory.Status{}
	for _, id := range all {
		statuses[id] = inventory.Status{Strategy: "Delete", Actuation: "Succeeded", Reconcile: "Succeeded"}
	}
	if err := inv.Finish(t.Context(), nil, statuses); err != nil {
		t.Fatal(err)
	}
	if got := len(load(t, cl, ns).Members); got != len(all) {
		t.Errorf("it holds %d, want %d", got, len(all))
	}
}

// merged is a with b in it.
func merged(a, b map[string]string) map[string]string {
	maps.Copy(a, b)
	return a
}
