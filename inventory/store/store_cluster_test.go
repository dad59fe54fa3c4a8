package store_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"brine/bundle"
	"brine/bundle/cluster"
	"brine/bundle/cluster/clustertest"
	"brine/inventory"
	"brine/inventory/store"
)

func client(t *testing.T, config *rest.Config) *cluster.Client {
	t.Helper()
	c, err := cluster.New(config, cluster.Options{RetryFor: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func load(t *testing.T, c *cluster.Client, ns string) *store.Inventory {
	t.Helper()
	inv, err := store.Load(t.Context(), c, ns, "inv", "", "0.0.0")
	if err != nil {
		t.Fatal(err)
	}
	return inv
}

// ids are n members, of every sort that a head can hold or not.
func ids(prefix string, n int) []bundle.ID {
	out := make([]bundle.ID, n)
	for i := range out {
		id := bundle.ID{GroupKind: schema.GroupKind{Group: "apps", Kind: "Deployment"}, Namespace: fmt.Sprintf("ns-%d", i%50), Name: fmt.Sprintf("%s-%d", prefix, i)}
		switch i % 5 {
		case 1:
			id.GroupKind, id.Namespace = schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}, ""
			id.Name = fmt.Sprintf("%s_%d:of_all", prefix, i)
		case 2:
			id.Name = strings.Repeat("long-", 48) + id.Name
		}
		out[i] = id
	}
	return out
}

func TestFiftyThousandMembers(t *testing.T) {
	c := clustertest.Shared(t)
	ns := c.Namespace(t)
	cl := client(t, c.Config(t))
	all := ids("m", 50_000)
	if err := load(t, cl, ns).Add(t.Context(), all, 1); err != nil {
		t.Fatal(err)
	}
	inv := load(t, cl, ns)
	if len(inv.Members) != len(all) {
		t.Fatalf("it holds %d, want %d", len(inv.Members), len(all))
	}
	for _, id := range all {
		if _, ok := inv.Members[id]; !ok {
			t.Fatalf("%s is lost", bundle.Name(id))
		}
	}
	maps := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	list, err := c.Dynamic(t).Resource(maps).Namespace(ns).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	heads := 0
	for _, u := range list.Items {
		if u.GetLabels()[inventory.Label] != "" {
			heads++
		}
	}
	if heads != 1 {
		t.Errorf("%d ConfigMaps carry cli-utils' label; it refuses more than one", heads)
	}
	// Half of them go; the rest stays, and so at last does nothing.
	if err := inv.Finish(t.Context(), all[:25_000], nil); err != nil {
		t.Fatal(err)
	}
	if inv = load(t, cl, ns); len(inv.Members) != 25_000 {
		t.Errorf("it holds %d, want half", len(inv.Members))
	}
	if err := inv.Finish(t.Context(), all[25_000:], nil); err != nil {
		t.Fatal(err)
	}
	if err := inv.Delete(t.Context()); err != nil {
		t.Fatal(err)
	}
	if list, err = c.Dynamic(t).Resource(maps).Namespace(ns).List(t.Context(), metav1.ListOptions{LabelSelector: inventory.AuxiliaryLabel}); err != nil || len(list.Items) > 0 {
		t.Errorf("%d ConfigMaps are left: %v", len(list.Items), err)
	}
}

// TestCrashBetweenAnyTwoWrites ends the writing after each number of writes,
// before the server saw the next one and after it dealt with it. What is read
// then has to hold all that a run may own by that time.
func TestCrashBetweenAnyTwoWrites(t *testing.T) {
	c := clustertest.Shared(t)
	before, added := ids("old", 6000), ids("new", 6000)
	gone := append(slices.Clone(before[:5500]), added[:1000]...)
	for name, cut := range map[string]clustertest.Action{"lost before": {CutBefore: true}, "lost after": {CutAfter: true}} {
		t.Run(name, func(t *testing.T) {
			finished := false
			for n := 0; !finished; n++ {
				if n > 40 {
					t.Fatal("it never gets through")
				}
				ns := c.Namespace(t)
				direct := client(t, c.Config(t))
				if err := load(t, direct, ns).Add(t.Context(), before, 1); err != nil {
					t.Fatal(err)
				}
				p := c.Proxy(t, clustertest.ProxyOptions{Intercept: after(n, cut)})
				owned := maps.Clone(load(t, direct, ns).Members)
				inv, err := store.Load(t.Context(), client(t, p.Config(t)), ns, "inv", "", "0.0.0")
				if err != nil {
					t.Fatal(err)
				}
				if err := inv.Add(t.Context(), added, 1); err == nil {
					// Only now may an object of added be on the cluster, and only
					// what is gone is off it.
					for _, id := range added {
						owned[id] = inventory.Pending
					}
					for _, id := range gone {
						delete(owned, id)
					}
					finished = inv.Finish(t.Context(), gone, nil) == nil
				}
				now := load(t, direct, ns)
				for id := range owned {
					if _, ok := now.Members[id]; !ok {
						t.Fatalf("after %d writes %s is lost", n, bundle.Name(id))
					}
				}
				// A run that comes after it gets through.
				if err := now.Add(t.Context(), added, 1); err != nil {
					t.Fatalf("after %d writes: %v", n, err)
				}
				if err := now.Finish(t.Context(), gone, nil); err != nil {
					t.Fatalf("after %d writes: %v", n, err)
				}
				if got, want := len(load(t, direct, ns).Members), len(before)+len(added)-len(gone); got != want {
					t.Fatalf("after %d writes and another run it holds %d, want %d", n, got, want)
				}
			}
		})
	}
}

// after lets n writes through.
func after(n int, cut clustertest.Action) func(clustertest.Request) clustertest.Action {
	writes := make(chan struct{}, n)
	return func(r clustertest.Request) clustertest.Action {
		if r.Method == http.MethodGet {
			return clustertest.Action{}
		}
		select {
		case writes <- struct{}{}:
			return clustertest.Action{}
		default:
			return cut
		}
	}
}
